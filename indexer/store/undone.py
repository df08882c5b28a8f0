"""The first step of a rollback: read what the undone transactions changed, from their packed rows."""

from collections import Counter

import asyncpg
import msgspec

from indexer.rows.amounts import Amounts
from indexer.rows.caches import ResolvedOutput
from indexer.rows.histories import SupplyChange
from indexer.rows.outputs import UtxoRow, utxo_row
from indexer.rows.resolver import PlacedOutput, resolve_outputs, stake_nos
from shared import packed, sql
from shared.ledger import AddressNo, AssetNo, StakeNo, TxId, slot_of


class Undone(msgspec.Struct, frozen=True):
    """What some transactions changed. `amounts` and `supplies` have the opposite sign already, so that they are added;
    all else is as it was written.

    `lovelace_out` is the lovelace in the outputs of each transaction. `made` are the rows of the unspent outputs that
    cease to exist, and `restored` those of the outputs that are unspent again. `address_txs` to `withdrawals` count
    the entries of each history to remove, `spent` the entries of `spender` in each slot_no. `assets` are all that the
    transactions touched, `reward_accounts` the stake credentials of their withdrawals and credits.
    """

    transactions: int
    lovelace_out: list[tuple[TxId, int]]
    amounts: Amounts
    supplies: dict[AssetNo, SupplyChange]
    assets: set[AssetNo]
    reward_accounts: set[StakeNo]
    made: list[UtxoRow]
    restored: list[UtxoRow]
    address_txs: Counter[AddressNo]
    account_txs: Counter[StakeNo]
    asset_txs: Counter[AssetNo]
    withdrawals: Counter[StakeNo]
    spent: Counter[int]


async def read(db: asyncpg.Connection, first_tx_id: TxId) -> Undone:
    """Read the changes of the transactions from `first_tx_id` on."""
    rows = await _transactions_from.all(db, first_tx_id)
    made, spent = _made(rows), await _spent(db, rows)
    resolved = await resolve_outputs(db, [*made, *(source for _, source in spent)])
    outputs, sources = resolved[: len(made)], resolved[len(made) :]
    amounts = Amounts()
    amounts.move(outputs, -1)
    amounts.move(sources, 1)
    supplies = _unminted([packed.unpack_mint(row.mint) for row in rows])
    extras = [packed.unpack_extra(row.extra) for row in rows if row.extra is not None]
    numbers = await _account_numbers(db, extras)
    touched = [
        *((output.tx_id, output) for output in outputs),
        *zip((tx_id for tx_id, _ in spent), sources, strict=True),
    ]
    return Undone(
        transactions=len(rows),
        lovelace_out=_lovelace_out(rows, outputs),
        amounts=amounts,
        supplies=supplies,
        assets={asset_no for asset_no, _ in amounts.holders} | supplies.keys(),
        reward_accounts=set(numbers.values()),
        made=_unspent(outputs, sources),
        restored=[utxo_row(output) for output in sources if output.tx_id < first_tx_id],
        address_txs=_address_txs(touched),
        account_txs=_account_txs(touched),
        asset_txs=_asset_txs(outputs),
        withdrawals=Counter(numbers[account] for extra in extras for account in extra.withdrawals),
        spent=Counter(slot_of(output.tx_id) for output in sources),
    )


def _made(rows: "list[_Packed]") -> list[PlacedOutput]:
    found = []
    for row in rows:
        first_index, outputs = packed.unpack_outputs(row.outputs)
        found += [(row.tx_id, index, output) for index, output in enumerate(outputs, first_index)]
    return found


async def _spent(db: asyncpg.Connection, rows: "list[_Packed]") -> list[tuple[TxId, PlacedOutput]]:
    """The outputs that transactions spend, as pairs of the tx_id of the spender and the output.

    Those from before the first indexed block are left out.
    """
    known = [
        (row.tx_id, spent, spent.source)
        for row in rows
        for spent in packed.unpack_inputs(row.inputs)
        if spent.source is not None
    ]
    made_by = {row.hash: row.tx_id for row in rows}
    earlier = {spent.tx_hash for _, spent, _ in known} - made_by.keys()
    if earlier:
        made_by |= {row.tx_hash: row.tx_id for row in await _made_by.all(db, list(earlier))}
    return [(tx_id, (made_by[spent.tx_hash], spent.output_index, source)) for tx_id, spent, source in known]


def _lovelace_out(rows: "list[_Packed]", outputs: list[ResolvedOutput]) -> list[tuple[TxId, int]]:
    """The lovelace in the outputs of each transaction."""
    found = {row.tx_id: 0 for row in rows}
    for output in outputs:
        found[output.tx_id] += output.lovelace
    return list(found.items())


def _unspent(outputs: list[ResolvedOutput], sources: list[ResolvedOutput]) -> list[UtxoRow]:
    """The rows of those outputs that are not among the spent ones, `sources`."""
    spent = {(output.tx_id, output.index) for output in sources}
    return [utxo_row(output) for output in outputs if (output.tx_id, output.index) not in spent]


def _address_txs(touched: list[tuple[TxId, ResolvedOutput]]) -> Counter[AddressNo]:
    """How many transactions of each address there are."""
    return Counter(address_no for _, address_no in {(tx_id, output.address_no) for tx_id, output in touched})


def _asset_txs(outputs: list[ResolvedOutput]) -> Counter[AssetNo]:
    """How many transactions with each asset in their outputs there are."""
    found = {(output.tx_id, asset_no) for output in outputs for asset_no in output.quantities}
    return Counter(asset_no for _, asset_no in found)


def _account_txs(touched: list[tuple[TxId, ResolvedOutput]]) -> Counter[StakeNo]:
    """How many transactions of each stake credential there are."""
    found = {(tx_id, output.stake_no) for tx_id, output in touched}
    return Counter(stake_no for _, stake_no in found if stake_no is not None)


async def _account_numbers(db: asyncpg.Connection, extras: list[packed.Extra]) -> dict[bytes, StakeNo]:
    """The numbers of the accounts of withdrawals and credits."""
    accounts = {account for extra in extras for account in (*extra.withdrawals, *extra.credits)}
    return {row.raw: row.number for row in await stake_nos.all(db, list(accounts))} if accounts else {}


def _unminted(mints: list[packed.Quantities]) -> dict[AssetNo, SupplyChange]:
    found: dict[AssetNo, SupplyChange] = {}
    for mint in mints:
        for asset_no, quantity in mint.items():
            found.setdefault(asset_no, SupplyChange()).mint(quantity, -1)
    return found


class _Packed(msgspec.Struct, frozen=True):
    tx_id: TxId
    hash: bytes
    outputs: bytes
    inputs: bytes
    mint: bytes | None
    extra: bytes | None


class _MadeBy(msgspec.Struct, frozen=True):
    tx_hash: bytes
    tx_id: TxId


_sql = sql.beside(__file__)
_transactions_from = _sql.query("transactions_from", _Packed)
_made_by = _sql.query("made_by", _MadeBy)
