"""What happens in the blocks of a chain, read from their rows: what subscriptions may be told of, by subject.

A happening is small; the object that tells of it is made only if a subscription matches. Both follow from the block and
from those before it, so they are the same whenever they are read.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Literal
from uuid import UUID

import msgspec

from api.answers import Instant
from api.chain import accounts, assets, blocks, certificates, names, representatives, transactions
from api.chain.blocks import Block
from api.chain.certificates import Certificate
from api.chain.epochs import EpochBlock
from api.chain.labels import LabelledTransaction
from api.chain.owners import Position
from api.chain.pools import show_pool_id
from api.chain.transactions import FoundTransaction, FullTransaction
from api.events.subjects import key_of, label_bytes
from shared import address, packed, sql
from shared.ledger import ACTIVE_AFTER_EPOCHS, AddressNo, AssetNo, label_numbered, slot_of, tx_id_of
from shared.network import Network
from shared.sql import Connection


class MintEvent(assets.Mint, frozen=True):
    """The quantity of an asset that a transaction minted; negative if burned."""

    policy_id: str
    asset_name: str


class DelegationEvent(msgspec.Struct, frozen=True):
    """An account delegates to a pool."""

    stake_address: str
    pool_id: str
    active_epoch_no: int
    transaction: Position


class WithdrawalEvent(accounts.AccountWithdrawal, frozen=True):
    """Rewards withdrawn by a transaction."""

    stake_address: str


PoolChange = Literal["registration", "update", "retirement", "block"]


class PoolEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pool is registered, changes its parameters, announces its retirement, or makes a block."""

    change: PoolChange
    pool_id: str
    transaction: Position | None = None
    certificate: Certificate | None = None
    block: Block | None = None


GovernanceChange = Literal["vote_delegation", "registration", "update", "retirement"]
_GOVERNANCE_CHANGES: dict[str, GovernanceChange] = {
    "stakeDelegation": "vote_delegation",
    "delegateRepresentativeRegistration": "registration",
    "delegateRepresentativeUpdate": "update",
    "delegateRepresentativeRetirement": "retirement",
}


class GovernanceEvent(msgspec.Struct, frozen=True):
    """An account delegates its vote to a representative, or one is registered, changes its metadata, or retires."""

    change: GovernanceChange
    drep_id: str
    stake_address: str | None
    transaction: Position
    certificate: Certificate


class EpochEvent(msgspec.Struct, frozen=True):
    """An epoch begins."""

    epoch_no: int
    start_time: Instant
    end_time: Instant
    first_slot_no: int
    last_slot_no: int
    first_block: EpochBlock


class ChainEnd(msgspec.Struct, frozen=True):
    """The last block of a chain, and its numbering."""

    numbering: UUID
    slot_no: int
    block_no: int
    block_hash: bytes


class BlockPoint(msgspec.Struct, frozen=True):
    """A block."""

    slot_no: int
    block_no: int
    block_hash: bytes


class BlockHash(msgspec.Struct, frozen=True):
    """The block in a slot."""

    slot_no: int
    block_hash: bytes


class BlockRow(BlockPoint, frozen=True):
    """A block to read."""

    pool_id: bytes
    tx_count: int
    previous_slot_no: int | None


class TransactionRow(msgspec.Struct, frozen=True):
    """A transaction to read."""

    tx_id: int
    tx_hash: bytes
    fee: int | None
    size: int | None
    inputs: bytes
    outputs: bytes
    mint: bytes | None
    extra: bytes | None


class _AddressRow(msgspec.Struct, frozen=True):
    address_no: AddressNo
    raw: bytes


class _AssetRow(msgspec.Struct, frozen=True):
    asset_no: AssetNo
    policy_id: bytes
    name: bytes


class _RegistrationRow(msgspec.Struct, frozen=True):
    tx_id: int
    retired_epoch_no: int | None


Make = Callable[[], Awaitable[msgspec.Struct]]


class Happening(msgspec.Struct, frozen=True):
    """Something that happens to the subject with this key. `make` makes the object that tells of it; happenings with
    the same object have the same `make`.

    `received` and `spent` are quantities of the subject; both are None if the kind of event has none.
    """

    key: bytes
    make: Make
    received: int | None = None
    spent: int | None = None


_sql = sql.beside(__file__)
chain_end = _sql.query("chain", ChainEnd)
hashes = _sql.query("hashes", BlockHash)
blocks_between = _sql.query("blocks", BlockRow)
last_blocks = _sql.query("last_blocks", BlockPoint)
_transactions = _sql.query("transactions", TransactionRow)
_addresses = _sql.query("addresses", _AddressRow)
_assets = _sql.query("assets", _AssetRow)
_registration_before = _sql.query("registration_before", _RegistrationRow)


class _Read(msgspec.Struct, frozen=True):
    """An unpacked transaction."""

    row: TransactionRow
    inputs: list[packed.Output]
    outputs: list[packed.Output]
    mint: packed.Quantities
    extra: packed.Extra


class Reader:
    """Reads consecutive blocks in a snapshot of their chain."""

    def __init__(self, db: Connection, network: Network, end: ChainEnd) -> None:
        self._db, self._network, self._end = db, network, end
        self._address_keys: dict[AddressNo, tuple[bytes, ...]] = {}
        self._assets: dict[AssetNo, tuple[bytes, bytes]] = {}
        self._shown_by: dict[int, _Read] = {}  # the transaction that the `make` with this id shows

    async def read(self, block_rows: Sequence[BlockRow]) -> list[list[Happening]]:
        """What happens in each of some blocks, in order."""
        if not block_rows:
            return []
        first, beyond = tx_id_of(block_rows[0].slot_no, 0), tx_id_of(block_rows[-1].slot_no + 1, 0)
        by_slot = defaultdict[int, list[_Read]](list)
        for row in await _transactions.all(self._db, first, beyond):
            by_slot[slot_of(row.tx_id)].append(_unpacked(row))
        await self._look_up([tx for some in by_slot.values() for tx in some])
        return [list(self._of_block(block, by_slot[block.slot_no])) for block in block_rows]

    async def name(self, some: Sequence[Happening]) -> None:
        """Look up the names of addresses and assets in the objects of happenings at once: they are cached then."""
        txs = {id(tx): tx for each in some if (tx := self._shown_by.get(id(each.make))) is not None}.values()
        outputs = (output for tx in txs for output in (*tx.inputs, *tx.outputs))
        minted = {asset_no for tx in txs for asset_no in tx.mint}
        await names.resolve(self._db, self._end.numbering, outputs, minted)

    async def _look_up(self, txs: Sequence[_Read]) -> None:
        """Look up addresses and assets of transactions."""
        outputs = [output for tx in txs for output in (*tx.inputs, *tx.outputs)]
        address_nos = {output.address_no for output in outputs} - self._address_keys.keys()
        asset_nos = {asset_no for output in outputs for asset_no in output.quantities}
        asset_nos |= {asset_no for tx in txs for asset_no in tx.mint}
        asset_nos -= self._assets.keys()
        if address_nos:
            for row in await _addresses.all(self._db, list(address_nos)):
                self._address_keys[row.address_no] = _keys_of_address(row.raw)
        if asset_nos:
            for asset in await _assets.all(self._db, list(asset_nos)):
                self._assets[asset.asset_no] = asset.policy_id, asset.name

    def _of_block(self, block: BlockRow, txs: Sequence[_Read]) -> Iterator[Happening]:
        network = self._network
        epoch_no = network.epoch_of(block.slot_no)
        if block.previous_slot_no is None or network.epoch_of(block.previous_slot_no) < epoch_no:
            yield Happening(key_of("epoch"), partial(self._epoch, block))
        yield Happening(key_of("block"), partial(self._block, block))
        if block.slot_no >= network.byron_slots:
            yield Happening(key_of("pool", "pool_id", block.pool_id), partial(self._made_block, block))
        for tx in txs:
            yield from self._flows(block, tx)
            yield from self._mints(block, tx)
            yield from self._withdrawals(tx)
            yield from self._certificates(tx)
            yield from self._labels(block, tx)

    def _flows(self, block: BlockRow, tx: _Read) -> Iterator[Happening]:
        """Who receives and who spends in a transaction."""
        received, spent = defaultdict[bytes, int](int), defaultdict[bytes, int](int)
        for outputs, moved in ((tx.outputs, received), (tx.inputs, spent)):
            for output in outputs:
                for key in self._address_keys[output.address_no]:
                    moved[key] += output.lovelace
                for asset_no, quantity in output.quantities.items():
                    policy_id, name = self._assets[asset_no]
                    moved[key_of("transaction", "asset", policy_id + name)] += quantity
                    moved[key_of("transaction", "policy_id", policy_id)] += quantity
        make = partial(self._transaction, block, tx)
        self._shown_by[id(make)] = tx
        for key in dict.fromkeys((*received, *spent)):
            yield Happening(key, make, received.get(key), spent.get(key))

    def _mints(self, block: BlockRow, tx: _Read) -> Iterator[Happening]:
        for asset_no, quantity in tx.mint.items():
            policy_id, name = self._assets[asset_no]
            make = partial(self._mint, block, tx, policy_id, name, quantity)
            received, spent = (quantity, None) if quantity > 0 else (None, -quantity)
            yield Happening(key_of("mint", "asset", policy_id + name), make, received, spent)
            yield Happening(key_of("mint", "policy_id", policy_id), make, received, spent)

    def _withdrawals(self, tx: _Read) -> Iterator[Happening]:
        for account, lovelace in tx.extra.withdrawals.items():
            make = partial(self._withdrawal, tx, account, lovelace)
            yield Happening(key_of("withdrawal", "stake_address", account), make, None, lovelace)

    def _certificates(self, tx: _Read) -> Iterator[Happening]:
        for at, certificate in enumerate(tx.extra.certificates):
            yield from self._votes(tx, certificate)
            pool_id = certificate.pool_id
            if pool_id is None:
                continue
            match certificate.type:
                case "stakeDelegation":
                    account = self._account(certificate)
                    make: Make = partial(self._delegation, tx, account, pool_id)
                    yield Happening(key_of("delegation", "stake_address", account), make)
                    yield Happening(key_of("delegation", "pool_id", pool_id), make)
                case "stakePoolRegistration" | "stakePoolRetirement":
                    make = partial(self._pool_certificate, tx, at)
                    yield Happening(key_of("pool", "pool_id", pool_id), make)

    def _votes(self, tx: _Read, certificate: packed.Certificate) -> Iterator[Happening]:
        """What a certificate means for those who vote. Who delegates is one subject, the representative another."""
        change, representative = _GOVERNANCE_CHANGES.get(certificate.type), certificate.representative
        if change is None or representative is None:
            return
        account = self._account(certificate) if change == "vote_delegation" else None
        make = partial(self._governance, tx, certificate, change, representative, account)
        yield Happening(key_of("governance", "drep_id", representative), make)
        if account is not None:
            yield Happening(key_of("governance", "stake_address", account), make)

    def _account(self, certificate: packed.Certificate) -> bytes:
        """The account of a delegation."""
        assert certificate.stake is not None, "a delegation has an account"
        origin = packed.CREDENTIAL_ORIGINS[certificate.stake[0]]
        return address.reward_account(certificate.stake[1:], origin, self._network)

    def _labels(self, block: BlockRow, tx: _Read) -> Iterator[Happening]:
        for label_no in tx.extra.label_nos:
            label = label_numbered(label_no)
            make = partial(self._labelled, block, tx, label)
            yield Happening(key_of("metadata", "label", label_bytes(label)), make)

    # The objects. They are those of answers, of a block that others follow or not: no field depends on that.

    async def _epoch(self, block: BlockRow) -> EpochEvent:
        network = self._network
        epoch_no = network.epoch_of(block.slot_no)
        first, after = network.epoch_start(epoch_no), network.epoch_start(epoch_no + 1)
        begins = EpochBlock(block.block_hash.hex(), block.block_no, block.slot_no, network.slot_time(block.slot_no))
        return EpochEvent(epoch_no, network.slot_time(first), network.slot_time(after), first, after - 1, begins)

    async def _block(self, block: BlockRow) -> Block:
        shown = await blocks.show(self._db, await blocks.in_slot(self._db, block.slot_no), self._network)
        return msgspec.structs.replace(shown, next_block=None)

    async def _made_block(self, block: BlockRow) -> PoolEvent:
        return PoolEvent("block", show_pool_id(block.pool_id), block=await self._block(block))

    async def _transaction(self, block: BlockRow, tx: _Read) -> FullTransaction:
        row, numbering = tx.row, self._end.numbering
        found = FoundTransaction(
            tip_slot_no=self._end.slot_no,
            tip_hash=self._end.block_hash,
            tip_block_no=self._end.block_no,
            slot_no=block.slot_no,
            block_no=block.block_no,
            block_hash=block.block_hash,
            tx_hash=row.tx_hash,
            numbering=numbering,
            fee=row.fee,
            size=row.size,
            inputs=row.inputs,
            outputs=row.outputs,
            mint=row.mint,
            extra=row.extra,
            referred=None,
            attached=None,
            tx_id=row.tx_id,
        )
        spent = [each async for each in transactions.each_input(self._db, numbering, row.inputs, grouped=False)]
        return await transactions.full(self._db, found, self._network, grouped=False, inputs=spent)

    async def _mint(self, block: BlockRow, tx: _Read, policy_id: bytes, name: bytes, quantity: int) -> MintEvent:
        time = self._network.slot_time(block.slot_no)
        tx_hash, place = tx.row.tx_hash.hex(), (block.block_no, block.slot_no, time)
        return MintEvent(tx_hash, *place, str(quantity), policy_id.hex(), name.hex())

    async def _withdrawal(self, tx: _Read, account: bytes, lovelace: int) -> WithdrawalEvent:
        at = self._position(tx)
        return WithdrawalEvent(at.tx_hash, at.slot_no, at.block_time, lovelace, address.show_stake(account))

    async def _delegation(self, tx: _Read, account: bytes, pool_id: bytes) -> DelegationEvent:
        at = self._position(tx)
        active_epoch_no = self._network.epoch_of(at.slot_no) + ACTIVE_AFTER_EPOCHS
        return DelegationEvent(address.show_stake(account), show_pool_id(pool_id), active_epoch_no, at)

    async def _governance(
        self,
        tx: _Read,
        certificate: packed.Certificate,
        change: GovernanceChange,
        representative: bytes,
        account: bytes | None,
    ) -> GovernanceEvent:
        stake_address = None if account is None else address.show_stake(account)
        shown = certificates.show(certificate, self._network)
        return GovernanceEvent(change, representatives.show(representative), stake_address, self._position(tx), shown)

    async def _pool_certificate(self, tx: _Read, at: int) -> PoolEvent:
        certificate = tx.extra.certificates[at]
        assert certificate.pool_id is not None, "it names a pool"
        change: PoolChange = "retirement"
        if certificate.type == "stakePoolRegistration":
            change = "update" if await self._is_registered(tx, at) else "registration"
        shown = certificates.show(certificate, self._network)
        return PoolEvent(change, show_pool_id(certificate.pool_id), self._position(tx), shown)

    async def _is_registered(self, tx: _Read, at: int) -> bool:
        """Whether the pool of a registration is registered when it comes."""
        this, earlier = tx.extra.certificates[at], tx.extra.certificates[:at]
        if any(each.type == this.type and each.pool_id == this.pool_id for each in earlier):
            return True
        epoch_no = self._network.epoch_of(slot_of(tx.row.tx_id))
        last = await _registration_before.one(self._db, this.pool_id, tx.row.tx_id, epoch_no)
        if last is None or last.retired_epoch_no is None:
            return last is not None
        return self._network.epoch_of(slot_of(last.tx_id)) >= last.retired_epoch_no

    async def _labelled(self, block: BlockRow, tx: _Read, label: int) -> LabelledTransaction:
        cbor, json = tx.extra.metadata_cbor, tx.extra.metadata_json
        its = packed.Extra(
            metadata_cbor={label: cbor[label]} if label in cbor else {},
            metadata_json={label: json[label]} if label in json else {},
        )
        return LabelledTransaction(
            tx.row.tx_hash.hex(),
            block.block_hash.hex(),
            block.slot_no,
            block.block_no,
            self._network.slot_time(block.slot_no),
            transactions.metadata_of(its)[str(label)],
        )

    def _position(self, tx: _Read) -> Position:
        slot_no = slot_of(tx.row.tx_id)
        return Position(tx.row.tx_hash.hex(), slot_no, self._network.slot_time(slot_no))


def _unpacked(row: TransactionRow) -> _Read:
    _, outputs = packed.unpack_outputs(row.outputs)
    sources = [spent.source for spent in packed.unpack_inputs(row.inputs)]
    return _Read(
        row,
        [source for source in sources if source is not None],
        outputs,
        packed.unpack_mint(row.mint),
        packed.unpack_extra(row.extra),
    )


def _keys_of_address(raw: bytes) -> tuple[bytes, ...]:
    """The keys under which a transaction of an address is looked up."""
    account, digest = address.stake_of(raw), address.payment_hash_of(raw)
    keys = [key_of("transaction", "address", raw)]
    if account is not None:
        keys.append(key_of("transaction", "stake_address", account))
    if digest is not None:
        keys.append(key_of("transaction", "payment_credential", digest))
    return tuple(keys)
