"""The redeemers of a script: the index knows in which transactions they are, the node has their bytes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec

from api import errors
from api.answers import ChainPage, Digits, Instant, Paging
from api.ask import ChainAsk
from api.chain import block_bytes, tip
from api.chain.contracts import ScriptQuestion
from api.parameters import Integer, Offset, Order
from shared import packed, redeemers, sql
from shared.cbor import Malformed
from shared.ledger import AddressNo, TxId, script_key_of, slot_of
from shared.redeemers import PURPOSES, Purpose, Redeemer
from shared.sql import Connection

_WITHIN_S = 20.0
"""For a page of redeemers in a hundred blocks, which the node is asked for one after the other."""

_TOLD_BY_JSON: tuple[Purpose, ...] = ("spend", "mint", "reward")
"""The purposes whose scripts the index knows if Ogmios sent no CBOR."""


class RedeemerList(ScriptQuestion, frozen=True, kw_only=True):
    """A page of the redeemers of a script."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0
    order: Order = "desc"


class ScriptRedeemer(msgspec.Struct, frozen=True):
    """A redeemer: what its script has decided on, as the place `index` among the things of its `purpose` in the
    transaction. `data_hash` is the hash of its data; `memory` and `cpu` are the units that it may use.
    """

    tx_hash: str
    slot_no: int
    block_time: Instant
    purpose: Purpose
    index: int
    data_hash: str
    memory: Digits
    cpu: Digits


class Found(msgspec.Struct, frozen=True):
    """A redeemer and its transaction."""

    tx_id: TxId
    tx_hash: bytes
    redeemer: Redeemer


class _Row(tip.ListRow, frozen=True):
    known: bool
    total: int
    place: int | None  # null, like everything below, in the row of an empty page
    tx_id: TxId
    tx_hash: bytes
    inputs: bytes
    extra: bytes


class _Listed(msgspec.Struct, frozen=True):
    """A page of the list: its rows, and the addresses among the inputs that the script locks."""

    rows: Sequence[_Row]
    last: tip.Tip
    total: int
    locked: frozenset[AddressNo]


_sql = sql.beside(__file__)
_listed = _sql.query("listed", _Row)
_locked_by = _sql.values("locked_by", AddressNo)


async def list_script_redeemers(ask: ChainAsk[RedeemerList]) -> ChainPage[ScriptRedeemer, Paging]:
    """List the redeemers of a script.

    Those of transactions whose scripts failed are left out. They are read from the node, a block for each transaction.
    """
    asked = ask.question
    page, found = await read(ask, asked)
    return ChainPage(
        data=[
            ScriptRedeemer(
                tx_hash=each.tx_hash.hex(),
                slot_no=slot_of(each.tx_id),
                block_time=ask.network.slot_time(slot_of(each.tx_id)),
                purpose=each.redeemer.purpose,
                index=each.redeemer.index,
                data_hash=each.redeemer.data_hash.hex(),
                memory=str(each.redeemer.memory),
                cpu=str(each.redeemer.cpu),
            )
            for each in found
        ],
        pagination=Paging(asked.limit, asked.offset, page.total, asked.offset + asked.limit < page.total),
        last_updated=page.last.last_updated(ask.network),
    )


async def read(ask: ChainAsk[RedeemerList], asked: RedeemerList) -> tuple[_Listed, list[Found]]:
    """A page, and its redeemers in its order. Raises Refusal."""
    async with ask.snapshot() as db:
        page = await _page(db, asked)
    try:
        async with asyncio.timeout(_WITHIN_S):
            found = [each async for each in _redeemers(ask, page, asked.hash)]
    except TimeoutError as cause:
        raise errors.node_not_read(f"it does not give the blocks of the page within {_WITHIN_S:.0f} s") from cause
    return page, found if asked.order == "asc" else found[::-1]


async def _page(db: Connection, asked: RedeemerList) -> _Listed:
    newest_first = asked.order == "desc"
    numbers = script_key_of(asked.hash), asked.limit, asked.offset
    rows = await _listed.all(db, asked.hash, *numbers, newest_first)
    last = tip.of_rows(rows)
    if not rows[0].known:
        raise errors.script_not_found()
    present = [row for row in rows if row.place is not None]
    spent = {source.address_no for row in present for source in _sources(row).values()}
    locked = await _locked_by.all(db, asked.hash, list(spent)) if spent else []
    return _Listed(present, last, rows[0].total, frozenset(locked))


def _sources(row: _Row) -> "dict[tuple[bytes, int], packed.Paid]":
    """The outputs that the transaction spends with a redeemer, as far as the index has them, by reference."""
    places = packed.unpack_extra(row.extra).spends
    inputs = packed.unpack_spent(row.inputs) if places else []
    spent = (inputs[place] for place in places)
    return {(each.tx_hash, each.output_index): each.source for each in spent if each.source is not None}


async def _redeemers(ask: ChainAsk[RedeemerList], page: _Listed, script_hash: bytes) -> AsyncIterator[Found]:
    """The redeemers of a page."""
    tx_hash, of_tx = b"", list[Redeemer]()
    for row in page.rows:
        if row.tx_hash != tx_hash:
            tx_hash, of_tx = row.tx_hash, await _of_transaction(ask, page, row, script_hash)
        assert row.place is not None, "a row of the page"
        if row.place < len(of_tx):
            yield Found(row.tx_id, row.tx_hash, of_tx[row.place])


async def _of_transaction(ask: ChainAsk[RedeemerList], page: _Listed, row: _Row, script_hash: bytes) -> list[Redeemer]:
    """The redeemers of a transaction for the script, in the order of purposes, then of places."""
    try:
        _, cbor = await block_bytes.read_transaction(ask, row.tx_hash)
    except errors.Refusal as refused:
        if refused.code == errors.transaction_not_found().code:
            raise errors.node_not_read("a fork has just undone a block of the page") from refused
        raise
    try:
        found = redeemers.parse(cbor).redeemers
    except Malformed as cause:
        raise errors.node_not_read(f"its bytes of a transaction can't be read: {cause}") from cause
    sources = _sources(row)
    locked = {reference for reference, source in sources.items() if source.address_no in page.locked}
    some = None in packed.unpack_extra(row.extra).redeemers
    mine = [
        each
        for each in found
        if (each.spends in locked if each.purpose == "spend" else each.script_hash == script_hash)
        and (not some or each.purpose in _TOLD_BY_JSON)
    ]
    return sorted(mine, key=lambda each: (PURPOSES.index(each.purpose), each.index))
