"""Mempool monitoring: the snapshot that a client has acquired, and the queries about it."""

import asyncio
from typing import Any

import msgspec

from devnet.mempool import CAPACITY_BYTES
from devnet.node import Node
from devnet.refusal import Refusal
from devnet.submitted import Submitted

METHODS = ("acquireMempool", "nextTransaction", "hasTransaction", "sizeOfMempool", "releaseMempool")


class _Params(msgspec.Struct):
    """The parameters of all methods."""

    fields: str | None = None
    id: str | None = None


_params = msgspec.json.Decoder(_Params)


class Monitor:
    """One client's snapshot of the mempool, None before it acquires one."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._version: int | None = None
        self._snapshot: tuple[Submitted, ...] | None = None
        self._position = 0
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def answer(self, method: str, params: msgspec.Raw) -> Any:
        """The result of a method. `acquireMempool` waits for a snapshot that is new to the client.

        Raises Refusal and msgspec.DecodeError.
        """
        if method == "acquireMempool":
            return await self._acquire()
        if self._snapshot is None:
            raise Refusal(4000, "You must acquire a mempool snapshot prior to accessing it.")
        match method:
            case "nextTransaction":
                return {"transaction": self._next(_params.decode(params).fields == "all")}
            case "hasTransaction":
                wanted = _params.decode(params).id
                return any(tx.id == wanted for tx in self._snapshot)
            case "sizeOfMempool":
                return {
                    "maxCapacity": {"bytes": CAPACITY_BYTES},
                    "currentSize": {"bytes": sum(tx.size for tx in self._snapshot)},
                    "transactions": {"count": len(self._snapshot)},
                }
            case _:
                self._snapshot = self._version = None
                return {"released": "mempool"}

    async def _acquire(self) -> Any:
        while self._version == self._node.mempool.version:
            self._changed.clear()
            await self._changed.wait()
        self._version, self._position = self._node.mempool.version, 0
        self._snapshot = tuple(self._node.mempool.waiting.values())
        return {"acquired": "mempool", "slot": 0 if self._node.tip is None else self._node.tip.slot}

    def _next(self, full: bool) -> Any:
        assert self._snapshot is not None, "`answer` has checked"
        if self._position == len(self._snapshot):
            return None
        tx = self._snapshot[self._position]
        self._position += 1
        return self._node.dialect.transaction(tx.content, self._node.blocks[-1].era) if full else {"id": tx.id}
