"""Resolve the references of new rows: the outputs that inputs spend, and the numbers of addresses, assets and pools.

A batch needs a fixed, small number of queries; most references come from caches.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, starmap
from typing import Any, NamedTuple

import msgspec

from indexer.blocks.packed_block import Lookups, Transaction
from indexer.rows import tables
from indexer.rows.caches import (
    Addresses,
    AddressNumbers,
    AddressRow,
    NumberRow,
    Numbers,
    Recent,
    ResolvedOutput,
    UnspentOutputs,
)
from indexer.rows.tables import Inserts
from shared import packed, sql
from shared.address import script_key
from shared.ledger import (
    HASH28_BYTES,
    AddressNo,
    AssetNo,
    PolicyNo,
    PoolNo,
    ScriptKey,
    StakeNo,
    TxId,
    fingerprint_digest,
    fingerprint_number,
)
from shared.metadata import REFERENCE_PREFIX
from shared.network import Network
from shared.packed import OutputKey, Quantities
from shared.sql import Connection


class PlacedOutput(NamedTuple):
    """An output, its index, and the tx_id of the transaction that made it."""

    tx_id: TxId
    output_index: int
    output: packed.Output


class UnspentChange(msgspec.Struct, frozen=True):
    """The effect of a batch on the unspent outputs: those that it makes and leaves, and all that it spends."""

    made: dict[OutputKey, ResolvedOutput]
    spent: set[OutputKey]


class Resolver:
    """Resolves references of new blocks, from the caches of a network's only writer and from the database."""

    def __init__(self, network: Network, first_free: "FirstFree") -> None:
        self.network = network
        self.stakes = Numbers(stake_nos, first_free.stake_no)
        self.pools = Numbers(_pools, first_free.pool_no)
        self.policies = Numbers(_policies, first_free.policy_no)
        self.assets = Numbers(_assets, first_free.asset_no)
        self.addresses = Addresses(_addresses, first_free.address_no, self.stakes)
        self.unspent = UnspentOutputs()
        self._caches: tuple[Recent[Any, Any], ...] = (
            self.stakes,
            self.pools,
            self.policies,
            self.assets,
            self.addresses,
            self.unspent,
        )

    @property
    def is_full(self) -> bool:
        """Whether the next look-up may forget entries. If so, the rows that need them must be built first."""
        return any(cache.is_full for cache in self._caches)

    async def look_up(self, db: Connection, blocks: list[Lookups], unapplied: Sequence[Lookups] = ()) -> Inserts:
        """Look up everything that `rows.build` needs for these blocks. Returns as `look_up_numbers` does.

        `unapplied` are the preceding blocks whose rows are still being built. Their outputs are not looked up, since
        they will be known before the rows of these blocks are built. It must be empty if `is_full`.
        """
        for cache in self._caches:
            cache.trim()
        made = set[bytes]().union(*(lookups.tx_hashes for lookups in (*unapplied, *blocks)))
        spent = chain.from_iterable(lookups.spent for lookups in blocks)
        unknown = [key for key in self.unspent.unknown(spent) if packed.tx_hash_of(key) not in made]
        fetched, of_genesis = await _fetch(db, unknown) if unknown else ({}, {})
        of_genesis_at = (output.address for output in of_genesis.values())
        first_seen = await self.look_up_numbers(
            db,
            dict.fromkeys(chain(of_genesis_at, *(lookups.addresses for lookups in blocks))),
            set[bytes]().union(*(lookups.assets for lookups in blocks)),
            set[bytes]().union(*(lookups.reward_accounts for lookups in blocks)),
            {pool_id for lookups in blocks for pool_id in lookups.pool_ids},
        )
        self.unspent.add(dict(zip(fetched, await resolve_outputs(db, list(fetched.values())), strict=True)))
        self.unspent.add(
            {key: self.genesis_output(row.tx_id, row.address, row.lovelace) for key, row in of_genesis.items()}
        )
        return first_seen

    async def look_up_numbers(
        self,
        db: Connection,
        addresses: Collection[bytes],
        assets: set[bytes],
        reward_accounts: set[bytes],
        pool_ids: set[bytes] = frozenset(),  # type: ignore[assignment] # it is only read
    ) -> Inserts:
        """Look up the numbers of addresses, which are in the order of their first use, assets (policy id and name in
        one), reward accounts and pools. Returns the rows of those that appear for the first time, with new numbers.
        """
        first_seen = Inserts()
        new_addresses, new_stakes = await self.addresses.look_up(db, addresses, reward_accounts)
        new_policies = await self.policies.look_up(db, {asset[:HASH28_BYTES] for asset in assets})
        new_assets = await self.assets.look_up(db, assets)
        first_seen[tables.STAKE].extend(starmap(tables.Stake, new_stakes))
        first_seen[tables.ADDRESS].extend(new_addresses)
        first_seen[tables.POOL].extend(starmap(tables.Pool, await self.pools.look_up(db, pool_ids)))
        first_seen[tables.POLICY].extend(starmap(tables.Policy, new_policies))
        first_seen[tables.ASSET].extend(
            tables.Asset(
                number,
                self.policies[asset[:HASH28_BYTES]],
                fingerprint_number(fingerprint_digest(asset)),
                asset[HASH28_BYTES:],
            )
            for number, asset in new_assets
        )
        return first_seen

    def apply(self, change: UnspentChange) -> None:
        """Apply the outputs that a batch made and spent."""
        self.unspent.add(change.made)
        self.unspent.forget(change.spent)

    def restore(self, outputs: Mapping[OutputKey, ResolvedOutput]) -> None:
        """Remember outputs that are unspent again: the blocks of the other fork have most of the same transactions."""
        self.unspent.trim()
        self.unspent.add(outputs)

    def genesis_output(self, tx_id: TxId, address: bytes, lovelace: int) -> ResolvedOutput:
        """A genesis output, to an address that must have been looked up."""
        return _resolved(tx_id, 0, self.addresses[address], lovelace, _NOTHING, 0, script_key(address))


def outputs_paid(
    tx_id: TxId, tx: Transaction, addresses: list[AddressNumbers], assets: list[AssetNo]
) -> list[ResolvedOutput]:
    """The outputs of a transaction, given the numbers of the addresses and assets in its block's Lookups."""
    paid = []
    for index, payment in enumerate(tx.payments, tx.first_index):
        quantities = by_number(payment.assets, assets) if payment.assets else _NOTHING
        numbers, references = addresses[payment.address], payment.references
        paid.append(_resolved(tx_id, index, numbers, payment.lovelace, quantities, references, payment.script_key))
    return paid


async def resolve_outputs(db: Connection, outputs: Sequence[PlacedOutput]) -> list[ResolvedOutput]:
    """Add to outputs the facts that their rows lack."""
    return resolve(outputs, await facts_of(db, outputs))


async def facts_of(db: Connection, outputs: Sequence[PlacedOutput]) -> "OutputFacts":
    """Look up the facts about some outputs that the outputs themselves do not contain."""
    facts = OutputFacts({}, {}, set(), set(), {})
    if not outputs:
        return facts
    addresses = {placed.output.address_no for placed in outputs}
    assets = {asset_no for placed in outputs for asset_no in placed.output.quantities}
    places = {(placed.tx_id, placed.output_index) for placed in outputs}
    for row in await _output_facts.all(db, list(addresses), list(assets), REFERENCE_PREFIX, *sql.columns(places)):
        if row.output_index is not None:
            facts.scripts.add((TxId(row.number), row.output_index))
            continue
        if row.is_asset:
            facts.reference_tokens.add(AssetNo(row.number))
            continue
        if row.stake_no is not None:
            facts.stakes[AddressNo(row.number)] = row.stake_no
        if row.credential_no is not None:
            facts.credentials[AddressNo(row.number)] = row.credential_no
        if row.script_key is not None:
            facts.locked_by[AddressNo(row.number)] = row.script_key
    return facts


def resolve(outputs: Sequence[PlacedOutput], facts: "OutputFacts") -> list[ResolvedOutput]:
    """Outputs with the facts about them."""
    tokens, scripts = facts.reference_tokens, facts.scripts
    return [
        _resolved(
            tx_id,
            index,
            facts.numbers_of(output.address_no),
            output.lovelace,
            output.quantities,
            (len(tokens & output.quantities.keys()) if tokens else 0) + ((tx_id, index) in scripts),
            facts.locked_by.get(output.address_no),
        )
        for tx_id, index, output in outputs
    ]


def _resolved(
    tx_id: TxId,
    index: int,
    numbers: AddressNumbers,
    lovelace: int,
    quantities: Quantities,
    references: int,
    script_key: ScriptKey | None,
) -> ResolvedOutput:
    address_no, stake_no, credential_no = numbers
    in_row = packed.pack_output(address_no, lovelace, quantities)
    return ResolvedOutput(
        tx_id, index, in_row, lovelace, address_no, stake_no, credential_no, quantities, references, script_key
    )


def by_number(quantities: dict[int, int], assets: list[AssetNo]) -> Quantities:
    """Quantities by asset_no, from quantities by place in `assets`."""
    return {assets[place]: quantity for place, quantity in quantities.items()}


async def new_resolver(db: Connection, network: Network) -> Resolver:
    """A resolver with empty caches, which numbers new rows after those in the database."""
    return Resolver(network, await _first_free.only(db))


async def _fetch(
    db: Connection, keys: list[OutputKey]
) -> tuple[dict[OutputKey, PlacedOutput], dict[OutputKey, "_GenesisSource"]]:
    """Outputs of transactions, and outputs of the genesis.

    Outputs from before the first indexed block are left out.
    """
    wanted = {key: packed.output_of(key) for key in keys}
    missing = {tx_hash for tx_hash, _ in wanted.values()}
    made = {
        row.tx_hash: (row.tx_id, *packed.unpack_outputs(row.outputs)) for row in await _sources.all(db, list(missing))
    }
    missing -= made.keys()
    genesis = {row.tx_hash: row for row in await _genesis_sources.all(db, list(missing))} if missing else {}
    placed, of_genesis = {}, {}
    for key, (tx_hash, index) in wanted.items():
        if tx_hash in genesis and index == 0:
            of_genesis[key] = genesis[tx_hash]
        tx_id, first_index, outputs = made.get(tx_hash, (TxId(0), 0, []))
        if 0 <= index - first_index < len(outputs):
            placed[key] = PlacedOutput(tx_id, index, outputs[index - first_index])
    return placed, of_genesis


class OutputFacts(msgspec.Struct, frozen=True):
    """Facts about some outputs: the stake_no and the credential_no of each address that has one, which assets are
    reference tokens, which outputs have a reference script, and the script that locks each address that has one.
    """

    stakes: dict[AddressNo, StakeNo]
    credentials: dict[AddressNo, AddressNo]
    reference_tokens: set[AssetNo]
    scripts: set[tuple[TxId, int]]
    locked_by: dict[AddressNo, ScriptKey]

    def numbers_of(self, address_no: AddressNo) -> AddressNumbers:
        """The numbers of an address."""
        return address_no, self.stakes.get(address_no), self.credentials.get(address_no)


class FirstFree(msgspec.Struct, frozen=True):
    """The first number of each kind that is not assigned yet."""

    address_no: AddressNo
    stake_no: StakeNo
    pool_no: PoolNo
    policy_no: PolicyNo
    asset_no: AssetNo


class _Source(msgspec.Struct, frozen=True):
    tx_hash: bytes
    tx_id: TxId
    outputs: bytes


class _GenesisSource(msgspec.Struct, frozen=True):
    tx_hash: bytes
    tx_id: TxId
    address: bytes
    lovelace: int


class _OutputFact(msgspec.Struct, frozen=True):
    """An address with its stake_no, credential_no and script_key; with `is_asset`, the asset_no of a reference token;
    with an `output_index`, the tx_id of an output with a reference script.
    """

    is_asset: bool
    number: int
    stake_no: StakeNo | None
    credential_no: AddressNo | None
    output_index: int | None
    script_key: ScriptKey | None


_NOTHING: Quantities = {}
_sql = sql.beside(__file__)
_sources = _sql.query("sources", _Source)
_genesis_sources = _sql.query("genesis_sources", _GenesisSource)
_output_facts = _sql.query("output_facts", _OutputFact)
_addresses = _sql.query("addresses", AddressRow)
stake_nos: "sql.Query[NumberRow[StakeNo]]" = _sql.query("stakes", NumberRow)
_pools: "sql.Query[NumberRow[PoolNo]]" = _sql.query("pools", NumberRow)
_policies: "sql.Query[NumberRow[PolicyNo]]" = _sql.query("policies", NumberRow)
_assets: "sql.Query[NumberRow[AssetNo]]" = _sql.query("assets", NumberRow)
_first_free = _sql.query("first_free", FirstFree)
