"""Sums over history that the derived tables must agree with: verify's quick look, before it counts key by key.

Each row of a derived table, or each amount that moves in it, is one summand: a product of quantities, of a key of every
byte string (32 bits of its SHA-256) and of a weight of every tx_id, added up in exact integers. checksums.sql adds up
the tables alike. A single wrong row goes unseen with a chance of one in some billions.
"""

from hashlib import sha256

import asyncpg
import msgspec

from shared import metadata, packed, sql
from shared.address import stake_of

PRIME = (1 << 31) - 1
_MOST_REMEMBERED = 500_000


class Sums(msgspec.Struct, frozen=True):
    """One sum for each table that history alone decides."""

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


def of_genesis(outputs: list[tuple[bytes, int]]) -> Sums:
    """What addresses and lovelace of the genesis count for stake."""
    return Sums(stake=sum(_payees[address][1] * lovelace for address, lovelace in outputs))


def of(transactions: list[asyncpg.Record]) -> Sums:
    """The sums of some transactions: their tx_id, outputs, inputs and extra as in `tx`."""
    address_tx = asset_tx = mint = named = holder = stake = reference_output = spent_reference = 0
    payees, keys, reference = _payees, _keys, metadata.REFERENCE_PREFIX
    unpack_outputs, unpack_inputs = packed.unpack_outputs, packed.unpack_inputs
    for tx_id, packed_outputs, packed_inputs, extra in transactions:
        weight = (tx_id + 1) % PRIME
        weight = weight * weight % PRIME
        touched = set()
        first_index, outputs = unpack_outputs(packed_outputs)
        for place, output in enumerate(outputs, first_index + 1):
            key, stake_key = payees[output.address]
            touched.add(key)
            if stake_key:
                stake += stake_key * output.lovelace
            if output.assets:
                for policy_id, quantities in output.assets.items():
                    for name, quantity in quantities.items():
                        asset_key = keys[policy_id + name]
                        moved = asset_key * quantity
                        holder += key * moved
                        asset_tx += weight * moved
                        if name[:4] == reference:
                            reference_output += asset_key * weight * place
        for spent in unpack_inputs(packed_inputs):
            source = spent.source
            if source is None:
                continue
            key, stake_key = payees[source.address]
            touched.add(key)
            if stake_key:
                stake -= stake_key * source.lovelace
            if source.assets:
                for policy_id, quantities in source.assets.items():
                    for name, quantity in quantities.items():
                        asset_key = keys[policy_id + name]
                        holder -= key * asset_key * quantity
                        if name[:4] == reference:
                            spent_reference += asset_key * key_of(spent.tx_hash) * (spent.output_index + 1) * weight
        address_tx += weight * sum(touched)
        if extra is not None and packed.mints(extra):
            unpacked = packed.unpack_extra(extra)
            described = metadata.Described(unpacked)
            for policy_id, quantities in unpacked.mint.items():
                for name, quantity in quantities.items():
                    minted = keys[policy_id + name] * weight
                    mint += minted * quantity
                    if quantity > 0 and described.entry(policy_id, name) is not None:
                        named += minted
    for remembered in (payees, keys):
        if len(remembered) > _MOST_REMEMBERED:
            remembered.clear()
    return Sums(address_tx, asset_tx, mint, named, holder, stake, reference_output, spent_reference)


def key_of(raw: bytes) -> int:
    """A number that stands for a byte string."""
    return int.from_bytes(sha256(raw).digest()[:4])


async def make_functions(db: asyncpg.Connection) -> None:
    """Make what the statements of this module need on a connection."""
    for command in _MAKE:
        await command.run(db)


async def of_tables(db: asyncpg.Connection) -> dict[str, str | None]:
    """The sum of each derived table, as text; None where its rows can't be right."""
    await _key_assets.run(db)
    await db.execute("ANALYZE asset_key")
    sums = {}
    for name, query in _TABLES.items():
        found = await query.one(db)
        assert found is not None, "a statement that adds up has one row"
        sums[name] = found.total
    return sums


def agree(history: Sums, tables: dict[str, str | None]) -> bool:
    """Whether the tables are as history says; those that follow from others have nothing unlike."""
    expected = {name: str(total) for name, total in msgspec.structs.asdict(history).items()}
    return tables == dict.fromkeys(tables, "0") | expected


class _Keys(dict[bytes, int]):
    """The keys of byte strings."""

    def __missing__(self, raw: bytes) -> int:
        key = self[raw] = key_of(raw)
        return key


class _Payees(dict[bytes, tuple[int, int]]):
    """The keys of addresses and of their stake credentials; 0 where there is none."""

    def __missing__(self, raw: bytes) -> tuple[int, int]:
        account = stake_of(raw)
        keys = self[raw] = key_of(raw), 0 if account is None else _keys[account]
        return keys


_keys = _Keys()
_payees = _Payees()


class _Total(msgspec.Struct, frozen=True):
    total: str | None


_MAKE = tuple(sql.command(name) for name in ("make_key_of", "make_weight_of", "make_asset_key"))
_key_assets = sql.command("key_assets")
_TABLES = {name: sql.query(name, _Total) for name in (*Sums.__struct_fields__, "asset", "policy", "policy_holder")}
