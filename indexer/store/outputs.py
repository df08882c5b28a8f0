"""Unspent outputs in the database, and the spenders of the others. Everything here runs inside a commit of
its caller.

Long lists are counted in buckets (buckets.sql). For these, `utxo_asset` and its like also have a row for each asset of
an output. Short lists are read row by row, which is cheaper than maintaining buckets.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

import asyncpg
import msgspec

from indexer.rows.outputs import UtxoRow, unpack_spenders, utxo_row
from indexer.rows.resolver import PlacedOutput, resolve_outputs
from indexer.store.buckets import Buckets
from shared import packed, sql
from shared.ledger import AddressNo, AssetNo, StakeNo, TxId, slot_of

_BATCH_TRANSACTIONS = 20_000


async def change(db: asyncpg.Connection, removed: Sequence[UtxoRow], added: Sequence[UtxoRow]) -> None:
    """Remove and add outputs, and adjust the lists that they are in. Those to remove must be rows of `utxo`."""
    await remove(db, removed)
    await _copy(db, added)
    rows = [*removed, *added]
    if rows:
        counted = await _counted_lists.all(db, *(list(lists.owners(rows)) for lists in _ALL_LISTS))
        # Only an output that opens a bucket makes a list long or short.
        opening = [row for row in rows if opens(row.tx_id, row.output_index)]
        for lists in _ALL_LISTS:
            long = {row.owner for row in counted if row.owner_column == lists.owner_column} | lists.owners(opening)
            if long:
                await lists.move(db, removed, added, long)


async def remove(db: asyncpg.Connection, removed: Sequence[UtxoRow]) -> None:
    """Remove outputs, which must be rows of `utxo`, but leave the lists that they are in unchanged."""
    if removed:
        tag = await _remove.run(db, *sql.columns([(row.address_no, row.tx_id, row.output_index) for row in removed]))
        # NOTE: the resolver does not notice a second spending: it reads outputs from `tx`, which keeps spent ones, too.
        assert int(tag.split()[-1]) == len(removed), f"{tag} of {len(removed)}: an output is spent twice"


async def change_spenders(db: asyncpg.Connection, cut: Mapping[int, int], added: Mapping[int, bytes]) -> None:
    """Cut as many entries off `spender`, then add others, both by slot_no."""
    rows = [(slot_no, cut.get(slot_no, 0), added.get(slot_no, b"")) for slot_no in cut.keys() | added.keys()]
    if rows:
        await _change_spenders.run(db, *sql.columns(rows))


async def cut_staged_spenders(db: asyncpg.Connection, first_tx_id: TxId) -> None:
    """Remove the entries of transactions from `first_tx_id` on, in bulk."""
    await _cut_staged_spenders.run(db, first_tx_id)


# The end of bulk ------------------------------------------------------------------------------------------------------


async def fill(db: asyncpg.Connection) -> None:
    """Fill `utxo` in one pass over all transactions and `spender`, in order."""
    await db.execute("TRUNCATE utxo")
    genesis = await _genesis_outputs.all(db)
    await _copy(
        db,
        [UtxoRow(row.tx_id, 0, row.lovelace, row.address_no, row.stake_no, row.credential_no, None) for row in genesis],
    )
    last = TxId(-1)
    while rows := await _transactions_after.all(db, last, _BATCH_TRANSACTIONS):
        last = rows[-1].tx_id
        unspent = _unspent(rows, await _spenders_of.all(db, slot_of(rows[0].tx_id), slot_of(last)))
        await _copy(db, [utxo_row(output) for output in await resolve_outputs(db, unspent)])


async def fill_lists(db: asyncpg.Connection) -> None:
    """Count every bucket, and list the assets of long lists."""
    for lists in _ALL_LISTS:
        await lists.fill(db)


def _unspent(rows: "Sequence[_Transaction]", spenders: "Sequence[_Spenders]") -> list[PlacedOutput]:
    """The outputs of some transactions that are not spent."""
    spent = defaultdict[TxId, set[int]](set)
    for row in spenders:
        for tx_id, index, _ in unpack_spenders(row.slot_no, row.entries):
            spent[tx_id].add(index)
    unspent = []
    for tx in rows:
        spent_here = spent[tx.tx_id]
        first_index, outputs = packed.unpack_outputs(tx.outputs)
        unspent += [
            PlacedOutput(tx.tx_id, index, output)
            for index, output in enumerate(outputs, first_index)
            if index not in spent_here
        ]
    return unspent


async def _copy(db: asyncpg.Connection, rows: Sequence[UtxoRow]) -> None:
    if rows:
        await db.copy_records_to_table("utxo", columns=UtxoRow._fields, records=rows)


# Lists ----------------------------------------------------------------------------------------------------------------


class _Lists:
    """The lists of unspent outputs by address, account or payment credential; `owner_column` is that of the number of
    their owner.
    """

    def __init__(self, owner_column: str, utxo_bucket: str, utxo_asset: str) -> None:
        self.owner_column, self._utxo_bucket = owner_column, utxo_bucket
        self._owner_of: Callable[[UtxoRow], int | None] = attrgetter(owner_column)
        buckets = BUCKETS[utxo_bucket]
        of_buckets = {"owner_no": owner_column, "utxo_bucket": utxo_bucket}
        self._move_assets = _sql.command(
            "move_assets", **of_buckets, utxo_asset=utxo_asset, is_long=buckets.is_long("owner")
        )
        self._move_buckets = buckets.move(_sql.text("places"))
        self._fill_buckets = buckets.fill()
        self._fill_assets = _sql.command("fill_assets", **of_buckets, utxo_asset=utxo_asset)

    def owners(self, rows: Sequence[UtxoRow]) -> set[int]:
        """The owners of the lists that these outputs are in."""
        return {owner for row in rows if (owner := self._owner_of(row)) is not None}

    async def move(
        self, db: asyncpg.Connection, removed: Sequence[UtxoRow], added: Sequence[UtxoRow], long: set[int]
    ) -> None:
        """Adjust the lists that are long or may be, for outputs that are removed and added."""
        owner_of = self._owner_of
        # NOTE: an output of a fork may take the place of one that is removed, and contain the same asset. That row of
        # `utxo_asset` stays: the statement must not insert it before it deletes it.
        gone, come = self._assets_of(removed, long), self._assets_of(added, long)
        assets = [*((*row, False) for row in gone - come), *((*row, True) for row in come - gone)]
        await self._move_assets.run(db, list(long), *sql.columns(assets, empty=5))
        moves = [(row, sign) for rows, sign in ((removed, -1), (added, 1)) for row in rows if owner_of(row) in long]
        outputs = [(owner_of(row), row.tx_id, row.output_index, sign, sign * row.lovelace) for row, sign in moves]
        await self._move_buckets.run(db, *sql.columns(outputs, empty=5))

    def _assets_of(self, rows: Sequence[UtxoRow], long: set[int]) -> set[tuple[int, AssetNo, TxId, int]]:
        """The owner, asset and place of each asset in these outputs of long lists."""
        return {
            (owner, asset_no, row.tx_id, row.output_index)
            for row in rows
            if (owner := self._owner_of(row)) is not None and owner in long
            for asset_no in row.asset_nos or ()
        }

    async def fill(self, db: asyncpg.Connection) -> None:
        """Create the buckets of all long lists, and list their assets.

        NOTE: `begin` has created buckets for the outputs of the genesis, which are replaced here. None of those outputs
        contains an asset, so the list of assets is empty.
        """
        await db.execute(f"TRUNCATE {self._utxo_bucket}")
        await self._fill_buckets.run(db)
        await self._fill_assets.run(db)


def _buckets(table: str, owner_column: str) -> Buckets:
    return Buckets(
        table,
        key=owner_column,
        rank="lowest_tx_id",
        tie="lowest_output_index",
        rows=_sql.text("listed", owner_no=owner_column),
        sums={"outputs": "count(*)", "lovelace": "coalesce(sum(r.lovelace), 0)"},
        lowest=str(-(1 << 63)),
        lowest_tie="0",
        highest=str((1 << 63) - 1),
    )


def opens(tx_id: TxId, index: int) -> bool:
    """Whether an output begins a bucket in the lists that it is in: the function opens_outputs of the schema."""
    return ((tx_id * 31 + index) & 0x7FFFFFFF) * 2_654_435_761 >> 16 & 1023 == 0


class _GenesisOutput(msgspec.Struct, frozen=True, gc=False):
    tx_id: TxId
    lovelace: int
    address_no: AddressNo
    stake_no: StakeNo | None
    credential_no: AddressNo | None


class _CountedList(msgspec.Struct, frozen=True):
    """A list that has buckets: the column of its owner's number, and that number."""

    owner_column: str
    owner: int


class _Transaction(msgspec.Struct, frozen=True):
    tx_id: TxId
    outputs: bytes


class _Spenders(msgspec.Struct, frozen=True):
    slot_no: int
    entries: bytes


_sql = sql.beside(__file__)
_remove = _sql.command("remove")
_change_spenders = _sql.command("change_spenders")
_counted_lists = _sql.query("counted_lists", _CountedList)
_cut_staged_spenders = _sql.command("cut_staged_spenders")
join_spenders = _sql.command("join_spenders")
_transactions_after = _sql.query("transactions_after", _Transaction)
_spenders_of = _sql.query("spenders_of", _Spenders)
_genesis_outputs = _sql.query("genesis_outputs", _GenesisOutput)
BUCKETS = {
    "utxo_bucket": _buckets("utxo_bucket", "address_no"),
    "account_utxo_bucket": _buckets("account_utxo_bucket", "stake_no"),
    "credential_utxo_bucket": _buckets("credential_utxo_bucket", "credential_no"),
}
"""By their table."""
_ALL_LISTS = (
    _Lists("address_no", "utxo_bucket", "utxo_asset"),
    _Lists("stake_no", "account_utxo_bucket", "account_utxo_asset"),
    _Lists("credential_no", "credential_utxo_bucket", "credential_utxo_asset"),
)
