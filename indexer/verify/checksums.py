"""Checksums over history that the derived tables must match: the quick part of verify, before it recomputes key by key.

Each row of a derived table, or each amount that moves in it, adds one term to an exact integer: the product of its
quantities, a key for each row number and a weight for each tx_id. checksums.sql computes the same sums over the tables.
The chance that a single wrong row is missed is about one in a billion.
"""

from collections.abc import Iterable

import asyncpg
import msgspec

from indexer.verify import recompute
from shared import metadata, packed, sql
from shared.address import stake_of
from shared.ledger import AddressNo, AssetNo, StakeNo
from shared.sql import Connection

PRIME = (1 << 31) - 1
_SPREAD = 1_640_531_527


class Sums(msgspec.Struct, frozen=True):
    """One sum for each table that depends on history alone."""

    address_tx: int = 0
    asset_tx: int = 0
    mint: int = 0
    named: int = 0
    holder: int = 0
    stake: int = 0
    reference_output: int = 0
    spent_reference: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*map(sum, zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)))


class Summed(msgspec.Struct, frozen=True):
    """The sums that follow from rows alone, and the data for those that need a look-up.

    `moved` is the lovelace that addresses received less what they spent. `paid` and `spent` hold the assets of outputs,
    `minted` the mints with their metadata, each with the factor of its term.
    """

    sums: Sums
    moved: dict[AddressNo, int]
    paid: list[tuple[int, packed.Quantities]]
    spent: list[tuple[int, packed.Quantities]]
    minted: list[tuple[int, packed.Quantities, packed.Extra]]


async def of_genesis(db: Connection, outputs: list[tuple[bytes, int]]) -> Sums:
    """The contribution of genesis outputs (address, lovelace) to stake."""
    accounts = [(account, lovelace) for address, lovelace in outputs if (account := stake_of(address)) is not None]
    keys = {row.raw: key_of(row.stake_no) for row in await _stakes.all(db, [account for account, _ in accounts])}
    return Sums(stake=sum(keys.get(account, 0) * lovelace for account, lovelace in accounts))


async def of(db: Connection, transactions: Iterable[tuple[int, bytes, bytes, bytes | None, bytes | None]]) -> Sums:
    """The sums of some transactions: their tx_id, outputs, inputs, mint and extra as in `tx`."""
    summed = _of_rows(transactions)
    accounts = await _accounts.all(db, list(summed.moved))
    stake = sum(key_of(account.stake_no) * summed.moved[account.address_no] for account in accounts)
    assets = set[AssetNo]().union(*(quantities for _, quantities in (*summed.paid, *summed.spent)))
    tokens = {found.asset_no for found in await _reference_tokens.all(db, list(assets), metadata.REFERENCE_PREFIX)}
    return summed.sums + Sums(
        stake=stake,
        named=await _named(db, summed),
        reference_output=_of_tokens(summed.paid, tokens),
        spent_reference=_of_tokens(summed.spent, tokens),
    )


def _of_rows(transactions: Iterable[tuple[int, bytes, bytes, bytes | None, bytes | None]]) -> Summed:
    """The sums of some transactions that follow from their rows alone.

    NOTE: one long function on purpose, beyond the usual limit of complexity. It runs for every transaction
    of the chain, and a call for each output would cost more than the sums.
    """
    address_tx = asset_tx = mint = holder = 0
    moved: dict[AddressNo, int] = {}
    paid, spent_with_assets, all_minted = [], [], []
    unpack_outputs, unpack_inputs = packed.unpack_outputs, packed.unpack_inputs
    for tx_id, packed_outputs, packed_inputs, packed_mint, extra in transactions:
        weight = (tx_id + 1) % PRIME
        weight = weight * weight % PRIME
        touched = set()
        first_index, outputs = unpack_outputs(packed_outputs)
        for place, output in enumerate(outputs, first_index + 1):
            address_no = output.address_no
            touched.add(address_no)
            moved[address_no] = moved.get(address_no, 0) + output.lovelace
            if output.quantities:
                key = key_of(address_no)
                for asset_no, quantity in output.quantities.items():
                    part = key_of(asset_no) * quantity
                    holder += key * part
                    asset_tx += weight * part
                paid.append((weight * place, output.quantities))
        for spent in unpack_inputs(packed_inputs):
            source = spent.source
            if source is None:
                continue
            address_no = source.address_no
            touched.add(address_no)
            moved[address_no] = moved.get(address_no, 0) - source.lovelace
            if source.quantities:
                key = key_of(address_no)
                for asset_no, quantity in source.quantities.items():
                    holder -= key * key_of(asset_no) * quantity
                factor = int.from_bytes(spent.tx_hash[:4]) * (spent.output_index + 1) * weight
                spent_with_assets.append((factor, source.quantities))
        address_tx += weight * sum(map(key_of, touched))
        if packed_mint is not None:
            minted = packed.unpack_mint(packed_mint)
            for asset_no, quantity in minted.items():
                mint += key_of(asset_no) * weight * quantity
            if extra is not None:
                all_minted.append((weight, minted, packed.unpack_extra(extra)))
    sums = Sums(address_tx=address_tx, asset_tx=asset_tx, mint=mint, holder=holder)
    return Summed(sums, moved, paid, spent_with_assets, all_minted)


async def _named(db: Connection, summed: Summed) -> int:
    """The sum of the mints that the transaction's metadata describes."""
    assets = set[AssetNo]().union(*(minted for _, minted, _ in summed.minted))
    names = {found.asset_no: found for found in await recompute.asset_names.all(db, list(assets))} if assets else {}
    total = 0
    for weight, minted, extra in summed.minted:
        described = metadata.Described(extra)
        for asset_no, quantity in minted.items():
            asset = names.get(asset_no)
            if quantity > 0 and asset is not None and described.entry(asset.policy_id, asset.name) is not None:
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
    return tables == dict.fromkeys(tables, "0") | expected


class _Account(msgspec.Struct, frozen=True):
    address_no: AddressNo
    stake_no: StakeNo


class _Stake(msgspec.Struct, frozen=True):
    raw: bytes
    stake_no: StakeNo


class _AssetNo(msgspec.Struct, frozen=True):
    asset_no: AssetNo


class _Total(msgspec.Struct, frozen=True):
    total: str | None


_sql = sql.beside(__file__)
_MAKE = tuple(_sql.command(name) for name in ("make_key_of", "make_weight_of"))
_accounts = _sql.query("accounts", _Account)
_stakes = _sql.query("stakes", _Stake)
_reference_tokens = _sql.query("reference_tokens", _AssetNo)
_TABLES = {name: _sql.query(name, _Total) for name in (*Sums.__struct_fields__, "asset", "policy", "policy_holder")}
