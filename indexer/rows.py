"""Blocks, and what is known, as rows and amounts of every table. Pure: this is what the index means."""

import msgspec

from indexer import balance
from indexer.amounts import Amounts
from indexer.known import Known, Payee, Unborn, by_number
from indexer.metadata import Descriptions
from indexer.parcels import Parcel, Transaction
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


def of(blocks: list[Parcel], unborn: Unborn, crossed: list[Boundary]) -> Rows:
    """No rows yet, but a place for those of consecutive blocks of one epoch, which `add` makes one after another.

    `unborn` is what `known` has learned of the blocks, `crossed` the epoch boundaries before the first of them.
    """
    last = blocks[-1]
    return Rows(
        unborn=unborn,
        staking=Staking(crossed),
        tip=last.point,
        tip_block_no=last.block_no,
        first_block_no=blocks[0].block_no,
    )


def quantity_columns(quantity: int) -> AssetQuantity:
    """A quantity as the columns `quantity` and `large`."""
    return (quantity, None) if -_MOST_INT8 <= quantity <= _MOST_INT8 else (None, quantity)


def add(rows: Rows, block: Parcel, known: Known, rules: balance.Rules) -> None:
    """Make the rows of the next block.

    Raises balance.Unbalanced for a transaction that does not follow the ledger's rules.
    """
    slot_no, block_hash = block.point.slot_no, block.point.block_hash
    if block.ebb:
        rows.epoch_boundary_blocks.append((slot_no, block.block_no, block_hash))
        return
    epoch_no = known.network.epoch_of(slot_no)
    payees, assets = known.payees.of(block.names.addresses), known.assets.of(block.names.assets)
    index = 0
    for group in block.unpack():
        left = balance.Left()
        for tx in group:
            key = tx_id(slot_no, index)
            inputs = _add_transaction(rows, key, tx, left, payees, assets, known)
            fee = balance.fee_of(group, left, known, rules, block.point) if tx is group[-1] else 0
            rows.txs.append((key, fee, tx.size, tx.tx_hash, tx.outputs, inputs, tx.extra))
            if tx.certificates or tx.withdrawals or tx.credits:
                rows.staking.add(key, tx, epoch_no, known)
            index += 1
    assert index <= MAX_BLOCK_TRANSACTIONS, f"a block of {index} transactions"
    pool_id = None if block.pool is None else known.pools[block.pool]
    rows.blocks.append((slot_no, block.block_no, index, pool_id, block_hash))
    rows.staking.add_block(block, epoch_no, known)


def _add_transaction(
    rows: Rows, key: TxId, tx: Transaction, left: balance.Left, payees: list[Payee], assets: list[int], known: Known
) -> bytes:
    """What a transaction spends, pays and mints; returns its inputs, packed."""
    inputs, sources, take = [], [], known.unspent.take
    for output in tx.inputs:
        source = take(output)
        if source is None:
            left.unknown = output
            inputs.append(packed.pack_input(output, None))
        else:
            sources.append(source)
            inputs.append(packed.pack_input(output, source.packed))
            if source.reference_tokens:
                rows.descriptions.spend(key, output, source.reference_tokens)
    spent = rows.amounts.move(sources, -1)
    paid = known.paid(tx, payees, assets)
    known.unspent.add(tx.tx_hash, tx.first_index, paid)
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
        minted = by_number(tx.mint, assets)
        left.add(minted, 1)
        _add_assets(rows, key, received.quantities, minted, {assets[place] for place in tx.named}, known)
    if tx.reference_outputs or tx.datums:
        rows.descriptions.add(key, tx, assets)
    return packed.pack_inputs(inputs)


def _add_assets(
    rows: Rows, key: TxId, received: dict[int, int], minted: dict[int, int], named: set[int], known: Known
) -> None:
    """A transaction pays assets, or it mints or burns some, and describes some of those (`named`)."""
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
