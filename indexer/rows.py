"""Blocks, and what is known, as rows and amounts of every table. Pure: this is what the index means."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from indexer import balance, metadata
from indexer.amounts import Amounts
from indexer.effects import BlockEffects, Effects
from indexer.known import Known, Learned, Unborn
from indexer.metadata import Descriptions
from indexer.staking import Boundary, Staking
from shared import packed
from shared.ledger import MAX_BLOCK_TRANSACTIONS, Point, tx_id

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


def of(
    blocks: list[BlockEffects], known: Known, learned: Learned, rules: balance.Rules, crossed: list[Boundary]
) -> Rows:
    """The rows of consecutive blocks of one epoch; `learned` is what `known` has learned of them.

    `crossed` are the epoch boundaries before the first of them. Raises balance.Unbalanced for a transaction that does
    not follow the ledger's rules, and frames.Unreadable.
    """
    last = blocks[-1]
    rows = Rows(
        unborn=learned.unborn,
        staking=Staking(crossed),
        tip=last.point,
        tip_block_no=last.block_no,
        first_block_no=blocks[0].block_no,
    )
    inputs = iter(learned.inputs)
    for block in blocks:
        _add_block(rows, block, inputs, known, rules)
    return rows


def quantity_columns(quantity: int) -> AssetQuantity:
    """A quantity as the columns `quantity` and `large`."""
    return (quantity, None) if -_MOST_INT8 <= quantity <= _MOST_INT8 else (None, quantity)


def _add_block(
    rows: Rows, block: BlockEffects, inputs: Iterator[list[packed.Input]], known: Known, rules: balance.Rules
) -> None:
    slot_no, block_hash = block.point.slot_no, block.point.block_hash
    if block.ebb:
        rows.epoch_boundary_blocks.append((slot_no, block.block_no, block_hash))
        return
    epoch_no = known.network.epoch_of(slot_no)
    index = 0
    for group in block.transactions:
        spent = list(islice(inputs, len(group)))
        fee = balance.fee_of(group, spent, rules, block.point)
        for tx, spent_by_tx in zip(group, spent, strict=True):
            key = tx_id(slot_no, index)
            _add_transaction(rows, key, tx, spent_by_tx, fee if tx is group[-1] else 0, known)
            if tx.certificates or tx.extra.withdrawals or tx.extra.credits:
                rows.staking.add(key, tx, epoch_no, known)
            rows.descriptions.add(key, tx, spent_by_tx, known)
            index += 1
    assert index <= MAX_BLOCK_TRANSACTIONS, f"a block of {index} transactions"
    pool_id = None if block.pool is None else known.pools[block.pool]
    rows.blocks.append((slot_no, block.block_no, index, pool_id, block_hash))
    rows.staking.add_block(block, epoch_no, known)


def _add_transaction(
    rows: Rows, key: int, tx: Effects, inputs: list[packed.Input], fee: int | None, known: Known
) -> None:
    move = rows.amounts.move
    touched = {move(known, spent.source, -1) for spent in inputs if spent.source is not None}
    touched.update([move(known, output, 1) for output in tx.outputs])
    received: dict[int, int] = {}
    for output in tx.outputs:
        if output.assets:
            _add_assets(received, output.assets, known)
    minted: dict[int, int] = {}
    if tx.mint:
        rows.amounts.mint(known, tx.mint, 1)
        _add_assets(minted, tx.mint, known)
    named = {known.assets[asset] for asset in metadata.described(tx)} if minted else set()
    if received or minted:
        _bear(rows, key, received.keys() | minted.keys(), minted)
    rows.txs.append(
        (
            key,
            fee,
            tx.size,
            tx.tx_hash,
            packed.pack_outputs(tx.first_index, tx.outputs),
            packed.pack_inputs(inputs),
            packed.pack_extra(tx.extra),
        )
    )
    if known.bulk:
        rows.address_txs += [(address_id, key) for address_id in touched]
        rows.asset_txs += [(asset_id, key, *quantity_columns(n)) for asset_id, n in received.items()]
        rows.mints += [(asset_id, key, *quantity_columns(n), asset_id in named) for asset_id, n in minted.items()]
    else:
        place = known.address_lengths.take
        rows.address_txs += [(address_id, place(address_id), key) for address_id in touched]
        place = known.asset_lengths.take
        rows.asset_txs += [(asset_id, place(asset_id), key, *quantity_columns(n)) for asset_id, n in received.items()]
        place = known.mint_lengths.take
        rows.mints += [
            (asset_id, place(asset_id), key, *quantity_columns(n), asset_id in named) for asset_id, n in minted.items()
        ]


def _add_assets(total: dict[int, int], assets: packed.Assets, known: Known) -> None:
    for policy, quantities in assets.items():
        for name, quantity in quantities.items():
            asset_id = known.assets[policy + name]
            total[asset_id] = total.get(asset_id, 0) + quantity


def _bear(rows: Rows, key: int, moved: set[int], minted: dict[int, int]) -> None:
    """Note the first transaction, and the first mint, of assets that had none."""
    silent = rows.unborn.silent_assets
    for asset_id in moved & silent:
        rows.amounts.supplies[asset_id].first_tx_id = key
        silent.discard(asset_id)
    for asset_id, quantity in minted.items():
        supply = rows.amounts.supplies[asset_id]
        if quantity > 0 and supply.first_mint_tx_id is None:
            supply.first_mint_tx_id = key
