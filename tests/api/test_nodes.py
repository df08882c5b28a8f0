"""A connection to the node that is lost: what is asked again, and what is not."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from websockets.sync.server import ServerConnection, serve

from api.nodes import NodeAway, NodeConnection, NodeRefused

REFUSES = "submitTransaction"


@contextmanager
def losing(method: str, after: int) -> Iterator[tuple[NodeConnection, list[str]]]:
    """A node that drops its first connection when it has that request, after so many others, and all that it was asked.

    It has no transaction in its mempool and refuses all.
    """
    asked: list[str] = []
    connections: list[ServerConnection] = []

    def talk(connection: ServerConnection) -> None:
        connections.append(connection)
        for number, text in enumerate(connection):
            request = json.loads(text)
            asked.append(request["method"])
            if len(connections) == 1 and request["method"] == method and number >= after:
                return
            error = {"code": 3117, "message": "no"}
            answer = {"error": error} if request["method"] == REFUSES else {"result": {"slot": 5}}
            connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}))

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        node = NodeConnection(f"ws://127.0.0.1:{server.socket.getsockname()[1]}")
        yield node, asked
        node.close()


def test_a_request_is_sent_again_if_the_connection_was_lost_while_it_was_idle() -> None:
    with losing("queryNetwork/tip", after=1) as (node, asked):
        assert [node.tip_slot_no(), node.tip_slot_no()] == [5, 5]
        assert len(asked) == 3


def test_a_node_that_drops_a_new_connection_is_away() -> None:
    with losing("queryNetwork/tip", after=0) as (node, asked):
        with pytest.raises(NodeAway):
            node.tip_slot_no()
        assert len(asked) == 1
        assert node.tip_slot_no() == 5


def test_the_mempool_is_not_asked_on_a_connection_that_has_not_acquired_it() -> None:
    with losing("hasTransaction", after=0) as (node, asked):
        with pytest.raises(NodeAway):
            node.submit(b"", b"")
        assert asked == ["submitTransaction", "acquireMempool", "hasTransaction"]
        with pytest.raises(NodeRefused):
            node.submit(b"", b"")
