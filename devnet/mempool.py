"""The mempool: submitted transactions in order, and those that are in blocks by now."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from devnet import parameters, rules
from devnet.ledger import Ledger
from devnet.refusal import Refusal
from devnet.submitted import Submitted

Json = dict[str, Any]

CAPACITY_BYTES = 2 * parameters.MAX_BLOCK_BODY_BYTES


class EraSlot(msgspec.Struct, frozen=True):
    """The era and slot in which transactions are checked against the ledger at the tip."""

    era: str
    slot: int


class Dropped(msgspec.Struct, frozen=True):
    """A transaction that is no longer in the mempool or in a block, and the reason.

    It has become invalid, or a fork removed its block and it could not return.
    """

    id: str
    reason: str


class Mempool:
    """Transactions that wait for a block. `version` changes with the content.

    Each is valid after all earlier ones. A check applies them to the ledger of the tip and then rewinds it.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Submitted] = {}
        self.version = 0
        self._in_blocks: dict[str, list[Submitted]] = {}  # by block id

    @property
    def size_bytes(self) -> int:
        return sum(tx.size for tx in self.waiting.values())

    def submit(self, tx: Submitted, ledger: Ledger, moment: EraSlot) -> None:
        """Accept a transaction. Raises Refusal if it breaks a rule of the ledger, or if there is no room.

        A chain that is not on time may make its next block later than `moment`; the transaction can expire first.
        """
        self.check(tx, ledger, moment)
        self.waiting[tx.id] = tx
        self.version += 1

    def check(self, tx: Submitted, ledger: Ledger, moment: EraSlot) -> None:
        """Raises Refusal if `submit` would."""
        if self.size_bytes + tx.size > CAPACITY_BYTES:
            raise Refusal(3997, "The mempool is full.", {"error": f"more than {CAPACITY_BYTES} bytes would be waiting"})
        with self.applied(ledger, moment):
            rules.check(tx, ledger, moment.era, moment.slot)

    @contextmanager
    def applied(self, ledger: Ledger, moment: EraSlot) -> Iterator[None]:
        """In the context, the ledger is as it will be after the transactions that wait."""
        length = ledger.length
        try:
            ledger.begin_era(moment.era)
            ledger.enter(moment.slot)
            for waiting in self.waiting.values():
                ledger.apply_transaction(waiting.content)
            yield
        finally:
            ledger.rewind(length)

    def offer(self, ledger: Ledger, era: str, slot: int) -> Iterator[Json]:
        """The transactions for the next block; each is checked after the previous one was applied."""
        room = parameters.MAX_BLOCK_BODY_BYTES
        for tx in list(self.waiting.values()):
            if tx.size <= room and self._broken(tx, ledger, EraSlot(era, slot)) is None:
                room -= tx.size
                yield tx.content

    def included(self, block_id: str, ids: set[str]) -> None:
        """Move these transactions from the mempool to a block that now holds them."""
        transactions = [tx for id_, tx in self.waiting.items() if id_ in ids]
        if transactions:
            self._in_blocks[block_id] = transactions
            self.waiting = {id_: tx for id_, tx in self.waiting.items() if id_ not in ids}
            self.version += 1

    def give_back(self, block_ids: list[str], *, forget: bool) -> list[Dropped]:
        """Return the transactions of removed blocks, given oldest first, to the mempool; with `forget`, drop them."""
        transactions = [tx for id_ in block_ids for tx in self._in_blocks.pop(id_, [])]
        if not transactions:
            return []
        self.version += 1
        if forget:
            return [Dropped(tx.id, "forgotten on request") for tx in transactions]
        self.waiting = {tx.id: tx for tx in transactions} | self.waiting
        return []

    def clean(self, ledger: Ledger, moment: EraSlot) -> list[Dropped]:
        """Drop the transactions that the ledger of a new tip no longer allows."""
        dropped = []
        length = ledger.length
        ledger.begin_era(moment.era)
        ledger.enter(moment.slot)
        for tx in list(self.waiting.values()):
            broken = self._broken(tx, ledger, moment)
            if broken is None:
                ledger.apply_transaction(tx.content)
            else:
                del self.waiting[tx.id]
                dropped.append(Dropped(tx.id, broken.message))
                self.version += 1
        ledger.rewind(length)
        return dropped

    def _broken(self, tx: Submitted, ledger: Ledger, moment: EraSlot) -> Refusal | None:
        try:
            rules.check(tx, ledger, moment.era, moment.slot)
        except Refusal as refusal:
            return refusal
        return None
