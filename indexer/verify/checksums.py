"""Checksums over history that the derived tables must match: the quick part of verify, before it recomputes key by key.

Each row of a derived table, or each amount that moves in it, adds one term: the product of its quantities, a key for
each row number and a weight for each tx_id (keys.py). checksums.sql computes the same sums over the tables,
histories.py those over the history tables. The chance that a single wrong row is missed is about one in a billion.
"""

from collections.abc import Sequence

import asyncpg
import msgspec
import numpy as np

from indexer.verify import flows, recompute, spenders
from indexer.verify.flows import Flows, Mint, Outputs, Withdrawal
from indexer.verify.keys import PRIME, Ints, Mask, Words, distinct, ints, key_of, sums_at, weight_of
from indexer.verify.moments import Moments
from indexer.verify.numbers import Numbers
from indexer.verify.results import Difference
from indexer.verify.spenders import Spenders
from indexer.verify.spending import GenesisOutput, Row
from shared import metadata, sql
from shared.ledger import AssetNo
from shared.sql import Connection


class Sums(msgspec.Struct, frozen=True):
    """One sum for each table that depends on history alone, to be compared modulo PRIME.

    histories.py adds up `address_count`. `spender` is the number of inputs less that of the entries of `spender`,
    `spending` a sum over inputs less that over the outputs that `spender` says are spent, and `disordered` the number
    of rows of `spender` that are not in order: each must be 0.
    """

    address_tx: int = 0
    account_tx: int = 0
    address_count: int = 0
    account_withdrawal: int = 0
    asset_tx: int = 0
    mint: int = 0
    named: int = 0
    holder: int = 0
    spender: int = 0
    spending: int = 0
    disordered: int = 0
    utxo: int = 0
    reference_output: int = 0
    spent_reference: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*map(sum, zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)))


async def of_genesis(db: Connection, outputs: Sequence[GenesisOutput]) -> Sums:
    """The contribution of genesis outputs."""
    spent = spenders.spent_in(await spenders.of_genesis(db))
    made, tx_id = flows.of_genesis(outputs), ints([output.tx_id for output in outputs])
    spent_by = spent.of(tx_id, made.index)
    return Sums(
        spender=-len(spent.output_no),
        spending=-int(_terms(made, spent_by)[spent_by >= 0].sum()),
        disordered=spent.disordered,
        utxo=_of_unspent(made, weight_of(tx_id), spent_by < 0),
    )


async def of(db: Connection, rows: Sequence[Row], flows: Flows, spent: Spenders, numbers: Numbers) -> Sums:
    """The sums of some transactions, whole blocks; `spent` are the outputs that `spender` names for their slots."""
    return msgspec.structs.replace(
        of_flows(rows, flows, spent, numbers),
        account_withdrawal=await _of_withdrawals(db, flows.withdrawals),
        named=await _named(db, flows.mints),
    )


def of_flows(rows: Sequence[Row], flows: Flows, entries: Spenders, numbers: Numbers) -> Sums:
    """The same without the sums that need names of accounts and assets: `account_withdrawal` and `named`."""
    made, spent, spent_by = flows.made, flows.spent, flows.spent_by
    weights, unspent = weight_of(flows.tx_id), spent_by < 0
    row, address_no = np.concatenate((made.row, spent.row)), np.concatenate((made.address_no, spent.address_no))
    account_no = numbers.account_nos(address_no)
    with_account = account_no >= 0
    reference_output, spent_reference = _of_tokens(rows, flows, weights, numbers)
    return Sums(
        address_tx=_of_touched(weights, row, address_no),
        account_tx=_of_touched(weights, row[with_account], account_no[with_account]),
        asset_tx=_of_payments(made, weights),
        mint=_of_mints(flows, weights),
        holder=_of_holdings(made, unspent),
        spender=len(spent.row) - len(entries.output_no),
        spending=of_spending(flows),
        disordered=entries.disordered,
        utxo=_of_unspent(made, weights, unspent),
        reference_output=reference_output,
        spent_reference=spent_reference,
    )


def _of_touched(weights: Ints, row: Ints, number: Ints) -> int:
    """The sum over the addresses or accounts of each transaction, each of which counts once."""
    touched = distinct(row << 32 | number)
    return _total(weights[touched >> 32] * key_of(touched & 0xFFFFFFFF))


def _of_payments(made: Outputs, weights: Ints) -> int:
    """The sum over the assets in outputs."""
    return _total(weights[made.row[made.assets.place]] * made.assets.value)


def _of_holdings(made: Outputs, unspent: Mask) -> int:
    """The sum over the assets in unspent outputs."""
    assets, held = made.assets, unspent[made.assets.place]
    holder_key = key_of(made.address_no[assets.place[held]])
    return _total(holder_key * assets.value[held])


def _of_unspent(made: Outputs, weights: Ints, unspent: Mask) -> int:
    """The sum over unspent outputs."""
    keys_held = sums_at(made.assets.key, made.assets.place, len(made.row))[unspent]
    lovelace = key_of(made.address_no[unspent]) * (made.lovelace[unspent] % PRIME + 1)
    place = weights[made.row[unspent]] * (made.index[unspent] + 1) % PRIME
    return _total(place * ((lovelace + keys_held) % PRIME))


def of_spending(flows: Flows) -> int:
    """The sum over inputs, less that over the outputs that `spender` says are spent."""
    spent = _terms(flows.spent, flows.tx_id[flows.spent.row])
    return int(spent.sum()) - int(_terms(flows.made, flows.spent_by)[flows.spent_by >= 0].sum())


def _terms(outputs: Outputs, spent_by: Ints) -> Words:
    """Hashes of outputs and the transactions that spend them. They have 32 bits, so that sums of a part are exact."""
    mixed = np.zeros(len(spent_by), np.uint64)
    columns = (outputs.hash_part, outputs.index, outputs.address_no, outputs.lovelace, outputs.value, spent_by)
    for factor, column in zip(_FACTORS, columns, strict=True):
        mixed += factor * column.astype(np.uint64)
    # The mixing function of SplitMix64: without it, two wrong terms could cancel each other out.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed >> np.uint64(32)


def _of_tokens(rows: Sequence[Row], flows: Flows, weights: Ints, numbers: Numbers) -> tuple[int, int]:
    """The sum over the reference tokens in outputs, and that over those of them which are spent."""
    made, assets = flows.made, flows.made.assets
    tokens = numbers.are_reference_tokens(assets.asset_no)
    place = assets.place[tokens]
    made_by, spent_by = made.row[place], flows.spent_by[place]
    key = assets.key[tokens] * (made.index[place] + 1) % PRIME
    first_bytes = ints([int.from_bytes(rows[row].hash[:4]) for row in made_by.tolist()])
    of_spent = (key * (first_bytes % PRIME) % PRIME * weight_of(spent_by))[spent_by >= 0]
    return _total(key * weights[made_by]), _total(of_spent)


def _of_mints(flows: Flows, weights: Ints) -> int:
    """The sum over mints."""
    return _total(weights[flows.minted.place] * flows.minted.value)


async def _of_withdrawals(db: Connection, withdrawals: Sequence[Withdrawal]) -> int:
    """The sum over withdrawals, which may be of 0 lovelace."""
    keys = await _keys_of_accounts(db, [each.account for each in withdrawals])
    return sum(keys.get(each.account, 0) * weight_of(each.tx_id) * (each.lovelace + 1) for each in withdrawals)


async def _keys_of_accounts(db: Connection, accounts: Sequence[bytes]) -> dict[bytes, int]:
    """The keys of reward accounts."""
    rows = await recompute.stakes.all(db, list(set(accounts))) if accounts else []
    return {row.raw: key_of(row.stake_no) for row in rows}


async def _named(db: Connection, mints: Sequence[Mint]) -> int:
    """The sum over the mints that the metadata of their transaction describes."""
    described = [mint for mint in mints if mint.extra.metadata_cbor or mint.extra.metadata_json]
    assets = set[AssetNo]().union(*(mint.quantities for mint in described))
    names = {found.asset_no: found for found in await recompute.asset_names.all(db, list(assets))} if assets else {}
    total = 0
    for mint in described:
        entries = metadata.Described(mint.extra)
        for asset_no, quantity in mint.quantities.items():
            asset = names.get(asset_no)
            if quantity > 0 and asset is not None and entries.entry(asset.policy_id, asset.name) is not None:
                total += key_of(asset_no) * weight_of(mint.tx_id)
    return total


def _total(terms: Ints) -> int:
    """The sum of some terms, each modulo PRIME."""
    return int((terms % PRIME).sum())


async def make_functions(db: asyncpg.Connection) -> None:
    """Create the temporary functions and the view that the statements of verify need."""
    for command in _MAKE:
        await command.run(db)


async def of_changing(db: asyncpg.Connection) -> dict[str, str | None]:
    """The sums of the derived tables whose rows change with every block, as text; None if its rows are inconsistent."""
    return {name: (await query.all(db))[0].total for name, query in _CHANGING.items()}


async def of_growing(moments: Moments) -> dict[str, str | None]:
    """The same of the other tables except those of histories.py: of their rows up to the noted block, or the number of
    rows that differ from those of another table, whatever the last block is.
    """
    sums = dict[str, str | None]()
    for name, query in _GROWING.items():
        async with moments.next() as moment:
            sums[name] = (await query.all(moment.db, moment.first_new, moment.next_new))[0].total
    for name, query in _OF_OTHERS.items():
        sums[name] = (await moments.all(query))[0].total
    return sums


def unequal(history: Sums, tables: dict[str, str | None]) -> list[Difference]:
    """The sums in which derived tables differ from history, or from each other where one depends on another."""
    # A sum on one side only must be 0.
    expected = {
        name: str(total % PRIME if name in tables else total) for name, total in msgspec.structs.asdict(history).items()
    }
    return [
        Difference(f"checksum {name}", None, tables.get(name, "0"), expected.get(name, "0"))
        for name in expected | tables
        if tables.get(name, "0") != expected.get(name, "0")
    ]


class _Total(msgspec.Struct, frozen=True):
    total: str | None


# Odd numbers, one for each column of a term.
_FACTORS = [
    np.uint64(factor)
    for factor in (
        0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
        0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0xE7037ED1A0B428DB,
    )
]  # fmt: skip
_sql = sql.beside(__file__)
_MAKE = tuple(
    _sql.command(name)
    for name in ("make_key_of", "make_weight_of", "make_holding_of", "make_reduced", "make_left_output")
)
_CHANGING = {name: _sql.query(name, _Total) for name in ("holder", "utxo", "address_count")}
_GROWING = {
    name: _sql.query(name, _Total)
    for name in ("account_withdrawal", "mint", "named", "reference_output", "spent_reference")
}
_OF_OTHERS = {
    "policy_holder": _sql.query("policy_holders", _Total, holder="holder", owner_no="address_no"),
    "policy_account_holder": _sql.query("policy_holders", _Total, holder="account_holder", owner_no="account_no"),
} | {name: _sql.query(name, _Total) for name in ("account_holder", "stake", "policy")}
