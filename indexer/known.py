"""What rows need to know of the past: sources of inputs, numbers of addresses and assets, lengths of histories.

A batch is learned in a handful of look-ups, whatever its size; caches answer most of it without any. The caches hold
what is prepared but not yet committed as well, so the next batch can be prepared while the last one is written.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

import msgspec

from indexer import pools
from indexer.effects import BlockEffects, Effects
from shared import address, packed, sql
from shared.network import Network
from shared.packed import Assets, Input, Output
from shared.sql import Connection

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

UNCOMMITTED_BATCHES = 2
"""How many batches before the one being prepared the database may not show yet: one is written, one waits for that."""

_REMEMBERED_TRANSACTIONS = 200_000
_REMEMBERED_NUMBERS = 500_000
_REMEMBERED_PAYEES = 200_000

stake_of = lru_cache(maxsize=1 << 18)(address.stake_of)


class Unborn(msgspec.Struct, frozen=True):
    """Byte strings that these blocks name for the first time, each with its new number.

    `assets` have their policy's number between. `silent_assets` are those and the older ones that a rollback left
    without any transaction.
    """

    addresses: list[tuple[int, bytes]]
    stakes: list[tuple[int, bytes]]
    pools: list[tuple[int, bytes]]
    policies: list[tuple[int, bytes]]
    assets: list[tuple[int, int, bytes]]
    silent_assets: set[int]


class Learned(msgspec.Struct, frozen=True):
    """What was learned of blocks: their new byte strings, and the inputs of each of their transactions in order."""

    unborn: Unborn
    inputs: list[list[Input]]


class Recent(dict[_Key, _Value]):
    """A dict that forgets its older half when it grows beyond `most` entries, at a time of its owner's choosing."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._older: dict[_Key, _Value] = {}
        self._batches = 0

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._older[key]
        return value

    def unknown(self, keys: Iterable[_Key]) -> set[_Key]:
        """Those of the keys that are not known."""
        older = self._older
        return {key for key in keys if key not in self and key not in older}

    def trim(self) -> None:
        """Forget, before a batch is learned. What UNCOMMITTED_BATCHES before it added or used stays, however much."""
        self._batches += 1
        if len(self) > self._most // 2 and self._batches >= UNCOMMITTED_BATCHES:
            self._older, self._batches = dict(self), 0
            self.clear()


class Numbers(Recent[bytes, int]):
    """The numbers that stand for byte strings of one kind. A number is given once and never taken back."""

    def __init__(self, known: "sql.Query[_Numbered]", unused: int) -> None:
        super().__init__(_REMEMBERED_NUMBERS)
        self._known, self._unused = known, unused

    async def learn(self, db: Connection, keys: Iterable[bytes]) -> list[tuple[int, bytes]]:
        """Know the number of each key; returns those that are new, with their number."""
        self.trim()
        missing = self.unknown(keys)
        if not missing:
            return []
        for row in await self._known.all(db, list(missing)):
            self[row.key] = row.number
            missing.discard(row.key)
        new = list(enumerate(sorted(missing), start=self._unused))
        self._unused += len(new)
        self.update((key, number) for number, key in new)
        return new


class Lengths(Recent[int, int]):
    """How many rows the history of each number has: the place of its next row."""

    def __init__(self, known: "sql.Query[_Length]") -> None:
        super().__init__(_REMEMBERED_NUMBERS)
        self._known = known

    async def learn(self, db: Connection, numbers: set[int]) -> None:
        """Know the length of each number's history."""
        self.trim()
        missing = self.unknown(numbers)
        if missing:
            self.update((row.number, row.length) for row in await self._known.all(db, list(missing)))

    def take(self, number: int) -> int:
        """The place of the next row, which is thereby taken."""
        place = self[number]
        self[number] = place + 1
        return place


class Payees(dict[bytes, tuple[int, int | None]]):
    """An address' number together with that of its stake credential, if it has any: one look-up for each output."""

    def __init__(self, addresses: Numbers, stakes: Numbers) -> None:
        super().__init__()
        self._addresses, self._stakes = addresses, stakes

    def __missing__(self, address: bytes) -> tuple[int, int | None]:
        account = stake_of(address)
        payee = self[address] = (self._addresses[address], None if account is None else self._stakes[account])
        return payee

    def trim(self) -> None:
        """Forget, where it has become too much."""
        if len(self) > _REMEMBERED_PAYEES:
            self.clear()


class Known:
    """All of it for one network's only writer. In bulk, histories are numbered later and no length is known."""

    def __init__(self, network: Network, unused: "_NextNumbers", *, bulk: bool) -> None:
        self.network, self.bulk = network, bulk
        self.addresses = Numbers(_addresses, unused.address)
        self.stakes = Numbers(_stakes, unused.stake)
        self.pools = Numbers(_pools, unused.pool)
        self.policies = Numbers(_policies, unused.policy)
        self.assets = Numbers(_assets, unused.asset)
        self.payees = Payees(self.addresses, self.stakes)
        self.address_lengths = Lengths(_address_lengths)
        self.asset_lengths = Lengths(_asset_lengths)
        self.mint_lengths = Lengths(_mint_lengths)
        self._sources: Recent[bytes, tuple[int, list[Output]]] = Recent(_REMEMBERED_TRANSACTIONS)

    async def learn(self, db: Connection, blocks: list[BlockEffects]) -> Learned:
        """Know everything that `rows.of` will ask about these blocks. Raises frames.Unreadable."""
        transactions = [tx for block in blocks for group in block.transactions for tx in group]
        self._sources.trim()
        self.payees.trim()
        self._sources.update((tx.tx_hash, (tx.first_index, tx.outputs)) for tx in transactions)
        await self._learn_sources(db, {spent.tx_hash for tx in transactions for spent in tx.inputs})
        inputs = [self._inputs(tx) for tx in transactions]
        outputs = [output for tx in transactions for output in tx.outputs]
        outputs += [spent.source for part in inputs for spent in part if spent.source is not None]
        accounts, hashes = pools.named_by(blocks, self.network)
        unborn = await self.learn_numbers(db, outputs, [tx.mint for tx in transactions if tx.mint], accounts)
        unborn.pools.extend(await self.pools.learn(db, hashes))
        return Learned(unborn, inputs)

    async def learn_numbers(
        self, db: Connection, outputs: list[Output], mints: list[Assets], accounts: set[bytes]
    ) -> Unborn:
        """Know the numbers of the addresses and assets of these outputs and mints, and how long their histories are;
        and those of the reward accounts, with the outputs' own.
        """
        addresses = {output.address for output in outputs}
        held = [output.assets for output in outputs if output.assets]
        assets = {
            policy + name for quantities in (*held, *mints) for policy in quantities for name in quantities[policy]
        }
        paid = {account for raw in addresses if (account := stake_of(raw)) is not None}
        stakes = await self.stakes.learn(db, paid | accounts)
        policies = await self.policies.learn(db, {key[:28] for key in assets})
        new_assets = await self.assets.learn(db, assets)
        unborn = Unborn(
            addresses=await self.addresses.learn(db, addresses),
            stakes=stakes,
            pools=[],
            policies=policies,
            assets=[(number, self.policies[key[:28]], key[28:]) for number, key in new_assets],
            silent_assets={number for number, _ in new_assets},
        )
        if not self.bulk:
            numbers = {self.assets[key] for key in assets}
            await self.address_lengths.learn(db, {self.addresses[raw] for raw in addresses})
            await self.asset_lengths.learn(db, numbers)
            await self.mint_lengths.learn(db, numbers)
            unborn.silent_assets.update(number for number in numbers if self._is_silent(number))
        return unborn

    def _is_silent(self, asset_id: int) -> bool:
        return self.asset_lengths[asset_id] == 0 and self.mint_lengths[asset_id] == 0

    async def _learn_sources(self, db: Connection, tx_hashes: set[bytes]) -> None:
        missing = self._sources.unknown(tx_hashes)
        if not missing:
            return
        for row in await _sources.all(db, list(missing)):
            self._sources[row.tx_hash] = packed.unpack_outputs(row.outputs)
            missing.discard(row.tx_hash)
        if missing:
            for genesis in await _genesis_sources.all(db, list(missing)):
                self._sources[genesis.tx_hash] = (0, [Output(genesis.address, genesis.lovelace)])

    def _inputs(self, tx: Effects) -> list[Input]:
        """What a transaction spends, with sources as far as indexed transactions or the genesis made them."""
        inputs = []
        for spent in tx.inputs:
            source = None
            try:
                first_index, outputs = self._sources[spent.tx_hash]
            except KeyError:
                pass
            else:
                place = spent.output_index - first_index
                if 0 <= place < len(outputs):
                    source = outputs[place]
            inputs.append(Input(spent.tx_hash, spent.output_index, source))
        return inputs


async def known_to(db: Connection, network: Network, *, bulk: bool) -> Known:
    """What the database knows, before anything is remembered of it."""
    unused = await _next_numbers.one(db)
    assert unused is not None, "a statement without FROM has one row"
    return Known(network, unused, bulk=bulk)


class _Source(msgspec.Struct, frozen=True):
    tx_hash: bytes
    outputs: bytes


class _GenesisSource(msgspec.Struct, frozen=True):
    tx_hash: bytes
    address: bytes
    lovelace: int


class _Numbered(msgspec.Struct, frozen=True):
    key: bytes
    number: int


class _Length(msgspec.Struct, frozen=True):
    number: int
    length: int


class _NextNumbers(msgspec.Struct, frozen=True):
    address: int
    stake: int
    pool: int
    policy: int
    asset: int


_sources = sql.query("sources", _Source)
_genesis_sources = sql.query("genesis_sources", _GenesisSource)
_addresses = sql.query("addresses", _Numbered)
_stakes = sql.query("stakes", _Numbered)
_pools = sql.query("pools", _Numbered)
_policies = sql.query("policies", _Numbered)
_assets = sql.query("assets", _Numbered)
_address_lengths = sql.query("address_lengths", _Length)
_asset_lengths = sql.query("asset_lengths", _Length)
_mint_lengths = sql.query("mint_lengths", _Length)
_next_numbers = sql.query("next_numbers", _NextNumbers)
