"""What rows need to know of the past: sources of inputs, numbers of addresses and assets, lengths of histories.

A batch is learned in a handful of look-ups, whatever its size; caches answer most of it without any. The caches hold
what is prepared but not yet committed as well, so the next batch can be prepared while the last one is written.
"""

from collections.abc import Iterable
from itertools import filterfalse
from operator import attrgetter
from typing import TypeVar

import msgspec

from indexer import pools
from indexer.effects import BlockEffects, Reference
from shared import address, packed, sql
from shared.network import Network
from shared.packed import Assets, Output
from shared.sql import Connection

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

UNCOMMITTED_BATCHES = 2
"""How many batches before the one being prepared the database may not show yet: one is written, one waits for that."""

_REMEMBERED_TRANSACTIONS = 200_000
_REMEMBERED_NUMBERS = 500_000
_REMEMBERED_PAYEES = 500_000

_address_of = attrgetter("address")


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


class Paid(msgspec.Struct, frozen=True, gc=False):
    """An output, with the numbers of its address and its stake credential, and its quantities by asset_id."""

    output: Output
    address_id: int
    stake_id: int | None
    quantities: dict[int, int]


_NOTHING: dict[int, int] = {}


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
        return set(filterfalse(self._older.__contains__, filterfalse(self.__contains__, keys)))

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

    def key_of(self, number: int) -> bytes:
        """The byte string behind a number that is remembered. For messages: it looks at all of them."""
        return next(key for keys in (self, self._older) for key, known in keys.items() if known == number)


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


class Payees(Recent[bytes, tuple[int, int | None]]):
    """An address' number together with that of its stake credential, if it has any: one look-up for each output."""

    def __init__(self, addresses: Numbers, stakes: Numbers) -> None:
        super().__init__(_REMEMBERED_PAYEES)
        self._addresses, self._stakes = addresses, stakes

    async def learn(
        self, db: Connection, addresses: set[bytes], accounts: set[bytes]
    ) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
        """Know the numbers of these addresses and their stake credentials, and of other accounts; returns the new."""
        self.trim()
        stake_of = {raw: address.stake_of(raw) for raw in self.unknown(addresses)}
        new_stakes = await self._stakes.learn(db, accounts.union(filter(None, stake_of.values())))
        new_addresses = await self._addresses.learn(db, stake_of)
        for raw, account in stake_of.items():
            self[raw] = self._addresses[raw], None if account is None else self._stakes[account]
        return new_addresses, new_stakes


class Known:
    """All of it for one network's only writer. In bulk, histories are numbered later and no length is known."""

    def __init__(self, network: Network, unused: "NextNumbers", *, bulk: bool) -> None:
        self.network, self.bulk = network, bulk
        self.stakes = Numbers(_stakes, unused.stake)
        self.pools = Numbers(_pools, unused.pool)
        self.policies = Numbers(_policies, unused.policy)
        self.assets = Numbers(_assets, unused.asset)
        self.payees = Payees(Numbers(_addresses, unused.address), self.stakes)
        self.address_lengths = Lengths(_address_lengths)
        self.asset_lengths = Lengths(_asset_lengths)
        self.mint_lengths = Lengths(_mint_lengths)
        self.sources: Recent[bytes, tuple[int, list[Paid]]] = Recent(_REMEMBERED_TRANSACTIONS)

    async def learn(self, db: Connection, blocks: list[BlockEffects]) -> Unborn:
        """Know everything that `rows.of` will ask about these blocks, but what they pay: it notes that as it goes.

        Raises frames.Unreadable.
        """
        transactions = [tx for block in blocks for group in block.transactions for tx in group]
        own = {tx.tx_hash for tx in transactions}
        spent = {reference.tx_hash for tx in transactions for reference in tx.inputs}
        self.sources.trim()
        fetched = await _fetch(db, self.sources.unknown(spent - own))
        outputs = [output for tx in transactions for output in tx.outputs]
        outputs += [output for _, paid in fetched.values() for output in paid]
        accounts, hashes = pools.named_by(blocks, self.network)
        unborn = await self.learn_numbers(db, outputs, [tx.mint for tx in transactions if tx.mint], accounts)
        unborn.pools.extend(await self.pools.learn(db, hashes))
        for tx_hash, (first_index, paid) in fetched.items():
            self.sources[tx_hash] = first_index, self.numbered(paid)
        if not self.bulk:
            remembered = [paid for tx in transactions for paid in self.spent(tx.inputs) if paid is not None]
            await self._learn_lengths(
                db,
                {self.payees[output.address][0] for output in outputs} | {paid.address_id for paid in remembered},
                {asset_id for output in outputs if output.assets for asset_id in self.quantities(output.assets)}
                | {asset_id for paid in remembered for asset_id in paid.quantities}
                | {asset_id for tx in transactions if tx.mint for asset_id in self.quantities(tx.mint)},
                unborn,
            )
        return unborn

    async def learn_numbers(
        self, db: Connection, outputs: list[Output], mints: list[Assets], accounts: set[bytes]
    ) -> Unborn:
        """Know the numbers of what these outputs and mints name, and of accounts."""
        held = [output.assets for output in outputs if output.assets]
        assets = {
            policy + name for quantities in (*held, *mints) for policy in quantities for name in quantities[policy]
        }
        addresses, stakes = await self.payees.learn(db, set(map(_address_of, outputs)), accounts)
        policies = await self.policies.learn(db, {key[:28] for key in assets})
        new_assets = await self.assets.learn(db, assets)
        return Unborn(
            addresses=addresses,
            stakes=stakes,
            pools=[],
            policies=policies,
            assets=[(number, self.policies[key[:28]], key[28:]) for number, key in new_assets],
            silent_assets={number for number, _ in new_assets},
        )

    def numbered(self, outputs: list[Output]) -> list[Paid]:
        """Outputs of known addresses and assets, with their numbers."""
        paid, payees = [], self.payees
        for output in outputs:
            address_id, stake_id = payees[output.address]
            quantities = self.quantities(output.assets) if output.assets else _NOTHING
            paid.append(Paid(output, address_id, stake_id, quantities))
        return paid

    def quantities(self, assets: Assets) -> dict[int, int]:
        """Known assets by asset_id."""
        numbers = self.assets
        return {
            numbers[policy + name]: quantity
            for policy, quantities in assets.items()
            for name, quantity in quantities.items()
        }

    def spent(self, references: list[Reference]) -> list[Paid | None]:
        """The outputs that inputs refer to; None where neither an indexed transaction nor the genesis made one."""
        spent: list[Paid | None] = []
        sources = self.sources
        for reference in references:
            source = None
            try:
                first_index, outputs = sources[reference.tx_hash]
            except KeyError:
                pass
            else:
                place = reference.output_index - first_index
                if 0 <= place < len(outputs):
                    source = outputs[place]
            spent.append(source)
        return spent

    async def _learn_lengths(self, db: Connection, addresses: set[int], assets: set[int], unborn: Unborn) -> None:
        await self.address_lengths.learn(db, addresses)
        await self.asset_lengths.learn(db, assets)
        await self.mint_lengths.learn(db, assets)
        unborn.silent_assets.update(
            asset_id for asset_id in assets if self.asset_lengths[asset_id] == 0 and self.mint_lengths[asset_id] == 0
        )


async def _fetch(db: Connection, tx_hashes: set[bytes]) -> dict[bytes, tuple[int, list[Output]]]:
    """The outputs of transactions, and of the genesis, as far as there are any: index of the first, and all of them."""
    if not tx_hashes:
        return {}
    found = {row.tx_hash: packed.unpack_outputs(row.outputs) for row in await _sources.all(db, list(tx_hashes))}
    missing = tx_hashes - found.keys()
    if missing:
        for genesis in await _genesis_sources.all(db, list(missing)):
            found[genesis.tx_hash] = 0, [Output(genesis.address, genesis.lovelace)]
    return found


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


class NextNumbers(msgspec.Struct, frozen=True):
    """The first number not given yet, of each kind."""

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
_next_numbers = sql.query("next_numbers", NextNumbers)
