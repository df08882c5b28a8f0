"""The API's own connections to Ogmios for transactions: docs/decisions/0040 and 0060.

Each network has one connection for submissions and some for evaluations, which may take seconds, so no submission waits
for an evaluation. Requests for either take turns by credential.

The package `ogmios` works synchronously and is slow to import. Each connection has a thread, which imports it with the
first transaction, and executes one request after the other.
"""

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import structlog

from api import errors
from api.http.turns import Turns
from api.sources.node_addresses import CONNECT_WITHIN_S, NodeAddresses
from shared.network import Network

log = structlog.get_logger()

EVALUATIONS, EVALUATIONS_EACH = 2, 1
"""The most evaluations at a time, per process and network, and of them with one credential."""

ANSWER_WITHIN_S = 8.0
_PORTS = {"ws": 80, "wss": 443}

Result = TypeVar("Result")


class NodeRefused(Exception):
    """Ogmios' error answer: the code, the message, and the ledger's details."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class NodeAway(Exception):
    """The node can't be reached, or did not answer in time."""


class NodeConnection:
    """Speaks to the Ogmios in use, in one thread. Connects on the first request, and again after a loss."""

    def __init__(self, addresses: NodeAddresses) -> None:
        self._addresses = addresses
        self._url = ""
        self._client: Any = None
        self._asked = 0

    def evaluate(self, cbor: bytes, additional: Sequence[Any] = ()) -> Any:
        """The execution units of each redeemer, in Ogmios' format. Raises NodeRefused, NodeAway.

        `additional` are outputs, in Ogmios' format, that the transaction may use though they are not on the chain.
        """
        with_outputs: dict[str, Any] = {"additionalUtxo": additional} if additional else {}
        return self._ask("evaluateTransaction", transaction={"cbor": cbor.hex()}, **with_outputs)

    def submit(self, cbor: bytes, tx_hash: bytes) -> None:
        """Submit a transaction. One that waits in the node's mempool is accepted again.

        Raises NodeRefused, NodeAway.
        """
        try:
            self._ask("submitTransaction", transaction={"cbor": cbor.hex()})
        except NodeRefused:
            if not self._waits(tx_hash):
                raise

    def tip_slot_no(self) -> int:
        """The slot of the last block of the node's chain, -1 if it has none. Raises NodeAway."""
        tip = self._ask("queryNetwork/tip")
        return -1 if tip == "origin" else int(tip["slot"])

    def start_time(self) -> datetime:
        """When the node's network began. Raises NodeAway."""
        return datetime.fromisoformat(self._ask("queryNetwork/startTime"))

    def close(self) -> None:
        """Disconnect, if it is connected."""
        client, self._client = self._client, None
        if client is not None:
            client.connection.close_socket()

    def _waits(self, tx_hash: bytes) -> bool:
        """Whether a transaction is in the node's mempool."""
        self._ask("acquireMempool")
        waits = self._ask("hasTransaction", again=False, id=tx_hash.hex())
        self._ask("releaseMempool", again=False)
        return waits is True

    def _ask(self, method: str, *, again: bool = True, **params: Any) -> Any:
        """The result of a request. If the connection was lost while it was idle, it is replaced and, with `again`, the
        request is sent again.
        """
        from websockets.exceptions import ConnectionClosed, WebSocketException

        self._asked += 1
        request = {"jsonrpc": "2.0", "method": method, "id": self._asked} | ({"params": params} if params else {})
        text = json.dumps(request)
        if again and self._client is not None and self._url != self._addresses.in_use:
            self.close()
        was_idle = self._client is not None
        try:
            try:
                answer = self._answer(text)
            except ConnectionClosed:
                # NOTE: the loss may be noticed only after the request was sent. Whatever the node made of it, it gives
                # the same answer again.
                if not (was_idle and again):
                    raise
                self.close()
                answer = self._answer(text)
        except (OSError, TimeoutError, WebSocketException, ValueError) as cause:
            self.close()
            self._addresses.failed(self._url)
            raise NodeAway(f"{type(cause).__name__}: {cause}") from cause
        if not isinstance(answer, dict) or answer.get("id") != self._asked:
            self.close()
            raise NodeAway("an answer to another request")
        if "error" in answer:
            error = answer["error"]
            raise NodeRefused(error["code"], error["message"], error.get("data"))
        return answer["result"]

    def _answer(self, text: str) -> Any:
        client = self._connected()
        client.send(text)
        # NOTE: not `Client.receive`, which waits forever.
        return json.loads(client.connection.recv(timeout=ANSWER_WITHIN_S))

    def _connected(self) -> Any:
        if self._client is None:
            for left in reversed(range(self._addresses.count)):
                self._url = self._addresses.in_use
                try:
                    self._client = self._connect()
                    break
                except Exception:
                    self._addresses.failed(self._url)
                    if not left:
                        raise
        return self._client

    def _connect(self) -> Any:
        from ogmios.client import Client

        url = urlsplit(self._url)
        host = url.netloc.rpartition(":")[0] if url.port else url.netloc
        path = url.path.lstrip("/") + (f"?{url.query}" if url.query else "")
        port = url.port or _PORTS[url.scheme]
        if self._addresses.count > 1:
            # NOTE: `Client` waits for 10 s for a host that does not answer, which is all the time that there is.
            socket.create_connection((url.hostname or "", port), timeout=CONNECT_WITHIN_S).close()
        return Client(host, port, path, secure=url.scheme == "wss")


class Node:
    """The node of a network, called from the event loop."""

    def __init__(self, network: str, addresses: NodeAddresses) -> None:
        self._submitting = _Lane(f"node {network}", addresses)
        evaluating = [_Lane(f"node {network} evaluation {number}", addresses) for number in range(EVALUATIONS)]
        self._lanes = [self._submitting, *evaluating]
        self._idle = deque(evaluating)
        self._submissions = Turns(self._submitting, 1, 1, "submissions")
        self._evaluations = Turns(self._idle, EVALUATIONS, EVALUATIONS_EACH, "evaluations")

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[None]:
        """Wait for the turn of a credential to submit, one transaction after the other. Raises Refusal."""
        async with self._submissions.turn(key):
            yield

    async def run(self, work: Callable[[NodeConnection], Result]) -> Result:
        """Run `work`, a part of a submission, in a thread. Raises Refusal, NodeRefused."""
        return await self._submitting.run(work)

    async def evaluate(self, key: Hashable, work: Callable[[NodeConnection], Result]) -> Result:
        """Run `work`, an evaluation, in a thread, in a turn of a credential. Raises Refusal, NodeRefused."""
        async with self._evaluations.turn(key) as idle:
            lane = idle.popleft()
            try:
                return await lane.run(work)
            finally:
                idle.append(lane)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()


class _Lane:
    """A connection and its thread."""

    def __init__(self, name: str, addresses: NodeAddresses) -> None:
        self._name = name
        self._connection = NodeConnection(addresses)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[NodeConnection], Result]) -> Result:
        """Run `work` in the thread, after all earlier work. Raises Refusal, NodeRefused."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._connection)
        except NodeAway as cause:
            log.warning("node.away", node=self._name, cause=str(cause))
            raise errors.node_not_available("it does not answer") from cause

    def close(self) -> None:
        self._connection.close()
        self._thread.shutdown(wait=False, cancel_futures=True)


class Nodes(msgspec.Struct, frozen=True):
    """The nodes by name of their network."""

    by_network: Mapping[str, Node]

    @classmethod
    def at(cls, addresses: Mapping[str, NodeAddresses]) -> "Nodes":
        """The nodes at these addresses. No connection is made yet."""
        return cls({name: Node(name, each) for name, each in addresses.items()})

    def of(self, network: Network) -> Node:
        """Raises Refusal if this API knows no node of the network."""
        node = self.by_network.get(network.name)
        if node is None:
            raise errors.no_node(network.name)
        return node

    def turn(self, network: Network, key: Hashable) -> AbstractAsyncContextManager[None]:
        """Wait for a credential's turn to submit to a network; returns immediately if this API knows no node of it."""
        node = self.by_network.get(network.name)
        return nullcontext() if node is None else node.turn(key)

    def close(self) -> None:
        for node in self.by_network.values():
            node.close()
