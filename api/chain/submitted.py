"""The register of submitted transactions, which the keys of the account that submitted them share.

docs/decisions/0043-submitted.md.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from api import errors
from api.answers import Digits, encode
from api.ask import ChainChange
from api.chain.tip import Tip
from api.chain.transaction_cbor import ParsedTransaction
from api.keys.caller import ApiKey
from shared import notices, schema, sql
from shared.network import by_id

MAX_KEPT = 10_000
"""The number of an account's last transactions on a network that are followed."""

State = Literal["pending", "in_block", "rolled_back", "expired"]


class SubmittedRow(msgspec.Struct, frozen=True):
    """The row of a submitted transaction."""

    submitted_at: datetime
    rolled_back_at: datetime | None
    accepted: bool
    invalid_hereafter: str | None
    cbor: bytes

    @property
    def ends(self) -> int | None:
        """The first slot in which it is no longer valid; None if it never expires."""
        return None if self.invalid_hereafter is None else int(self.invalid_hereafter)


class SubmittedEvent(msgspec.Struct, frozen=True):
    """A transaction that a key of the account has submitted was accepted by the node (`seen`), is in a block
    (`in_block`), or can't be in one any more, as its interval has ended without a block that contains it (`dropped`).
    """

    change: Literal["seen", "in_block", "dropped"]
    tx_hash: str
    invalid_hereafter: Digits | None


class _Before(msgspec.Struct, frozen=True):
    """The row of a transaction before the node accepted it, and whether the node had accepted it already."""

    is_pending: bool
    user_account_id: UUID


class Announced(msgspec.Struct, frozen=True):
    """Whether a row was created, and when the transaction was last rolled back."""

    is_new: bool
    rolled_back_at: datetime | None


class BlockOf(msgspec.Struct, frozen=True):
    """The block that contains a transaction."""

    block_no: int
    block_hash: bytes
    slot_no: int
    confirmations: int


_sql = sql.beside(__file__)
_submitted = _sql.query("submitted", SubmittedRow)
_block_of = _sql.query("block_of", BlockOf)
_before = _sql.query("before", _Before)
_announce = _sql.query("announce", Announced)
_accept = _sql.command("accept")
_withdraw = _sql.command("withdraw")
_drop_surplus = _sql.command("drop_surplus")


def state(known: SubmittedRow, block: BlockOf | None, now: Tip) -> State:
    """The state of a transaction, given the block that contains it and the last block."""
    if block is not None:
        return "in_block"
    if known.ends is not None and known.ends <= now.slot_no:
        return "expired"
    return "pending" if known.rolled_back_at is None else "rolled_back"


async def read(db: sql.Connection, key: ApiKey, tx_hash: bytes) -> tuple[SubmittedRow, BlockOf | None]:
    """A submitted transaction of the key's account, and its block, in a snapshot of the chain's. Raises Refusal.

    A transaction whose submission got no answer counts as submitted once a block proves that the node has accepted it.
    """
    known, block = await find(db, key, tx_hash)
    if known is None:
        raise errors.transaction_not_submitted()
    return known, block


async def find(db: sql.Connection, key: ApiKey, tx_hash: bytes) -> tuple[SubmittedRow | None, BlockOf | None]:
    """The same, but for a transaction that the account has not submitted the row is None."""
    known = await _submitted.one(db, key.network.network_id, tx_hash, key.credential_id)
    block = await block_of(db, tx_hash)
    return (known if known is not None and (known.accepted or known.rolled_back_at or block) else None), block


async def block_of(db: sql.Connection, tx_hash: bytes) -> BlockOf | None:
    """The block that contains a transaction."""
    return await _block_of.one(db, tx_hash)


class Register:
    """Records submissions. Each step is a commit, so that an indexer that rolls back sees it."""

    def __init__(self, ask: ChainChange[Any, Any], read: ParsedTransaction, cbor: bytes) -> None:
        self._db = ask.db
        self._key = ask.key.network.network_id, read.tx_hash, ask.key.credential_id
        self._row = *self._key, read.invalid_hereafter, cbor
        self._announced = Announced(is_new=False, rolled_back_at=None)

    async def announce(self) -> None:
        """Record the transaction before the node gets it."""
        async with schema.commit(self._db):
            announced = await _announce.one(self._db, *self._row)
        assert announced is not None, "a credential that was admitted has a row"
        self._announced = announced

    async def accept(self, *, in_block: bool) -> None:
        """Record that the node has it or, with `in_block`, an indexed block."""
        network_id, tx_hash, credential_id = self._key
        async with schema.commit(self._db):
            before = await _before.one(self._db, *self._key)
            if not in_block and before is not None and not before.is_pending:
                ends = self._row[3]
                seen = SubmittedEvent("seen", tx_hash.hex(), None if ends is None else str(ends))
                body = encode(seen).decode()
                await notices.add(self._db, by_id[network_id], "submitted", body, before.user_account_id)
            await _accept.run(self._db, *self._row, in_block, self._announced.rolled_back_at)
            await _drop_surplus.run(self._db, network_id, credential_id, MAX_KEPT)

    async def withdraw(self) -> None:
        """Withdraw the record, since the node has refused it."""
        if self._announced.is_new:
            async with schema.commit(self._db):
                await _withdraw.run(self._db, *self._key)
