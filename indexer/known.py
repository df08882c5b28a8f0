"""What rows need to know of the past: sources of inputs, numbers of addresses and assets, lengths of histories.

A batch is learned in a handful of look-ups, whatever its size; caches answer most of it without any. The caches hold
what is prepared but not yet committed as well, so the next batch can be prepared while the last one is written.
"""

from collections.abc import Iterable
from itertools import chain, filterfalse
from typing import TypeVar

import msgspec

from indexer.effects import POLICY_BYTES, assets_of, reference_tokens
from indexer.parcels import Names, Transaction
from shared import address, packed, sql
from shared.network import Network
from shared.packed import Assets, Output, OutputKey
from shared.sql import Connection

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

UNCOMMITTED_BATCHES = 2
"""How many batches before the one being prepared the database may not show yet: one is written, one waits for that."""

_REMEMBERED_OUTPUTS = 500_000
_REMEMBERED_NUMBERS = 500_000
_REMEMBERED_PAYEES = 500_000


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


class Paid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An output: packed (packed.pack_output), its lovelace, the numbers of its address and its stake credential, its
    quantities by asset_id, and how many CIP-68 reference tokens are among them.
    """

    packed: bytes
    lovelace: int
    address_id: int
    stake_id: int | None
    quantities: dict[int, int]
    reference_tokens: int


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

    def of(self, keys: list[_Key]) -> list[_Value]:
        """What is known of each key, in their order."""
        return list(map(self.__getitem__, keys))

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
        numbers, new = await _number(db, self._known, missing, self._unused)
        self.update(numbers)
        self._unused += len(new)
        return new

    def key_of(self, number: int) -> bytes | None:
        """The byte string behind a number, None if it is not remembered. For messages: it looks at all of them."""
        return next((key for keys in (self, self._older) for key, known in keys.items() if known == number), None)


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


Payee = tuple[int, int | None]
"""The numbers of an address and of its stake credential, if it has any."""


class Payees(Recent[bytes, Payee]):
    """An address' number together with that of its stake credential: one look-up for each output."""

    def __init__(self, unused: int, stakes: Numbers) -> None:
        super().__init__(_REMEMBERED_PAYEES)
        self._unused, self._stakes = unused, stakes

    async def learn(
        self, db: Connection, addresses: set[bytes], accounts: set[bytes]
    ) -> tuple[list[tuple[int, bytes]], list[tuple[int, bytes]]]:
        """Know the numbers of these addresses and their stake credentials, and of other accounts; returns the new."""
        self.trim()
        missing = self.unknown(addresses)
        stake_of = {raw: address.stake_of(raw) for raw in missing}
        new_stakes = await self._stakes.learn(db, accounts.union(filter(None, stake_of.values())))
        numbers, new = await _number(db, _addresses, missing, self._unused) if missing else ({}, [])
        self._unused += len(new)
        stakes = self._stakes
        for raw, account in stake_of.items():
            self[raw] = numbers[raw], None if account is None else stakes[account]
        return new, new_stakes


class Unspent(Recent[OutputKey, bytes]):
    """Outputs that nothing has spent yet.

    NOTE: each as bytes, which lie in one place. As objects they are in ten, and waiting for each of them to come from
    memory into the processor's cache took longer than unpacking.
    """

    def __init__(self) -> None:
        super().__init__(_REMEMBERED_OUTPUTS)

    def add(self, tx_hash: bytes, first_index: int, outputs: list[Paid]) -> None:
        """A transaction's outputs."""
        for index, output in enumerate(outputs, first_index):
            self[packed.output_key(tx_hash, index)] = _encode_paid(output)

    def find(self, key: OutputKey) -> Paid | None:
        """The output of this key; None where neither an indexed transaction nor the genesis made it."""
        found = self.get(key) or self._older.get(key)
        return None if found is None else _decode_paid(found)

    def take(self, key: OutputKey) -> Paid | None:
        """The same for the transaction that spends it: what is spent is forgotten."""
        found = self.pop(key, None) or self._older.pop(key, None)
        return None if found is None else _decode_paid(found)


class Known:
    """All of it for one network's only writer. In bulk, histories are numbered later and no length is known."""

    def __init__(self, network: Network, unused: "NextNumbers", *, bulk: bool) -> None:
        self.network, self.bulk = network, bulk
        self.stakes = Numbers(_stakes, unused.stake)
        self.pools = Numbers(_pools, unused.pool)
        self.policies = Numbers(_policies, unused.policy)
        self.assets = Numbers(_assets, unused.asset)
        self.payees = Payees(unused.address, self.stakes)
        self.address_lengths = Lengths(_address_lengths)
        self.asset_lengths = Lengths(_asset_lengths)
        self.mint_lengths = Lengths(_mint_lengths)
        self.unspent = Unspent()

    async def learn(self, db: Connection, blocks: list[Names]) -> Unborn:
        """Know everything that `rows.of` will ask about these blocks, but what they pay: it notes that as it goes."""
        self.unspent.trim()
        made = set[bytes]().union(*(names.made for names in blocks))
        spent = list(chain.from_iterable(names.spent for names in blocks))
        fetched = await _fetch(db, [key for key in self.unspent.unknown(spent) if packed.output_of(key)[0] not in made])
        unborn = await self.learn_numbers(
            db,
            {output.address for output in fetched.values()}.union(*(names.addresses for names in blocks)),
            {asset for output in fetched.values() for asset in assets_of(output.assets)}.union(
                *(names.assets for names in blocks)
            ),
            set[bytes]().union(*(names.accounts for names in blocks)),
        )
        unborn.pools.extend(await self.pools.learn(db, {pool for names in blocks for pool in names.pools}))
        for key, paid in zip(fetched, self.numbered(fetched.values()), strict=True):
            self.unspent[key] = _encode_paid(paid)
        if not self.bulk:
            remembered = [found for key in spent if (found := self.unspent.find(key)) is not None]
            await self._learn_lengths(
                db,
                {self.payees[address][0] for names in blocks for address in names.addresses}
                | {output.address_id for output in remembered},
                {self.assets[asset] for names in blocks for asset in names.assets}
                | {asset_id for output in remembered for asset_id in output.quantities},
                unborn,
            )
        return unborn

    async def learn_numbers(
        self, db: Connection, addresses: set[bytes], assets: set[bytes], accounts: set[bytes]
    ) -> Unborn:
        """Know the numbers of addresses, of assets (each a policy id and a name) and of reward accounts."""
        new_addresses, new_stakes = await self.payees.learn(db, addresses, accounts)
        policies = await self.policies.learn(db, {asset[:POLICY_BYTES] for asset in assets})
        new_assets = await self.assets.learn(db, assets)
        return Unborn(
            addresses=new_addresses,
            stakes=new_stakes,
            pools=[],
            policies=policies,
            assets=[(number, self.policies[key[:POLICY_BYTES]], key[POLICY_BYTES:]) for number, key in new_assets],
            silent_assets={number for number, _ in new_assets},
        )

    def numbered(self, outputs: Iterable[Output]) -> list[Paid]:
        """Outputs of known addresses and assets, with their numbers."""
        return [
            Paid(
                packed.pack_output(output),
                output.lovelace,
                *self.payees[output.address],
                self.quantities(output.assets),
                len(reference_tokens(output.assets)),
            )
            for output in outputs
        ]

    def paid(self, tx: Transaction, payees: list[Payee], assets: list[int]) -> list[Paid]:
        """The same of a transaction in a block; `payees` and `assets` are those of its Names."""
        paid, outputs = [], tx.outputs
        for one in tx.payments:
            address_id, stake_id = payees[one.address]
            quantities = by_number(one.assets, assets) if one.assets else _NOTHING
            output = outputs[one.begin : one.end]
            paid.append(Paid(output, one.lovelace, address_id, stake_id, quantities, one.reference_tokens))
        return paid

    def quantities(self, assets: Assets) -> dict[int, int]:
        """Known assets by asset_id."""
        numbers = self.assets
        return {
            numbers[policy + name]: quantity
            for policy, quantities in assets.items()
            for name, quantity in quantities.items()
        }

    async def _learn_lengths(self, db: Connection, addresses: set[int], assets: set[int], unborn: Unborn) -> None:
        await self.address_lengths.learn(db, addresses)
        await self.asset_lengths.learn(db, assets)
        await self.mint_lengths.learn(db, assets)
        unborn.silent_assets.update(
            asset_id for asset_id in assets if self.asset_lengths[asset_id] == 0 and self.mint_lengths[asset_id] == 0
        )


async def _number(
    db: Connection, known: "sql.Query[_Numbered]", keys: set[bytes], unused: int
) -> tuple[dict[bytes, int], list[tuple[int, bytes]]]:
    """The numbers of byte strings; those that have none yet get one from `unused` on, and are returned once more."""
    numbers = {row.key: row.number for row in await known.all(db, list(keys))}
    new = list(enumerate(sorted(keys - numbers.keys()), start=unused))
    numbers.update((key, number) for number, key in new)
    return numbers, new


def by_number(quantities: dict[int, int], assets: list[int]) -> dict[int, int]:
    """Quantities by asset_id of assets that are given by their places."""
    return {assets[place]: quantity for place, quantity in quantities.items()}


async def _fetch(db: Connection, keys: list[OutputKey]) -> dict[OutputKey, Output]:
    """Outputs of transactions, and of the genesis, as far as there are any."""
    if not keys:
        return {}
    wanted = {key: packed.output_of(key) for key in keys}
    missing = {tx_hash for tx_hash, _ in wanted.values()}
    made = {row.tx_hash: packed.unpack_outputs(row.outputs) for row in await _sources.all(db, list(missing))}
    missing -= made.keys()
    if missing:
        for genesis in await _genesis_sources.all(db, list(missing)):
            made[genesis.tx_hash] = 0, [Output(genesis.address, genesis.lovelace)]
    found = {}
    for key, (tx_hash, index) in wanted.items():
        first_index, outputs = made.get(tx_hash, (0, []))
        if 0 <= index - first_index < len(outputs):
            found[key] = outputs[index - first_index]
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


_encode_paid = msgspec.msgpack.Encoder().encode
_decode_paid = msgspec.msgpack.Decoder(Paid).decode
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
