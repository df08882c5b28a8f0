"""From blocks to rows of every table and moved amounts.

`build` does not apply the outputs that are made and spent: they are part of its result, for the caller to apply.
"""

import asyncio

import msgspec

from indexer.blocks.packed_block import PackedBlock, Transaction
from indexer.rows import reference_outputs, tables, value_check
from indexer.rows.amounts import Amounts
from indexer.rows.caches import AddressNumbers, ResolvedOutput
from indexer.rows.outputs import Outputs
from indexer.rows.reference_outputs import ReferenceOutputs
from indexer.rows.resolver import Resolver, UnspentChange, by_number, outputs_paid
from indexer.rows.staking import ProtocolFork, Staking
from indexer.rows.tables import Inserts
from shared import ledger, packed
from shared.ledger import MAX_BLOCK_TRANSACTIONS, AddressNo, AssetNo, LabelNo, Point, ScriptKey, StakeNo, TxId
from shared.packed import OutputKey

_MAX_INT8 = (1 << 63) - 1

QuantityColumns = tuple[int | None, int | None]
"""A quantity as the columns `quantity` (bigint) and `large` (numeric, for quantities beyond 63 bits)."""


class Rows(msgspec.Struct):
    """The rows of consecutive blocks of one epoch, and the amounts that move.

    `lovelace_out` is the lovelace in all outputs of the transactions.

    Datums and scripts are by hash, each with the first of these transactions that shows it; the index may have it
    already. Entries of histories, mints among them, have no `seq` yet: it depends on what the index has. In bulk they
    are the rows of the staged tables.
    """

    inserts: Inserts
    staking: Staking
    tip: Point
    tip_block_no: int
    first_block_no: int
    epoch_no: int
    lovelace_out: int = 0
    address_txs: list[tuple[AddressNo, TxId]] = []
    asset_txs: list[tables.StagedAssetTx] = []
    account_txs: list[tuple[StakeNo, TxId]] = []
    credential_txs: list[tuple[AddressNo, TxId]] = []
    withdrawals: list[tables.StagedWithdrawal] = []
    label_txs: list[tuple[LabelNo, TxId]] = []
    redeemer_txs: list[tuple[ScriptKey, TxId]] = []
    mints: list[tables.StagedMint] = []
    reference_outputs: ReferenceOutputs = msgspec.field(default_factory=ReferenceOutputs)
    datums: dict[bytes, tables.Datum] = {}
    scripts: dict[bytes, tables.Script] = {}
    amounts: Amounts = msgspec.field(default_factory=Amounts)
    outputs: Outputs = msgspec.field(default_factory=Outputs)


class Built(msgspec.Struct, frozen=True):
    """The rows of some blocks, and the argument for `Resolver.apply`."""

    rows: Rows
    unspent: UnspentChange


async def build(
    blocks: list[PackedBlock],
    first_seen: Inserts,
    begun: list[int],
    era: str,
    resolver: Resolver,
    rules: value_check.Rules,
    fork: ProtocolFork | None = None,
) -> Built:
    """The rows of consecutive blocks of one epoch.

    `first_seen` has the rows from Resolver.look_up, to which all others are added; `begun` are the epochs that begin
    with the first block, `era` is that of the block before it, and `fork` is that to protocol 10, if it begins with the
    first block, too. Raises value_check.Unbalanced for a transaction that breaks the ledger's rules.
    """
    last = blocks[-1]
    rows = Rows(
        inserts=first_seen,
        staking=Staking(begun, fork, first_seen),
        tip=last.point,
        tip_block_no=last.block_no,
        first_block_no=blocks[0].block_no,
        epoch_no=resolver.network.epoch_of(last.point.slot_no),
    )
    spent = set[OutputKey]()
    for block in blocks:
        if block.era != era:
            era = block.era
            rows.inserts[tables.ERA_START].append(tables.EraStart(block.point.slot_no, era))
        if block.ebb:
            boundary = tables.EpochBoundaryBlock(block.point.slot_no, block.block_no, block.point.block_hash)
            rows.inserts[tables.EPOCH_BOUNDARY_BLOCK].append(boundary)
        else:
            _BlockRows(rows, spent, resolver, rules, block).add()
        # NOTE: yield after each block, otherwise Postgres would wait until all of these rows are built.
        await asyncio.sleep(0)
    return Built(rows, UnspentChange(rows.outputs.made, spent))


def quantity_columns(quantity: int) -> QuantityColumns:
    """A quantity as the columns `quantity` and `large`."""
    return (quantity, None) if -_MAX_INT8 <= quantity <= _MAX_INT8 else (None, quantity)


class _BlockRows:
    """One block whose rows are being built."""

    def __init__(
        self, rows: Rows, spent: set[OutputKey], resolver: Resolver, rules: value_check.Rules, block: PackedBlock
    ) -> None:
        self._rows, self._spent, self._resolver, self._rules, self._block = rows, spent, resolver, rules, block
        self._addresses: list[AddressNumbers] = resolver.addresses.get_many(block.lookups.addresses)
        self._assets: list[AssetNo] = resolver.assets.get_many(block.lookups.assets)

    def add(self) -> None:
        """Add the rows of the block and its transactions."""
        block, resolver, rows = self._block, self._resolver, self._rows
        txs = rows.inserts[tables.TX]
        slot_no = block.point.slot_no
        epoch_no = resolver.network.epoch_of(slot_no)
        index = 0
        for group in block.unpack():
            surplus = value_check.Surplus()
            for tx in group:
                tx_id = ledger.tx_id_of(slot_no, index)
                referred = self._referred(tx) if tx.references or tx.collaterals else None
                outputs, inputs, mint = self._add_transaction(tx_id, tx, surplus)
                fee: int | None = 0
                if tx is group[-1]:
                    fee = value_check.checked_fee(group, surplus, resolver, self._rules, block.point)
                parts = outputs, inputs, mint, tx.extra, tx.attached, referred
                txs.append(tables.Tx(tx_id, fee, tx.size, tx.tx_hash, *parts))
                for datum_hash, datum in tx.datums.items():
                    rows.datums.setdefault(datum_hash, tables.Datum(datum_hash, tx_id, datum))
                for script_hash, script in tx.scripts.items():
                    rows.scripts.setdefault(script_hash, tables.Script(script_hash, tx_id, *script))
                if tx.certificates or tx.withdrawals or tx.credits or tx.instantaneous_rewards:
                    rows.staking.add(tx_id, tx, epoch_no, resolver)
                    rows.withdrawals += [
                        tables.StagedWithdrawal(resolver.stakes[account], tx_id, lovelace)
                        for account, lovelace in tx.withdrawals.items()
                    ]
                if tx.labels:
                    rows.label_txs += [(label_no, tx_id) for label_no in tx.labels]
                if tx.redeemers:
                    rows.redeemer_txs += [(script_key, tx_id) for script_key in tx.redeemers if script_key is not None]
                index += 1
        assert index <= MAX_BLOCK_TRANSACTIONS, f"a block of {index} transactions"
        assert block.issuer is not None and block.size is not None, "only an epoch boundary block has neither"
        pool_no = resolver.pools[block.issuer]
        row = tables.Block(slot_no, block.block_no, index, pool_no, block.size, block.point.block_hash)
        rows.inserts[tables.BLOCK].append(row)
        if block.era != "byron":
            rows.staking.blocks[pool_no, epoch_no] += 1

    def _add_transaction(
        self, tx_id: TxId, tx: Transaction, surplus: value_check.Surplus
    ) -> tuple[bytes, bytes, bytes | None]:
        """Add the inputs, outputs and mint of a transaction. Returns its outputs, inputs and mint, packed."""
        rows = self._rows
        inputs, sources = self._add_inputs(tx_id, tx, surplus)
        spent = rows.amounts.move(sources, -1)
        rows.amounts.spent += sources
        paid = outputs_paid(tx_id, tx, self._addresses, self._assets)
        rows.outputs.made.update((packed.output_key(tx.tx_hash, output.index), output) for output in paid)
        received = rows.amounts.move(paid, 1)
        rows.lovelace_out += received.lovelace
        surplus.lovelace += spent.lovelace - received.lovelace
        if tx.mint or spent.quantities != received.quantities:
            surplus.add(spent.quantities, 1)
            surplus.add(received.quantities, -1)
        addresses, credentials = spent.addresses | received.addresses, spent.credentials | received.credentials
        rows.address_txs += [(address_no, tx_id) for address_no in addresses]
        rows.credential_txs += [(credential_no, tx_id) for credential_no in credentials - addresses]
        rows.account_txs += [(stake_no, tx_id) for stake_no in spent.stakes | received.stakes]
        if received.quantities:
            rows.asset_txs += [
                tables.StagedAssetTx(asset_no, tx_id, *quantity_columns(quantity))
                for asset_no, quantity in received.quantities.items()
            ]
        mint = self._add_mint(tx_id, tx, surplus) if tx.mint else None
        if tx.reference_outputs:
            rows.inserts[tables.REFERENCE_OUTPUT].extend(reference_outputs.made_by(tx_id, tx, self._assets))
        if tx.script_outputs:
            rows.inserts[tables.SCRIPT_OUTPUT].extend(tables.ScriptOutput(tx_id, *each) for each in tx.script_outputs)
        return packed.pack_outputs(tx.first_index, [output.packed for output in paid]), packed.pack_inputs(inputs), mint

    def _add_inputs(
        self, tx_id: TxId, tx: Transaction, surplus: value_check.Surplus
    ) -> tuple[list[bytes], list[ResolvedOutput]]:
        """Add the inputs of a transaction. Returns them, packed, and the outputs that they spend, as far as known."""
        rows = self._rows
        inputs, sources, with_redeemers = [], [], frozenset(tx.spends)
        for place, key in enumerate(tx.inputs):
            source = self._spend(key)
            if source is None:
                surplus.unknown = key
                inputs.append(packed.pack_input(key, None))
            else:
                sources.append(source)
                rows.outputs.add_spender(tx_id, source)
                if place in with_redeemers and source.script_key is not None:
                    rows.redeemer_txs.append((source.script_key, tx_id))
                inputs.append(packed.pack_input(key, source.packed))
                if source.references:
                    rows.reference_outputs.spend(tx_id, key, source.references)
        return inputs, sources

    def _referred(self, tx: Transaction) -> bytes | None:
        """The outputs that a transaction names without spending them, packed. They are unspent until it is added."""
        references, collaterals = map(self._place, tx.references), map(self._place, tx.collaterals)
        return packed.pack_referred(packed.References([*references], [*collaterals], tx.returned))

    def _place(self, key: OutputKey) -> packed.Referred:
        tx_hash, index = packed.output_of(key)
        found = self._rows.outputs.made.get(key) or self._resolver.unspent.find(key)
        return (tx_hash if found is None else found.tx_id), index

    def _add_mint(self, tx_id: TxId, tx: Transaction, surplus: value_check.Surplus) -> bytes | None:
        """Add the mints and burns of a transaction. Returns them, packed."""
        minted = by_number(tx.mint, self._assets)
        surplus.add(minted, 1)
        named = {self._assets[place] for place in tx.named}
        self._rows.mints += [
            tables.StagedMint(asset_no, tx_id, *quantity_columns(quantity), asset_no in named)
            for asset_no, quantity in minted.items()
        ]
        return packed.pack_mint(minted)

    def _spend(self, key: OutputKey) -> ResolvedOutput | None:
        """The output that an input names; None if no indexed block made it, or if one of these blocks has spent it."""
        outputs, spent = self._rows.outputs, self._spent
        source = outputs.made.pop(key, None)
        if source is None and key not in spent:
            source = self._resolver.unspent.find(key)
            if source is not None:
                outputs.spent.append(source)
        spent.add(key)
        return source
