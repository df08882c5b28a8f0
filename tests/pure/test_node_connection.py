"""The connection that reads blocks and the mempool from a node."""

import socket

import msgspec

from api.node_bytes.connection import Connection
from api.sources.node_addresses import NodeAddresses
from devnet.server import NodeServer
from tests.chain.recordings import FILES


async def test_a_node_that_vanishes_is_noticed_while_the_connection_is_idle() -> None:
    async with NodeServer(FILES["conway-defaults"].played()) as node:
        connection = Connection(NodeAddresses([node.url]))
        try:
            await connection.call("findIntersection", msgspec.Raw, points=["origin"])
            assert connection._ws is not None
            assert connection._ws.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        finally:
            await connection.drop()


async def test_the_next_node_is_read_if_the_first_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"ws://127.0.0.1:{closed.getsockname()[1]}"
    async with NodeServer(FILES["conway-defaults"].played()) as node:
        addresses = NodeAddresses([away, node.url])
        connection = Connection(addresses)
        await connection.call("findIntersection", msgspec.Raw, points=["origin"])
        assert addresses.in_use == node.url
        is_open = []
        for _ in range(2):
            await connection.leave_former_node()
            is_open.append(connection.is_open)
            addresses.failed(node.url)
        assert is_open == [True, False]
        await connection.drop()
