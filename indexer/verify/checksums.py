"""Checksums over history that the derived tables must match: the quick part of verify, before it recomputes key by key.

Each row of a derived table, or each amount that moves in it, adds one term to an exact integer: the product of its
quantities, a key for each row number and a weight for each tx_id. checksums.sql computes the same sums over the tables.
The chance that a single wrong row is missed is about one in a billion.
"""

from collections.abc import Mapping, Sequence

import asyncpg
import msgspec

from indexer.verify import recompute, spenders
from indexer.verify.spending import GenesisOutput
from shared import metadata, packed, sql
from shared.address import stake_of
from shared.ledger import AddressNo, AssetNo
from shared.sql import Connection

PRIME = (1 << 31) - 1
_SPREAD = 1_640_531_527


class Sums(msgspec.Struct, frozen=True):
    """One sum for each table that depends on history alone.

    `spending` is a sum over inputs less that over entries of `spender`, and `disordered` the number of its rows that
    are not in order: both must be 0.
    """

    address_tx: int = 0
    account_tx: int = 0
    account_withdrawal: int = 0
    asset_tx: int = 0
    mint: int = 0
    named: int = 0
    holder: int = 0
    stake: int = 0
    spender: int = 0
    spending: int = 0
    disordered: int = 0
    utxo: int = 0
    reference_output: int = 0
    spent_reference: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*map(sum, zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)))


class Summed(msgspec.Struct, frozen=True):
    """The sums that follow from rows alone, and the data for those that need a look-up.

    `touched` has the addresses of each transaction with its weight, and `moved` the lovelace that addresses received
    less what they spent. `paid` and `spent` hold the assets of outputs, each with the factor of its term.
    """

    sums: Sums
    touched: list[tuple[int, set[AddressNo]]]
    moved: dict[AddressNo, int]
    paid: list[tuple[int, packed.Quantities]]
    spent: list[tuple[int, packed.Quantities]]


Transaction = tuple[int, bytes, bytes, bytes | None, bytes | None, bytes]
"""tx_id, outputs, inputs, mint, extra and hash, as in `tx`."""


async def of_genesis(db: Connection, outputs: Sequence[GenesisOutput]) -> Sums:
    """The contribution of genesis outputs."""
    owners = [(account, output.lovelace) for output in outputs if (account := stake_of(output.address)) is not None]
    keys = await _keys_of_accounts(db, [account for account, _ in owners])
    spent, disordered = spenders.spent_in(await spenders.of_genesis(db))
    unspent = [output for output in outputs if 0 not in spent.get(output.tx_id, _NONE)]
    return Sums(
        stake=sum(keys.get(account, 0) * lovelace for account, lovelace in owners),
        spending=-sum(_of_spenders(output.tx_hash, spent.get(output.tx_id, _NONE)) for output in outputs),
        disordered=disordered,
        utxo=sum(
            weight_of(output.tx_id) * key_of(output.address_no or 0) * (output.lovelace + 1) for output in unspent
        ),
    )


async def of(db: Connection, transactions: Sequence[Transaction], rows: Sequence[spenders.SpenderRow]) -> Sums:
    """The sums of some transactions, whole blocks, with the rows of `spender` for their slots."""
    spent, disordered = spenders.spent_in(rows)
    summed = _of_rows(transactions, spent)
    found = await recompute.accounts.all(db, list(summed.moved))
    # The number below the key tells two accounts with the same key apart, and is shifted out of sums.
    accounts = {account.address_no: key_of(account.stake_no) << 64 | account.stake_no for account in found}
    assets = set[AssetNo]().union(*(quantities for _, quantities in (*summed.paid, *summed.spent)))
    tokens = {found.asset_no for found in await _reference_tokens.all(db, list(assets), metadata.REFERENCE_PREFIX)}
    return (
        summed.sums
        + await _of_mints(db, transactions)
        + Sums(
            account_tx=_of_accounts(summed.touched, accounts),
            account_withdrawal=await _of_withdrawals(db, transactions),
            stake=sum((key >> 64) * summed.moved[address_no] for address_no, key in accounts.items()),
            disordered=disordered,
            reference_output=_of_tokens(summed.paid, tokens),
            spent_reference=_of_tokens(summed.spent, tokens),
        )
    )


def _of_rows(transactions: Sequence[Transaction], gone_by: spenders.Spent) -> Summed:
    """The sums of some transactions that follow from their outputs, their inputs and what spent the outputs.

    NOTE: one long function on purpose. It runs for every transaction of the chain, and a call for each output would
    cost more than the sums.
    """
    address_tx = asset_tx = holder = inputs = spending = utxo = 0
    moved: dict[AddressNo, int] = {}
    all_touched, paid, spent_with_assets = [], [], []
    unpack_outputs, unpack_inputs = packed.unpack_outputs, packed.unpack_inputs
    for tx_id, packed_outputs, packed_inputs, _, _, tx_hash in transactions:
        weight = (tx_id + 1) % PRIME
        weight = weight * weight % PRIME
        gone = gone_by.get(tx_id, _NONE)
        touched = set()
        first_index, outputs = unpack_outputs(packed_outputs)
        for index, output in enumerate(outputs, first_index):
            address_no, lovelace = output.address_no, output.lovelace
            touched.add(address_no)
            moved[address_no] = moved.get(address_no, 0) + lovelace
            held = 0
            if output.quantities:
                key = key_of(address_no)
                for asset_no, quantity in output.quantities.items():
                    of_asset = key_of(asset_no)
                    held += of_asset
                    part = of_asset * quantity
                    holder += key * part
                    asset_tx += weight * part
                paid.append((weight * (index + 1), output.quantities))
            if index not in gone:
                utxo += weight * (index + 1) * (key_of(address_no) * (lovelace + 1) + held)
        for spent in unpack_inputs(packed_inputs):
            source = spent.source
            if source is None:
                continue
            address_no = source.address_no
            touched.add(address_no)
            moved[address_no] = moved.get(address_no, 0) - source.lovelace
            inputs += 1
            factor = int.from_bytes(spent.tx_hash[:4]) * (spent.output_index + 1) * weight
            spending += factor
            if source.quantities:
                key = key_of(address_no)
                for asset_no, quantity in source.quantities.items():
                    holder -= key * key_of(asset_no) * quantity
                spent_with_assets.append((factor, source.quantities))
        if gone:
            spending -= _of_spenders(tx_hash, gone)
        address_tx += weight * sum(map(key_of, touched))
        all_touched.append((weight, touched))
    sums = Sums(address_tx=address_tx, asset_tx=asset_tx, holder=holder, spender=inputs, spending=spending, utxo=utxo)
    return Summed(sums, all_touched, moved, paid, spent_with_assets)


def _of_spenders(tx_hash: bytes, gone: Mapping[int, int]) -> int:
    """The sum over what spent the outputs of a transaction; the same factor as for the inputs that name it."""
    total = 0
    for index, tx_id in gone.items():
        weight = (tx_id + 1) % PRIME
        total += (index + 1) * (weight * weight % PRIME)
    return int.from_bytes(tx_hash[:4]) * total


def _of_accounts(touched: list[tuple[int, set[AddressNo]]], accounts: dict[AddressNo, int]) -> int:
    """The sum over the accounts of each transaction, from its addresses."""
    total = 0
    for weight, addresses in touched:
        total += weight * (sum({accounts.get(address_no, 0) for address_no in addresses}) >> 64)
    return total


async def _of_withdrawals(db: Connection, transactions: Sequence[Transaction]) -> int:
    """The sum over withdrawals, which may be of 0 lovelace."""
    withdrawals = [
        (account, weight_of(tx_id) * (lovelace + 1))
        for tx_id, _, _, _, extra, _ in transactions
        if packed.may_have_withdrawals(extra)
        for account, lovelace in packed.unpack_extra(extra).withdrawals.items()
    ]
    keys = await _keys_of_accounts(db, [account for account, _ in withdrawals])
    return sum(keys.get(account, 0) * factor for account, factor in withdrawals)


async def _keys_of_accounts(db: Connection, accounts: Sequence[bytes]) -> dict[bytes, int]:
    """The keys of reward accounts."""
    rows = await recompute.stakes.all(db, list(set(accounts))) if accounts else []
    return {row.raw: key_of(row.stake_no) for row in rows}


async def _of_mints(db: Connection, transactions: Sequence[Transaction]) -> Sums:
    """The sums over mints, and over those that the transaction's metadata describes."""
    total = 0
    described = []
    for tx_id, _, _, packed_mint, extra, _ in transactions:
        if packed_mint is not None:
            weight, minted = weight_of(tx_id), packed.unpack_mint(packed_mint)
            for asset_no, quantity in minted.items():
                total += key_of(asset_no) * weight * quantity
            if extra is not None:
                described.append((weight, minted, packed.unpack_extra(extra)))
    return Sums(mint=total, named=await _named(db, described))


async def _named(db: Connection, described: list[tuple[int, packed.Quantities, packed.Extra]]) -> int:
    """The sum of the mints, each with its weight, that the metadata beside them describes."""
    assets = set[AssetNo]().union(*(minted for _, minted, _ in described))
    names = {found.asset_no: found for found in await recompute.asset_names.all(db, list(assets))} if assets else {}
    total = 0
    for weight, minted, extra in described:
        entries = metadata.Described(extra)
        for asset_no, quantity in minted.items():
            asset = names.get(asset_no)
            if quantity > 0 and asset is not None and entries.entry(asset.policy_id, asset.name) is not None:
                total += key_of(asset_no) * weight
    return total


def _of_tokens(held: list[tuple[int, packed.Quantities]], tokens: set[AssetNo]) -> int:
    """The sum over the reference tokens in some outputs."""
    if not tokens:
        return 0
    return sum(factor * key_of(asset_no) for factor, quantities in held for asset_no in tokens & quantities.keys())


def key_of(number: int) -> int:
    """The key of a row number.

    NOTE: computed each time. A dictionary of them would soon be larger than the processor's cache.
    """
    number = (number + _SPREAD) % PRIME
    return number * number % PRIME * number % PRIME


def weight_of(tx_id: int) -> int:
    """The weight of a tx_id, which is negative for a genesis output."""
    weight = (tx_id + 1) % PRIME
    return weight * weight % PRIME


async def make_functions(db: asyncpg.Connection) -> None:
    """Create the temporary functions that the statements of this module need."""
    for command in _MAKE:
        await command.run(db)


async def of_tables(db: asyncpg.Connection) -> dict[str, str | None]:
    """The sum of each derived table, as text; None if its rows are inconsistent."""
    sums = {}
    for name, query in _TABLES.items():
        found = await query.one(db)
        assert found is not None, "a statement that adds up has one row"
        sums[name] = found.total
    return sums


def agree(history: Sums, tables: dict[str, str | None]) -> bool:
    """Whether the derived tables match history, and each other where one depends on another."""
    expected = {name: str(total) for name, total in msgspec.structs.asdict(history).items()}
    # A sum on one side only must be 0.
    return dict.fromkeys(expected, "0") | tables == dict.fromkeys(tables, "0") | expected


class _AssetNo(msgspec.Struct, frozen=True):
    asset_no: AssetNo


class _Total(msgspec.Struct, frozen=True):
    total: str | None


_NONE: dict[int, int] = {}
_sql = sql.beside(__file__)
_MAKE = tuple(_sql.command(name) for name in ("make_key_of", "make_weight_of", "make_holding_of"))
_reference_tokens = _sql.query("reference_tokens", _AssetNo)
_BY_ADDRESS = {"history": "address_tx", "numbered": "address_no", "owner": "address"}
_BY_ACCOUNT = {"history": "account_tx", "numbered": "stake_no", "owner": "stake"}
_TABLES = {
    "address_tx": _sql.query("history", _Total, **_BY_ADDRESS),
    "account_tx": _sql.query("history", _Total, **_BY_ACCOUNT),
    "policy_holder": _sql.query("policy_holders", _Total, holder="holder", who="address_no"),
    "policy_account_holder": _sql.query("policy_holders", _Total, holder="account_holder", who="account_no"),
} | {
    name: _sql.query(name, _Total)
    for name in (
        "account_withdrawal",
        "asset_tx",
        "mint",
        "named",
        "holder",
        "account_holder",
        "stake",
        "spender",
        "utxo",
        "reference_output",
        "spent_reference",
        "asset",
        "policy",
    )
}
