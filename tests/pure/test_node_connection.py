"""The connection that reads blocks and the mempool from a node."""

import socket

import aiohttp
import msgspec

from api.node_bytes.connection import Connection
from api.node_bytes.lanes import Lanes
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


async def test_the_end_of_an_idle_connection_is_no_failure_of_its_node() -> None:
    played = FILES["conway-defaults"].played()
    async with NodeServer(played) as node, NodeServer(played) as other:
        addresses = NodeAddresses([node.url, other.url])
        lanes = Lanes("preview", addresses, 1, "readings")

        async def read(connection: Connection) -> None:
            await connection.call("findIntersection", msgspec.Raw, points=["origin"])

        await lanes.read("key", 5.0, read)
        (connection,) = lanes._connections
        assert connection._ws is not None
        # As if the node's goodbye were read only after the next question was sent.
        connection._ws._reader.feed_data(aiohttp.WSMessage(aiohttp.WSMsgType.CLOSE, 1000, ""), 0)
        await lanes.read("key", 5.0, read)
        assert addresses.in_use == node.url
        await lanes.close()
