"""What history says that derived tables must hold: packed transactions added up, a part of them at a time. Pure.

Figures are sums, so that parts can be added in any order. A history is summed up by how many transactions it has, the
sum of their tx_ids, and that of tx_id times quantity modulo MODULUS: what is wrong anywhere changes one of them.
"""

from collections import defaultdict

import msgspec

from indexer.rows import quantity_columns
from shared import metadata, packed
from shared.address import stake_of

MODULUS = (1 << 61) - 1


class AddressPart(msgspec.Struct, gc=False):
    """An address in some transactions; `held` is what it received less what it spent, by asset."""

    txs: int = 0
    tx_ids: int = 0
    lovelace: int = 0
    last_tx_id: int = -1
    held: dict[bytes, int] = {}


class AssetPart(msgspec.Struct, gc=False):
    """An asset in some transactions: those that pay it out and those that mint or burn it."""

    txs: int = 0
    tx_ids: int = 0
    weighted: int = 0
    supply: int = 0
    mints: int = 0
    burns: int = 0
    mint_tx_ids: int = 0
    mint_weighted: int = 0
    named: int = 0
    named_tx_ids: int = 0
    first_tx_id: int | None = None
    first_mint_tx_id: int | None = None


class Part(msgspec.Struct, frozen=True, gc=False):
    """Rows to be added up, by raw address, by reward account, and by policy id and name in one byte string.

    Quantities are two columns, as in the tables.
    """

    transactions: int
    addresses: list[tuple[bytes, int, int]]
    stakes: list[tuple[bytes, int]]
    holders: list[tuple[bytes, bytes, int | None, int | None]]
    assets: list[tuple[bytes | int | None, ...]]
    reference_outputs: list[tuple[bytes, int, int]]
    spent_references: list[tuple[bytes, int, int]]


class PackedTransaction(msgspec.Struct, frozen=True, gc=False):
    """A row of `tx`."""

    tx_id: int
    outputs: bytes
    inputs: bytes
    extra: bytes | None


def of(transactions: list[PackedTransaction]) -> Part:
    """What some transactions say: all of each block, in order of tx_id."""
    addresses: defaultdict[bytes, AddressPart] = defaultdict(AddressPart)
    assets: defaultdict[bytes, AssetPart] = defaultdict(AssetPart)
    reference_outputs: list[tuple[bytes, int, int]] = []
    spent_references: list[tuple[bytes, int, int]] = []
    unpack_outputs, unpack_inputs, reference = packed.unpack_outputs, packed.unpack_inputs, metadata.REFERENCE_PREFIX
    for transaction in transactions:
        tx_id = transaction.tx_id
        first_index, outputs = unpack_outputs(transaction.outputs)
        received: dict[bytes, int] = {}
        for output in outputs:
            part = addresses[output.address]
            part.lovelace += output.lovelace
            if part.last_tx_id != tx_id:
                part.last_tx_id = tx_id
                part.txs += 1
                part.tx_ids += tx_id
            if output.assets:
                held = part.held
                for policy_id, quantities in output.assets.items():
                    for name, quantity in quantities.items():
                        asset = policy_id + name
                        held[asset] = held.get(asset, 0) + quantity
                        received[asset] = received.get(asset, 0) + quantity
        for spent in unpack_inputs(transaction.inputs):
            source = spent.source
            if source is None:
                continue
            part = addresses[source.address]
            part.lovelace -= source.lovelace
            if part.last_tx_id != tx_id:
                part.last_tx_id = tx_id
                part.txs += 1
                part.tx_ids += tx_id
            if source.assets:
                held = part.held
                for policy_id, quantities in source.assets.items():
                    for name, quantity in quantities.items():
                        asset = policy_id + name
                        held[asset] = held.get(asset, 0) - quantity
                        if name[:4] == reference:
                            spent_references.append((spent.tx_hash, spent.output_index, tx_id))
        if received:
            for asset, quantity in received.items():
                paid = assets[asset]
                paid.txs += 1
                paid.tx_ids += tx_id
                paid.weighted += tx_id * quantity
                if paid.first_tx_id is None:
                    paid.first_tx_id = tx_id
                if asset[28:32] == reference:
                    reference_outputs += [
                        (asset, tx_id, place)
                        for place, output in enumerate(outputs, first_index)
                        if asset[28:] in output.assets.get(asset[:28], ())
                    ]
        if transaction.extra is not None:
            extra = packed.unpack_extra(transaction.extra)
            if extra.mint:
                _add_mint(assets, tx_id, extra)
    return Part(
        transactions=len(transactions),
        addresses=[(raw, part.txs, part.tx_ids) for raw, part in addresses.items()],
        stakes=_stakes(addresses),
        holders=[
            (asset, raw, *quantity_columns(quantity))
            for raw, part in addresses.items()
            for asset, quantity in part.held.items()
            if quantity
        ],
        assets=[_asset_row(asset, part) for asset, part in assets.items()],
        reference_outputs=reference_outputs,
        spent_references=spent_references,
    )


def _add_mint(assets: defaultdict[bytes, AssetPart], tx_id: int, extra: packed.Extra) -> None:
    described = metadata.Described(extra)
    for policy_id, quantities in extra.mint.items():
        for name, quantity in quantities.items():
            part = assets[policy_id + name]
            part.supply += quantity
            part.mint_tx_ids += tx_id
            part.mint_weighted += tx_id * quantity
            if part.first_tx_id is None:
                part.first_tx_id = tx_id
            if quantity < 0:
                part.burns += 1
                continue
            part.mints += 1
            if part.first_mint_tx_id is None:
                part.first_mint_tx_id = tx_id
            if described.entry(policy_id, name) is not None:
                part.named += 1
                part.named_tx_ids += tx_id


def _stakes(addresses: dict[bytes, AddressPart]) -> list[tuple[bytes, int]]:
    balances: defaultdict[bytes, int] = defaultdict(int)
    for raw, part in addresses.items():
        if part.lovelace:
            account = stake_of(raw)
            if account is not None:
                balances[account] += part.lovelace
    return list(balances.items())


def _asset_row(asset: bytes, part: AssetPart) -> tuple[bytes | int | None, ...]:
    return (
        asset,
        part.txs,
        part.tx_ids,
        part.weighted % MODULUS,
        *quantity_columns(part.supply),
        part.mints,
        part.burns,
        part.mint_tx_ids,
        part.mint_weighted % MODULUS,
        part.named,
        part.named_tx_ids,
        part.first_tx_id,
        part.first_mint_tx_id,
    )
