"""Checksums over history that the derived tables must match: the quick part of verify, before it recomputes key by key.

Each row of a derived table, or each amount that moves in it, adds one term to an exact integer: the product of its
quantities, a key for each row number and a weight for each tx_id. checksums.sql computes the same sums over the tables,
histories.py those over the history tables. The chance that a single wrong row is missed is about one in a billion.
"""

from collections.abc import Sequence
from operator import mul

import asyncpg
import msgspec

from indexer.verify import recompute, spenders
from indexer.verify.flows import Flows, WithAssets
from indexer.verify.keys import key_of, weight_of
from indexer.verify.numbers import Numbers
from indexer.verify.results import Difference
from indexer.verify.spending import GenesisOutput, spending_of
from shared import metadata, sql
from shared.ledger import AssetNo
from shared.sql import Connection


class Sums(msgspec.Struct, frozen=True):
    """One sum for each table that depends on history alone.

    `spending` is a sum over inputs less that over the outputs that `spender` says are spent (spending.spending_of), and
    `disordered` the number of rows of `spender` that are not in order: both must be 0.
    """

    address_tx: int = 0
    account_tx: int = 0
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
    spent, disordered = spenders.spent_in(await spenders.of_genesis(db))
    spending = utxo = 0
    for output in outputs:
        spent_by = spent.get(spenders.output_no(output.tx_id, 0))
        if spent_by is None:
            utxo += weight_of(output.tx_id) * key_of(output.address_no or 0) * (output.lovelace + 1)
        elif output.output is not None:
            spending -= spending_of(output.tx_hash, 0, output.output, spent_by)
    return Sums(spending=spending, disordered=disordered, utxo=utxo)


async def of(db: Connection, flows: Flows, disordered: int, numbers: Numbers) -> Sums:
    """The sums of some transactions, whole blocks; `disordered` rows of `spender` for their slots are not in order."""
    tokens = numbers.reference_tokens(flows.asset_keys)
    paid, spent = _of_tokens(flows.with_assets, tokens) if tokens else (0, 0)
    return Sums(
        address_tx=flows.address_tx,
        account_tx=sum(map(mul, flows.weights, numbers.squares_of_accounts(flows.touched))),
        account_withdrawal=await _of_withdrawals(db, flows),
        asset_tx=flows.asset_tx,
        mint=flows.mint,
        named=await _named(db, flows),
        holder=flows.holder,
        spender=flows.inputs,
        spending=flows.spending,
        disordered=disordered,
        utxo=flows.utxo,
        reference_output=paid,
        spent_reference=spent,
    )


async def _of_withdrawals(db: Connection, flows: Flows) -> int:
    """The sum over withdrawals, which may be of 0 lovelace."""
    keys = await _keys_of_accounts(db, [account for account, _, _ in flows.withdrawals])
    return sum(keys.get(account, 0) * weight * (lovelace + 1) for account, lovelace, weight in flows.withdrawals)


async def _keys_of_accounts(db: Connection, accounts: Sequence[bytes]) -> dict[bytes, int]:
    """The keys of reward accounts."""
    rows = await recompute.stakes.all(db, list(set(accounts))) if accounts else []
    return {row.raw: key_of(row.stake_no) for row in rows}


async def _named(db: Connection, flows: Flows) -> int:
    """The sum over the mints that the metadata of their transaction describes."""
    assets = set[AssetNo]().union(*(minted for _, minted, _ in flows.described))
    names = {found.asset_no: found for found in await recompute.asset_names.all(db, list(assets))} if assets else {}
    total = 0
    for weight, minted, extra in flows.described:
        entries = metadata.Described(extra)
        for asset_no, quantity in minted.items():
            asset = names.get(asset_no)
            if quantity > 0 and asset is not None and entries.entry(asset.policy_id, asset.name) is not None:
                total += key_of(asset_no) * weight
    return total


def _of_tokens(outputs: Sequence[WithAssets], tokens: set[int]) -> tuple[int, int]:
    """The sum over the reference tokens in some outputs, and that over those of them which are spent."""
    paid = spent = 0
    for made_by, index, quantities, spent_by in outputs:
        if not tokens.isdisjoint(quantities):
            keys = sum(map(key_of, tokens & quantities.keys())) * (index + 1)
            paid += keys * weight_of(made_by.tx_id)
            if spent_by is not None:
                spent += keys * int.from_bytes(made_by.hash[:4]) * weight_of(spent_by)
    return paid, spent


async def make_functions(db: asyncpg.Connection) -> None:
    """Create the temporary functions that the statements of this module need."""
    for command in _MAKE:
        await command.run(db)


async def of_tables(db: asyncpg.Connection) -> dict[str, str | None]:
    """The sum of each derived table except those of histories.py, as text; None if its rows are inconsistent."""
    sums = {}
    for name, query in _TABLES.items():
        found = await query.one(db)
        assert found is not None, "a statement that adds up has one row"
        sums[name] = found.total
    return sums


def unequal(history: Sums, tables: dict[str, str | None]) -> list[Difference]:
    """The sums in which derived tables differ from history, or from each other where one depends on another."""
    expected = {name: str(total) for name, total in msgspec.structs.asdict(history).items()}
    # A sum on one side only must be 0.
    return [
        Difference(f"checksum {name}", None, tables.get(name, "0"), expected.get(name, "0"))
        for name in expected | tables
        if tables.get(name, "0") != expected.get(name, "0")
    ]


class _Total(msgspec.Struct, frozen=True):
    total: str | None


_sql = sql.beside(__file__)
_MAKE = tuple(_sql.command(name) for name in ("make_key_of", "make_weight_of", "make_holding_of"))
_TABLES = {
    "policy_holder": _sql.query("policy_holders", _Total, holder="holder", owner_no="address_no"),
    "policy_account_holder": _sql.query("policy_holders", _Total, holder="account_holder", owner_no="account_no"),
} | {
    name: _sql.query(name, _Total)
    for name in (
        "account_withdrawal",
        "mint",
        "named",
        "holder",
        "account_holder",
        "stake",
        "address_count",
        "spender",
        "utxo",
        "reference_output",
        "spent_reference",
        "asset",
        "policy",
    )
}
