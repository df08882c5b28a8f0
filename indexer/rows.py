"""Blocks, and what is known, as rows and amounts of every table. Pure: this is what the index means."""

import msgspec

from indexer import balance, metadata
from indexer.amounts import Amounts
from indexer.effects import BlockEffects, Effects
from indexer.known import Known, Unborn
from indexer.metadata import Descriptions
from indexer.staking import Boundary, Staking
from shared import packed
from shared.ledger import MAX_BLOCK_TRANSACTIONS, Point, TxId, tx_id

_MOST_INT8 = (1 << 63) - 1

AssetQuantity = tuple[int | None, int | None]
"""A quantity as its two columns: bigint, or numeric where it is beyond 63 bits."""


class Rows(msgspec.Struct):
    """The rows of a batch, each a tuple of its table's columns in order, and the amounts that it moves.

    In bulk the three histories are without `seq`.
    """

    unborn: Unborn
    staking: Staking
    tip: Point
    tip_block_no: int
    first_block_no: int
    blocks: list[tuple[int, int, int, int | None, bytes]] = []
    epoch_boundary_blocks: list[tuple[int, int, bytes]] = []
    txs: list[tuple[int, int | None, int | None, bytes, bytes, bytes, bytes | None]] = []
    address_txs: list[tuple[int, ...]] = []
    asset_txs: list[tuple[int | None, ...]] = []
    mints: list[tuple[int | bool | None, ...]] = []
    descriptions: Descriptions = msgspec.field(default_factory=Descriptions)
    amounts: Amounts = msgspec.field(default_factory=Amounts)


def of(blocks: list[BlockEffects], known: Known, unborn: Unborn, rules: balance.Rules, crossed: list[Boundary]) -> Rows:
    """The rows of consecutive blocks of one epoch; `unborn` is what `known` has learned of them.

    `crossed` are the epoch boundaries before the first of them. Raises balance.Unbalanced for a transaction that does
    not follow the ledger's rules, and frames.Unreadable.
    """
    last = blocks[-1]
    rows = Rows(
        unborn=unborn,
        staking=Staking(crossed),
        tip=last.point,
        tip_block_no=last.block_no,
        first_block_no=blocks[0].block_no,
    )
    for block in blocks:
        _add_block(rows, block, known, rules)
    return rows


def quantity_columns(quantity: int) -> AssetQuantity:
    """A quantity as the columns `quantity` and `large`."""
    return (quantity, None) if -_MOST_INT8 <= quantity <= _MOST_INT8 else (None, quantity)


def _add_block(rows: Rows, block: BlockEffects, known: Known, rules: balance.Rules) -> None:
    slot_no, block_hash = block.point.slot_no, block.point.block_hash
    if block.ebb:
        rows.epoch_boundary_blocks.append((slot_no, block.block_no, block_hash))
        return
    epoch_no = known.network.epoch_of(slot_no)
    index = 0
    for group in block.transactions:
        left = balance.Left()
        for tx in group:
            key = tx_id(slot_no, index)
            inputs = _add_transaction(rows, key, tx, left, known)
            fee = balance.fee_of(group, left, known, rules, block.point) if tx is group[-1] else 0
            outputs, extra = packed.pack_outputs(tx.first_index, tx.outputs), packed.pack_extra(tx.extra)
            rows.txs.append((key, fee, tx.size, tx.tx_hash, outputs, packed.pack_inputs(inputs), extra))
            if tx.certificates or tx.extra.withdrawals or tx.extra.credits:
                rows.staking.add(key, tx, epoch_no, known)
            index += 1
    assert index <= MAX_BLOCK_TRANSACTIONS, f"a block of {index} transactions"
    pool_id = None if block.pool is None else known.pools[block.pool]
    rows.blocks.append((slot_no, block.block_no, index, pool_id, block_hash))
    rows.staking.add_block(block, epoch_no, known)


def _add_transaction(rows: Rows, key: TxId, tx: Effects, left: balance.Left, known: Known) -> list[packed.Input]:
    """What a transaction spends, pays and mints; returns its inputs as they are packed."""
    sources = known.spent(tx.inputs)
    inputs = []
    for reference, source in zip(tx.inputs, sources, strict=True):
        if source is None:
            left.unknown = reference
        output = None if source is None else source.output
        inputs.append(packed.Input(reference.tx_hash, reference.output_index, output))
    spent = rows.amounts.move(filter(None, sources), -1)
    paid = known.numbered(tx.outputs)
    known.sources[tx.tx_hash] = tx.first_index, paid
    received = rows.amounts.move(paid, 1)
    left.lovelace += spent.lovelace - received.lovelace
    if tx.mint or spent.quantities != received.quantities:
        left.add(spent.quantities, 1)
        left.add(received.quantities, -1)
    touched = spent.addresses | received.addresses
    if known.bulk:
        rows.address_txs += [(address_id, key) for address_id in touched]
    else:
        place = known.address_lengths.take
        rows.address_txs += [(address_id, place(address_id), key) for address_id in touched]
    if received.quantities or tx.mint:
        _add_assets(rows, key, tx, received.quantities, left, known)
    if spent.quantities or tx.reference_datums or tx.datums:
        rows.descriptions.add(key, tx, inputs, known)
    return inputs


def _add_assets(rows: Rows, key: TxId, tx: Effects, received: dict[int, int], left: balance.Left, known: Known) -> None:
    """A transaction pays assets, or it mints or burns some."""
    minted: dict[int, int] = {}
    named: set[int] = set()
    if tx.mint:
        minted = known.quantities(tx.mint)
        left.add(minted, 1)
        named = {known.assets[asset] for asset in metadata.described(tx)}
    if known.bulk:
        rows.asset_txs += [(asset_id, key, *quantity_columns(n)) for asset_id, n in received.items()]
        rows.mints += [(asset_id, key, *quantity_columns(n), asset_id in named) for asset_id, n in minted.items()]
    else:
        rows.amounts.mint(minted, 1)
        _bear(rows, key, received, minted)
        place = known.asset_lengths.take
        rows.asset_txs += [(asset_id, place(asset_id), key, *quantity_columns(n)) for asset_id, n in received.items()]
        place = known.mint_lengths.take
        rows.mints += [
            (asset_id, place(asset_id), key, *quantity_columns(n), asset_id in named) for asset_id, n in minted.items()
        ]


def _bear(rows: Rows, key: int, received: dict[int, int], minted: dict[int, int]) -> None:
    """Note the first transaction, and the first mint, of assets that had none."""
    silent = rows.unborn.silent_assets
    for asset_id in silent.intersection((*received, *minted)) if silent else ():
        rows.amounts.supplies[asset_id].first_tx_id = key
        silent.discard(asset_id)
    for asset_id, quantity in minted.items():
        supply = rows.amounts.supplies[asset_id]
        if quantity > 0 and supply.first_mint_tx_id is None:
            supply.first_mint_tx_id = key
