"""The node: its selected chain, which grows and forks on demand, its ledger and its mempool."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from devnet.blocks import Block, Chain, OpenChain
from devnet.case import Case
from devnet.dialect import Dialect
from devnet.ledger import Ledger
from devnet.mempool import Dropped, EraSlot, Mempool
from devnet.parameters import versions
from devnet.refusal import Refusal
from devnet.submitted import Submitted
from devnet.votes import Reference

log = structlog.get_logger()

Json = dict[str, Any]

MAX_SCRIPT_RUNS = 2
"""The most transactions whose scripts run at a time in evaluations, and in submissions, which wait for none."""


class NodeClient(Protocol):
    """A client that follows the chain, as the node sees it."""

    def chain_grew(self) -> None:
        """Blocks were appended."""

    def chain_forked(self, ancestor: int) -> None:
        """Every block above the one at index `ancestor` has been removed."""

    def mempool_changed(self) -> None:
        """Transactions entered or left the mempool."""

    def drop(self) -> None:
        """End the connection."""


class Node:
    """Plays `chain` as the version of Ogmios in `dialect` writes it.

    A `syncing` node refuses Shelley's genesis while its tip is in Byron, as a real one does; others always serve it.
    Every method that changes the chain notifies the clients immediately. For tests: `requests` counts the requests
    by method, `delay_s` delays each answer, and `injected` contains raw answers for the next `nextBlock` requests.
    `evaluating` and `submitting` bound the runs of Plutus scripts, each of which is a process.
    """

    def __init__(self, chain: Chain, dialect: Dialect | None = None, *, syncing: bool = False) -> None:
        self.chain = chain
        self.syncing = syncing
        self.dialect = dialect or Dialect()
        self.blocks: list[Block] = []
        self.frames: list[bytes] = []
        self.tip_json = b'"origin"'
        self.clients: set[NodeClient] = set()
        self.requests: Counter[str] = Counter()
        self.delay_s = 0.0
        self.injected: deque[bytes] = deque()
        self.mempool = Mempool()
        self.evaluating, self.submitting = (asyncio.Semaphore(MAX_SCRIPT_RUNS) for _ in range(2))
        self._index: dict[str, int] = {}
        self._ledger = Ledger.at_genesis(chain)
        self.extend(chain.blocks)

    @property
    def tip(self) -> Block | None:
        return self.blocks[-1] if self.blocks else None

    @property
    def connections(self) -> int:
        return len(self.clients)

    def extend(self, blocks: list[Block]) -> None:
        """Append blocks; the first must follow the tip."""
        for block in blocks:
            assert not self.blocks or block.ancestor == self.blocks[-1].id, f"block {block.point} does not follow"
            self._index[block.id] = len(self.blocks)
            self.blocks.append(block)
            self.frames.append(self.dialect.block(block.content))
            if self.mempool.waiting:
                self.mempool.included(block.id, {tx["id"] for tx in block.decoded().get("transactions", ())})
        self._update_tip()
        for client in self.clients:
            client.chain_grew()
        self._clean_mempool()

    def grow(self, count: int = 1) -> int:
        """Let the chain make up to `count` more blocks, from the mempool first. Returns the number made."""
        if not isinstance(self.chain, OpenChain):
            fresh = self.chain.grow(count)
            self.extend(fresh)
            return len(fresh)
        for _ in range(count):
            self.extend(self.chain.grow(1, self.mempool.offer))
        return count

    def submit(self, tx: Submitted) -> None:
        """Accept a transaction for the next block. Raises Refusal if the ledger does not allow it now.

        Its Plutus scripts are not run: see `devnet.submission`.
        """
        self._refuse_if_closed()
        self.mempool.submit(tx, self.ledger_after(len(self.blocks) - 1), self._moment())
        self._tell_of_mempool()

    def check(self, tx: Submitted) -> None:
        """Raises Refusal if `submit` would."""
        self._refuse_if_closed()
        self.mempool.check(tx, self.ledger_after(len(self.blocks) - 1), self._moment())

    @contextmanager
    def case_of(self, tx: Submitted, additional: dict[Reference, Json]) -> Iterator[Case]:
        """A transaction in the ledger after those that wait, with additional outputs; valid in the context."""
        ledger, moment = self.ledger_after(len(self.blocks) - 1), self._moment()
        with self.mempool.applied(ledger, moment):
            yield Case(tx, ledger, moment.era, moment.slot, additional)

    def fork(self, ancestor: int, blocks: list[Block], *, forget: bool = False) -> None:
        """Replace every block above the one at index `ancestor` (-1 for all) with others.

        Submitted transactions that the new blocks lack return to the mempool, since the other nodes of a network still
        have them. With `forget` they are dropped.
        """
        if self._ledger.length > ancestor + 1:
            self._ledger.rewind(ancestor + 1)
        removed = [block.id for block in self.blocks[ancestor + 1 :]]
        for id_ in removed:
            del self._index[id_]
        del self.blocks[ancestor + 1 :], self.frames[ancestor + 1 :]
        for client in self.clients:
            client.chain_forked(ancestor)
        self._log(self.mempool.give_back(removed, forget=forget))
        self.extend(blocks)

    def switch(self, chain: Chain, *, forget: bool = False) -> int:
        """Play another chain from now on; returns the index of the last common block, or -1."""
        shared = 0
        for ours, theirs in zip(self.blocks, chain.blocks, strict=False):
            if ours.id != theirs.id:
                break
            shared += 1
        if versions(chain.eras, chain.forks) != self._ledger.versions:
            self._ledger = Ledger.at_genesis(chain)
        self.chain = chain
        self.fork(shared - 1, chain.blocks[shared:], forget=forget)
        return shared - 1

    def inject(self, answer: bytes) -> None:
        """Answer the next `nextBlock` request with these bytes."""
        self.injected.append(answer)

    def drop_connections(self) -> None:
        for client in list(self.clients):
            client.drop()

    def index_of(self, point: Any) -> int | None:
        """The index of the block at a point, -1 for the origin, None if the point is not on this chain."""
        match point:
            case "origin":
                return -1
            case {"slot": slot, "id": str(id_)}:
                index = self._index.get(id_)
                return index if index is not None and self.blocks[index].slot == slot else None
            case _:
                return None

    def point_json(self, index: int) -> bytes:
        if index < 0:
            return b'"origin"'
        block = self.blocks[index]
        return b'{"slot":%d,"id":"%b"}' % (block.slot, block.id.encode())

    def ledger_after(self, index: int) -> Ledger:
        """The ledger after the block at an index, -1 for genesis; valid until the next call or change of the chain."""
        if self._ledger.length > index + 1:
            self._ledger.rewind(index + 1)
        self._ledger.advance(self.blocks, index + 1)
        return self._ledger

    def _refuse_if_closed(self) -> None:
        if not isinstance(self.chain, OpenChain):
            raise Refusal(3997, "The mempool is closed.", {"error": "this node's chain accepts no transactions"})

    def _moment(self) -> EraSlot:
        """The era and slot of the next block: now on a chain that is on time, otherwise right after the tip."""
        assert self.tip is not None, "a chain without blocks has no era"
        on_time = isinstance(self.chain, OpenChain) and self.chain.on_time
        now = self.chain.network.slot_at(datetime.now(UTC)) if on_time else 0
        return EraSlot(self.tip.era, max(now, self.tip.slot + 1))

    def _clean_mempool(self) -> None:
        """Drop transactions that are invalid at the new tip, and notify the clients of any change."""
        if self.mempool.waiting:
            self._log(self.mempool.clean(self.ledger_after(len(self.blocks) - 1), self._moment()))
        self._tell_of_mempool()

    def _tell_of_mempool(self) -> None:
        for client in self.clients:
            client.mempool_changed()

    def _log(self, dropped: list[Dropped]) -> None:
        for tx in dropped:
            log.warning("mempool.dropped", tx_hash=tx.id, reason=tx.reason)

    def _update_tip(self) -> None:
        if tip := self.tip:
            self.tip_json = b'{"slot":%d,"id":"%b","height":%d}' % (tip.slot, tip.id.encode(), tip.height)
        else:
            self.tip_json = b'"origin"'
