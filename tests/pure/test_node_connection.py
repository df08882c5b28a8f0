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
