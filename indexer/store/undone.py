"""The first step of a rollback: read the changes of the undone transactions from their packed rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import asyncpg
import msgspec

from indexer.rows.amounts import Amounts
from indexer.rows.caches import ResolvedOutput
from indexer.rows.histories import HistoryCounts, SupplyChange
from indexer.rows.outputs import UtxoRow, lovelace_of_scripts, utxo_row
from indexer.rows.resolver import OutputFacts, PlacedOutput, facts_of, resolve, stake_nos
from shared import packed, sql
from shared.ledger import AddressNo, AssetNo, ScriptKey, StakeNo, TxId, slot_of
from shared.packed import OutputKey


class Undone(msgspec.Struct, frozen=True):
    """The changes of some transactions.

    `amounts`, `supplies` and `script_lovelace` have the opposite sign already, so they are added; everything else is as
    it was written.

    `lovelace_out` is the lovelace in the outputs of each transaction. `made` are the rows of the unspent outputs that
    cease to exist; `restored` are the outputs that are unspent again. `entries` counts the entries of each history to
    remove, `spent` the entries of `spender` in each slot_no. `assets` are all that the transactions paid, minted or
    burned, `reward_accounts` the stake credentials of their withdrawals and credits. `unused_addresses` are those that
    only these transactions have used; they have no number any more.
    """

    transactions: int
    lovelace_out: list[tuple[TxId, int]]
    script_lovelace: int
    amounts: Amounts
    supplies: dict[AssetNo, SupplyChange]
    assets: set[AssetNo]
    reward_accounts: set[StakeNo]
    made: list[UtxoRow]
    restored: dict[OutputKey, ResolvedOutput]
    entries: HistoryCounts
    spent: Counter[int]
    unused_addresses: Sequence[bytes] = ()


async def read(db: asyncpg.Connection, first_tx_id: TxId) -> Undone:
    """Read the changes of the transactions from `first_tx_id` on."""
    rows = await _transactions_from.all(db, first_tx_id)
    made, inputs = [_made(row) for row in rows], [_known_inputs(row) for row in rows]
    made_by = await _makers(db, rows, inputs)
    spent = [
        [PlacedOutput(made_by[known.tx_hash], known.output_index, known.source) for known in of_tx] for of_tx in inputs
    ]
    facts = await facts_of(db, [placed for outputs in (*made, *spent) for placed in outputs])
    # Outputs that these transactions both make and spend move nothing.
    spent_places = {(source.tx_id, source.output_index) for sources in spent for source in sources}
    unspent = [
        placed for outputs in made for placed in outputs if (placed.tx_id, placed.output_index) not in spent_places
    ]
    earlier = [source for sources in spent for source in sources if source.tx_id < first_tx_id]
    removed, restored = resolve(unspent, facts), resolve(earlier, facts)
    hashes = {tx_id: tx_hash for tx_hash, tx_id in made_by.items()}
    amounts = Amounts()
    amounts.move(removed, -1)
    amounts.move(restored, 1)
    amounts.unspent += resolve(list(chain.from_iterable(spent)), facts)
    supplies = _unminted([packed.unpack_mint(row.mint) for row in rows if row.mint is not None])
    extras = [packed.unpack_extra(row.extra) for row in rows if row.extra is not None]
    numbers, histories = await _account_numbers(db, extras), _histories(made, spent, facts)
    return Undone(
        transactions=len(rows),
        lovelace_out=_lovelace_out(rows, made),
        script_lovelace=lovelace_of_scripts(restored) - lovelace_of_scripts(removed),
        amounts=amounts,
        supplies=supplies,
        assets=histories.asset_txs.keys() | supplies.keys(),
        reward_accounts=set(numbers.values()),
        made=[utxo_row(output) for output in removed],
        restored={packed.output_key(hashes[output.tx_id], output.index): output for output in restored},
        entries=msgspec.structs.replace(
            histories,
            withdrawals=Counter(numbers[account] for extra in extras for account in extra.withdrawals),
            label_txs=Counter(label_no for extra in extras for label_no in extra.label_nos),
            redeemer_txs=Counter(chain.from_iterable(_redeemers(row, facts) for row in rows)),
        ),
        spent=Counter(slot_of(source.tx_id) for sources in spent for source in sources),
    )


def _made(row: "_Packed") -> list[PlacedOutput]:
    """The outputs that a transaction makes."""
    first_index, outputs = packed.unpack_outputs(row.outputs)
    return [PlacedOutput(row.tx_id, index, output) for index, output in enumerate(outputs, first_index)]


def _known_inputs(row: "_Packed") -> "list[_KnownInput]":
    """The inputs of a transaction, without those that spend outputs from before the first indexed block."""
    return [
        _KnownInput(spent.tx_hash, spent.output_index, spent.source)
        for spent in packed.unpack_inputs(row.inputs)
        if spent.source is not None
    ]


async def _makers(
    db: asyncpg.Connection, rows: "list[_Packed]", inputs: "list[list[_KnownInput]]"
) -> dict[bytes, TxId]:
    """The tx_id of each of these transactions, and of those whose outputs they spend, by hash."""
    made_by = {row.hash: row.tx_id for row in rows}
    earlier = {known.tx_hash for of_tx in inputs for known in of_tx} - made_by.keys()
    if earlier:
        made_by |= {row.tx_hash: row.tx_id for row in await _made_by.all(db, list(earlier))}
    return made_by


def _lovelace_out(rows: "list[_Packed]", made: list[list[PlacedOutput]]) -> list[tuple[TxId, int]]:
    """The lovelace in the outputs of each transaction."""
    return [
        (row.tx_id, sum(placed.output.lovelace for placed in outputs)) for row, outputs in zip(rows, made, strict=True)
    ]


def _histories(made: list[list[PlacedOutput]], spent: list[list[PlacedOutput]], facts: OutputFacts) -> HistoryCounts:
    """The number of these transactions in each history but those of withdrawals."""
    addresses, accounts, assets = list[AddressNo](), list[StakeNo](), list[AssetNo]()
    credentials = list[AddressNo]()
    for outputs, sources in zip(made, spent, strict=True):
        of_tx = {placed.output.address_no for placed in (*outputs, *sources)}
        addresses += of_tx
        accounts += {facts.stakes[address_no] for address_no in of_tx if address_no in facts.stakes}
        credentials += {
            facts.credentials[address_no] for address_no in of_tx if address_no in facts.credentials
        } - of_tx
        assets += {asset_no for placed in outputs for asset_no in placed.output.quantities}
    return HistoryCounts(
        address_txs=Counter(addresses),
        account_txs=Counter(accounts),
        credential_txs=Counter(credentials),
        asset_txs=Counter(assets),
    )


def _redeemers(row: "_Packed", facts: OutputFacts) -> list[ScriptKey]:
    """The scripts under which a transaction is listed, once for each redeemer."""
    if row.extra is None:
        return []
    extra = packed.unpack_extra(row.extra)
    scripts = list(extra.redeemers)
    if extra.spends:
        inputs = packed.unpack_spent(row.inputs)
        sources = (inputs[place].source for place in extra.spends)
        scripts += [facts.locked_by.get(source.address_no) for source in sources if source is not None]
    return [script_key for script_key in scripts if script_key is not None]


async def _account_numbers(db: asyncpg.Connection, extras: list[packed.Extra]) -> dict[bytes, StakeNo]:
    """The numbers of the accounts of withdrawals and credits."""
    accounts = {account for extra in extras for account in (*extra.withdrawals, *extra.credits)}
    return {row.raw: row.number for row in await stake_nos.all(db, list(accounts))} if accounts else {}


def _unminted(mints: list[packed.Quantities]) -> dict[AssetNo, SupplyChange]:
    supplies: dict[AssetNo, SupplyChange] = {}
    for mint in mints:
        for asset_no, quantity in mint.items():
            supplies.setdefault(asset_no, SupplyChange()).mint(quantity, -1)
    return supplies


class _KnownInput(NamedTuple):
    """An input and the output that it spends."""

    tx_hash: bytes
    output_index: int
    source: packed.Output


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
