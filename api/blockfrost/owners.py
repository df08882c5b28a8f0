"""The common parts of answers about addresses and accounts: assets, outputs and transactions."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, TypeVar

import msgspec

from api.ask import ChainAsk
from api.blockfrost import amounts, outputs, refusals
from api.blockfrost.amounts import Amount
from api.blockfrost.outputs import Unspent
from api.blockfrost.paging import Page
from api.blockfrost.ranges import RangePage, limits
from api.chain import owners, tip, transactions, utxos
from api.chain.assets import AssetId, AssetTransaction
from api.chain.owners import Holding, HoldingList, OwnerKind
from api.chain.transactions import Between, HistoryEntry
from api.chain.utxos import OutputRow, UnspentList
from api.parameters import Question
from shared import sql
from shared.ledger import index_of
from shared.network import Network
from shared.sql import Connection

QuestionT = TypeVar("QuestionT", bound=Question)


class TransactionPlace(msgspec.Struct, frozen=True):
    """A transaction and its place. `block_time` is in seconds since 1970."""

    tx_hash: str
    tx_index: int
    block_height: int
    block_time: int


class _PlainRow(OutputRow, frozen=True):
    cut: bool


MAX_READ = 10_000
_sql = sql.beside(__file__)
# The columns of `utxo` that have the number of an owner: a payment credential has two lists of outputs.
_LISTS: dict[OwnerKind, tuple[str, ...]] = {"address": ("address_no",), "credential": ("address_no", "credential_no")}
plain_pages = {
    (owner, order): _sql.query(
        "plain",
        _PlainRow,
        order=order,
        most=str(MAX_READ),
        named=owners.HISTORIES[owner]["named"],
        lists=" UNION ALL ".join(
            _sql.text("of_list", owner_no=each, order=order, most=str(MAX_READ)) for each in lists
        ),
    )
    for owner, lists in _LISTS.items()
    for order in ("asc", "desc")
}


async def unspent(
    ask: ChainAsk[QuestionT],
    owner: OwnerKind,
    raw: bytes,
    db: Connection,
    page: Page,
    asset: AssetId | Literal["lovelace"] | None = None,
) -> list[Unspent]:
    """A page of the unspent outputs of an owner, in a snapshot. If an asset is named, only those that hold it; with
    `lovelace`, only those that hold none. Raises Refusal if these are among too many to be found.
    """
    rows: Sequence[OutputRow]
    if isinstance(asset, str):
        rows = plain = await plain_pages[owner, page.order].all(db, raw, page.count, page.offset)
        if plain and plain[0].cut:
            raise refusals.too_many_outputs(MAX_READ)
    else:
        question = UnspentList(limit=page.count, offset=page.offset, order=page.order, asset=asset)
        rows = await utxos.unspent_rows(db, question, owner, raw, asset)
    tip.of_rows(rows)
    show = partial(outputs.unspent, network=ask.network)
    shown = [row for row in rows[: page.count] if row.tx_id is not None]
    return await ask.written(await utxos.listed(db, shown, ask.network, show, "count"))


async def history(ask: ChainAsk[QuestionT], owner: OwnerKind, raw: bytes, page: RangePage) -> list[TransactionPlace]:
    """A page of the transactions of an owner."""
    async with ask.snapshot() as db:
        first, beyond = await limits(db, page)
        wanted = Between(page.count, page.offset, page.order, first, beyond)
        entries = await transactions.between(db, owner, raw, wanted, ask.network)
        if not entries:
            await refuse_unused(db, owner, raw, ask.network)
    return [_place_of(entry, tx_id) for tx_id, entry in entries]


async def places_of(db: Connection, entries: Sequence[AssetTransaction]) -> list[TransactionPlace]:
    """The places of transactions, in the snapshot in which they were found."""
    places = await outputs.placed(db, [entry.tx_hash for entry in entries])
    return [_place_of(entry, places[entry.tx_hash].tx_id) for entry in entries]


def _place_of(entry: HistoryEntry | AssetTransaction, tx_id: int) -> TransactionPlace:
    return TransactionPlace(entry.tx_hash, index_of(tx_id), entry.block_no, int(entry.block_time.timestamp()))


async def holdings(
    ask: ChainAsk[QuestionT], owner: OwnerKind, raw: bytes, db: Connection, *, limit: int
) -> tuple[list[Amount], bool]:
    """Assets of an owner, and whether more follow, in a snapshot."""
    page = await owners.holdings(ask.about(HoldingList(limit=limit), db), owner, raw)
    return [_amount(holding) for holding in page.data], page.pagination.has_more


async def refuse_unused(db: Connection, owner: OwnerKind, raw: bytes, network: Network) -> None:
    """Raise Refusal if no transaction has used an owner: Blockfrost then answers 404, not an empty list."""
    summary, _ = await owners.summary(db, owner, raw, network)
    if not (summary.transaction_count or summary.utxo_count):
        raise refusals.never_used()


def _amount(holding: Holding) -> Amount:
    return Amount(amounts.unit_of(holding.policy_id, holding.asset_name), holding.quantity)
