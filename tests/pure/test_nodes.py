"""A connection to the node that is lost: what is asked again, and what is not. And turns in front of a slow node."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from websockets.sync.server import ServerConnection, serve

from api.sources.node_addresses import AGAIN_AFTER_S, NodeAddresses
from api.sources.nodes import EVALUATIONS, Node, NodeAway, NodeConnection, NodeRefused
from tests.patience import PATIENCE_S

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
        node = NodeConnection(NodeAddresses([f"ws://127.0.0.1:{server.socket.getsockname()[1]}"]))
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


def test_the_next_node_is_asked_if_the_first_is_away_and_the_first_again_later() -> None:
    """Not between the parts of one question, such as whether the mempool has a transaction."""
    now = [0.0]
    with socket.create_server(("127.0.0.1", 0)) as closed, losing("none", after=0) as (second, asked):
        away = f"ws://127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        addresses = NodeAddresses([away, second._addresses.in_use], lambda: now[0])
        node = NodeConnection(addresses)
        assert node.tip_slot_no() == 5
        assert addresses.in_use == second._addresses.in_use
        node._ask("acquireMempool")
        now[0] += AGAIN_AFTER_S
        assert addresses.in_use == away
        node._ask("hasTransaction", again=False, id="")
        assert asked == ["queryNetwork/tip", "acquireMempool", "hasTransaction"]
        assert node.tip_slot_no() == 5, "the first is tried, and is still away"
        assert addresses.in_use != away
        node.close()


# Turns ----------------------------------------------------------------------------------------------------------------


@contextmanager
def slow_to_evaluate() -> Iterator[tuple[str, list[str], threading.Semaphore]]:
    """A node's address, the methods that it was asked, and permits to answer evaluations."""
    asked: list[str] = []
    permits = threading.Semaphore(0)

    def talk(connection: ServerConnection) -> None:
        for text in connection:
            request = json.loads(text)
            asked.append(request["method"])
            if request["method"] == "evaluateTransaction":
                permits.acquire()
            connection.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": []}))

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}", asked, permits


async def asked_for(count: int, asked: list[str]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(asked) < count:
            await asyncio.sleep(0.01)


async def test_evaluations_of_one_key_delay_no_submission_and_one_evaluation_of_another() -> None:
    """Submissions need no permit, and the other key's evaluation gets the second one though 59 were there before."""
    with slow_to_evaluate() as (url, asked, permits):
        node, begun, ended = Node("preview", NodeAddresses([url])), list[str](), list[str]()

        async def evaluate(key: str) -> None:
            def work(connection: NodeConnection) -> None:
                begun.append(key)
                connection.evaluate(b"")

            await node.evaluate(key, work)
            ended.append(key)

        evaluating = [asyncio.create_task(evaluate("a")) for _ in range(60)]
        await asked_for(1, asked)
        async with node.turn("b"):
            await node.run(lambda connection: connection.submit(b"", b""))
        assert asked == ["evaluateTransaction", "submitTransaction"]
        evaluating.append(asyncio.create_task(evaluate("b")))
        await asked_for(3, asked)
        assert len(evaluating) > EVALUATIONS
        assert (begun, ended) == (["a", "b"], []), "one of each key is under way"
        permits.release(len(evaluating))
        await asyncio.gather(*evaluating)
        node.close()


async def test_submissions_of_one_key_delay_another_by_one() -> None:
    with slow_to_evaluate() as (url, _, _):
        node, order = Node("preview", NodeAddresses([url])), list[str]()

        async def submit(key: str) -> None:
            async with node.turn(key):
                await node.run(lambda connection: connection.submit(b"", b""))
                order.append(key)

        await asyncio.gather(*(submit(key) for key in ["a"] * 40 + ["b"]))
        assert order.index("b") <= 2
        node.close()
