"""Derive the expected contents of tables from packed transactions, a part at a time.

All results are sums, so that parts can be added in any order. A history is represented by the number of its
transactions, the sum of their tx_ids, and the sum of tx_id times quantity modulo MODULUS. Any error changes one of
them.
"""

from collections import Counter, defaultdict

import msgspec

from indexer.rows.rows import quantity_columns
from shared import metadata, packed, sql
from shared.ledger import AddressNo, AssetNo
from shared.sql import Connection

MODULUS = (1 << 61) - 1


class AddressPart(msgspec.Struct, gc=False):
    """An address in some transactions; `held` is what it received less what it spent, by asset_no."""

    txs: int = 0
    tx_ids: int = 0
    lovelace: int = 0
    last_tx_id: int = -1
    held: packed.Quantities = {}


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
    """Rows to be added up, by address_no and asset_no. Quantities are two columns, as in the tables."""

    transactions: int
    addresses: list[tuple[AddressNo, int, int, int]]
    holders: list[tuple[AssetNo, AddressNo, int | None, int | None]]
    assets: list[tuple[int | None, ...]]
    reference_outputs: list[tuple[AssetNo, int, int]]
    spent_references: list[tuple[bytes, int, int]]


class PackedTransaction(msgspec.Struct, frozen=True, gc=False):
    """A row of `tx`."""

    tx_id: int
    outputs: bytes
    inputs: bytes
    mint: bytes | None
    extra: bytes | None


class AssetName(msgspec.Struct, frozen=True):
    """What the number of an asset stands for."""

    asset_no: AssetNo
    policy_id: bytes
    name: bytes

    @property
    def is_reference(self) -> bool:
        """Whether it is a CIP-68 reference token."""
        return self.name.startswith(metadata.REFERENCE_PREFIX)


Names = dict[AssetNo, AssetName]


async def names_in(db: Connection, transactions: list[PackedTransaction]) -> Names:
    """What the numbers of all assets in some transactions stand for."""
    assets = set[AssetNo]()
    for transaction in transactions:
        for output in packed.unpack_outputs(transaction.outputs)[1]:
            assets.update(output.quantities)
        for spent in packed.unpack_inputs(transaction.inputs):
            if spent.source is not None:
                assets.update(spent.source.quantities)
        assets.update(packed.unpack_mint(transaction.mint))
    return {found.asset_no: found for found in await asset_names.all(db, list(assets))}


def moved_by(transactions: list[PackedTransaction]) -> dict[AddressNo, int]:
    """Lovelace that addresses received less what they spent, in some transactions."""
    moved: defaultdict[AddressNo, int] = defaultdict(int)
    for transaction in transactions:
        for output in packed.unpack_outputs(transaction.outputs)[1]:
            moved[output.address_no] += output.lovelace
        for spent in packed.unpack_inputs(transaction.inputs):
            if spent.source is not None:
                moved[spent.source.address_no] -= spent.source.lovelace
    return moved


def of(transactions: list[PackedTransaction], names: Names) -> Part:
    """Add up some transactions: whole blocks, in order of tx_id."""
    count = _Count(names)
    for transaction in transactions:
        count.add(transaction)
    addresses = count.addresses
    return Part(
        transactions=len(transactions),
        addresses=[(address_no, part.txs, part.tx_ids, part.lovelace) for address_no, part in addresses.items()],
        holders=[
            (asset_no, address_no, *quantity_columns(quantity))
            for address_no, part in addresses.items()
            for asset_no, quantity in part.held.items()
            if quantity
        ],
        assets=[_asset_row(asset_no, part) for asset_no, part in count.assets.items()],
        reference_outputs=count.reference_outputs,
        spent_references=count.spent_references,
    )


class _Count:
    """What some transactions did, by address_no and by asset_no."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._tokens = {asset_no for asset_no, asset in names.items() if asset.is_reference}
        self.addresses: defaultdict[AddressNo, AddressPart] = defaultdict(AddressPart)
        self.assets: defaultdict[AssetNo, AssetPart] = defaultdict(AssetPart)
        self.reference_outputs: list[tuple[AssetNo, int, int]] = []
        self.spent_references: list[tuple[bytes, int, int]] = []

    def add(self, transaction: PackedTransaction) -> None:
        """Count one more transaction."""
        tx_id = transaction.tx_id
        first_index, outputs = packed.unpack_outputs(transaction.outputs)
        received: Counter[AssetNo] = Counter()
        for place, output in enumerate(outputs, first_index):
            self._move(output, 1, tx_id)
            received.update(output.quantities)
            tokens = self._tokens & output.quantities.keys()
            self.reference_outputs += [(asset_no, tx_id, place) for asset_no in tokens]
        for spent in packed.unpack_inputs(transaction.inputs):
            if spent.source is not None:
                self._move(spent.source, -1, tx_id)
                for _ in self._tokens & spent.source.quantities.keys():
                    self.spent_references.append((spent.tx_hash, spent.output_index, tx_id))
        for asset_no, quantity in received.items():
            self._receive(asset_no, quantity, tx_id)
        if transaction.mint is not None:
            self._mint(tx_id, packed.unpack_mint(transaction.mint), packed.unpack_extra(transaction.extra))

    def _move(self, output: packed.Output, sign: int, tx_id: int) -> None:
        """An output appears (`sign` 1) or is spent (-1)."""
        part = self.addresses[output.address_no]
        part.lovelace += sign * output.lovelace
        if part.last_tx_id != tx_id:
            part.last_tx_id = tx_id
            part.txs += 1
            part.tx_ids += tx_id
        for asset_no, quantity in output.quantities.items():
            part.held[asset_no] = part.held.get(asset_no, 0) + sign * quantity

    def _receive(self, asset_no: AssetNo, quantity: int, tx_id: int) -> None:
        """A transaction has a quantity of the asset in its outputs."""
        part = self.assets[asset_no]
        part.txs += 1
        part.tx_ids += tx_id
        part.weighted += tx_id * quantity
        if part.first_tx_id is None:
            part.first_tx_id = tx_id

    def _mint(self, tx_id: int, mint: packed.Quantities, extra: packed.Extra) -> None:
        described = metadata.Described(extra)
        for asset_no, quantity in mint.items():
            part = self.assets[asset_no]
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
            asset = self._names.get(asset_no)
            if asset is not None and described.entry(asset.policy_id, asset.name) is not None:
                part.named += 1
                part.named_tx_ids += tx_id


def _asset_row(asset_no: AssetNo, part: AssetPart) -> tuple[int | None, ...]:
    return (
        asset_no,
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


_sql = sql.beside(__file__)
asset_names = _sql.query("asset_names", AssetName)
