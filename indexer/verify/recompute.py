"""Derive the expected contents of tables from packed transactions, a part at a time.

All results are sums, so that parts can be added in any order. A history is represented by the number of its
transactions, the sum of their tx_ids, and the sum of tx_id times quantity modulo MODULUS. Any single wrong entry
changes one of them.
"""

from collections import Counter, defaultdict

import msgspec

from indexer.rows.rows import quantity_columns
from indexer.verify import spenders
from indexer.verify.spending import Row
from shared import metadata, packed, sql
from shared.ledger import AddressNo, AssetNo, StakeNo
from shared.sql import Connection

MODULUS = (1 << 61) - 1


class AddressPart(msgspec.Struct, gc=False):
    """An address in some transactions; `held` has the quantities received less those spent, by asset_no."""

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


class AccountPart(msgspec.Struct, gc=False):
    """An account in some transactions: those that touch its addresses, and its withdrawals."""

    txs: int = 0
    tx_ids: int = 0
    withdrawals: int = 0
    withdrawal_tx_ids: int = 0
    withdrawal_weighted: int = 0


class RecomputedRows(msgspec.Struct, frozen=True, gc=False):
    """Rows to be added up, by address_no, stake_no and asset_no. Quantities are two columns, as in the tables.

    `utxos` are the outputs that `spender` does not name, and `spending` is spenders.sums.
    """

    transactions: int
    addresses: list[tuple[AddressNo, int, int, int]]
    accounts: list[tuple[StakeNo, int, int, int, int, int]]
    holders: list[tuple[AssetNo, AddressNo, int | None, int | None]]
    assets: list[tuple[int | None, ...]]
    reference_outputs: list[tuple[AssetNo, int, int]]
    spent_references: list[tuple[bytes, int, int]]
    utxos: list[tuple[int, int, int, AddressNo, list[AssetNo] | None]]
    spending: dict[int, int]


class AssetNumber(msgspec.Struct, frozen=True):
    """The number of an asset."""

    asset_no: AssetNo
    policy_id: bytes
    name: bytes

    @property
    def is_reference(self) -> bool:
        """Whether it is a CIP-68 reference token."""
        return self.name.startswith(metadata.REFERENCE_PREFIX)


class StakeOfAddress(msgspec.Struct, frozen=True):
    """The stake credential of an address."""

    address_no: AddressNo
    stake_no: StakeNo


class AccountNumber(msgspec.Struct, frozen=True):
    """The number of a reward account."""

    raw: bytes
    stake_no: StakeNo


class Known(msgspec.Struct, frozen=True):
    """The rows of tables for the numbers and byte strings in some transactions, and the spenders of their outputs."""

    names: dict[AssetNo, AssetNumber]
    accounts: dict[AddressNo, StakeNo]
    stakes: dict[bytes, StakeNo]
    spenders: list[spenders.SpenderRow]


async def look_up(db: Connection, transactions: list[Row], rows: list[spenders.SpenderRow]) -> Known:
    """Look up the data for adding up some transactions; `rows` are those of `spender` for their slots."""
    addresses, assets, owners = set[AddressNo](), set[AssetNo](), set[bytes]()
    for transaction in transactions:
        made = packed.unpack_outputs(transaction.outputs)[1]
        spent = [each.source for each in packed.unpack_inputs(transaction.inputs) if each.source is not None]
        for output in (*made, *spent):
            addresses.add(output.address_no)
            assets.update(output.quantities)
        assets.update(packed.unpack_mint(transaction.mint))
        owners.update(_withdrawals(transaction))
    return Known(
        names={found.asset_no: found for found in await asset_names.all(db, list(assets))},
        accounts={found.address_no: found.stake_no for found in await accounts.all(db, list(addresses))},
        stakes={found.raw: found.stake_no for found in await stakes.all(db, list(owners))},
        spenders=rows,
    )


def of(transactions: list[Row], known: Known) -> RecomputedRows:
    """Add up some transactions: whole blocks, in order of tx_id."""
    count = _Count(known)
    for transaction in transactions:
        count.add(transaction)
    addresses = count.addresses
    return RecomputedRows(
        transactions=len(transactions),
        addresses=[(address_no, part.txs, part.tx_ids, part.lovelace) for address_no, part in addresses.items()],
        accounts=[(stake_no, *_account_row(part)) for stake_no, part in count.accounts.items()],
        holders=[
            (asset_no, address_no, *quantity_columns(quantity))
            for address_no, part in addresses.items()
            for asset_no, quantity in part.held.items()
            if quantity
        ],
        assets=[_asset_row(asset_no, part) for asset_no, part in count.assets.items()],
        reference_outputs=count.reference_outputs,
        spent_references=count.spent_references,
        utxos=count.utxos,
        spending=spenders.sums(transactions, known.spenders),
    )


class _Count:
    """The sums of some transactions, by address_no, stake_no and asset_no."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._spent = set(spenders.spent_in(known.spenders).output_no.tolist())
        self._tokens = {asset_no for asset_no, asset in known.names.items() if asset.is_reference}
        self.utxos: list[tuple[int, int, int, AddressNo, list[AssetNo] | None]] = []
        self.accounts: defaultdict[StakeNo, AccountPart] = defaultdict(AccountPart)
        self.addresses: defaultdict[AddressNo, AddressPart] = defaultdict(AddressPart)
        self.assets: defaultdict[AssetNo, AssetPart] = defaultdict(AssetPart)
        self.reference_outputs: list[tuple[AssetNo, int, int]] = []
        self.spent_references: list[tuple[bytes, int, int]] = []

    def add(self, transaction: Row) -> None:
        """Count one more transaction."""
        tx_id = transaction.tx_id
        first_index, outputs = packed.unpack_outputs(transaction.outputs)
        received: Counter[AssetNo] = Counter()
        for place, output in enumerate(outputs, first_index):
            if spenders.output_no(tx_id, place) not in self._spent:
                asset_nos = sorted(output.quantities) or None
                self.utxos.append((tx_id, place, output.lovelace, output.address_no, asset_nos))
            self._move(output, 1, tx_id)
            received.update(output.quantities)
            tokens = self._tokens & output.quantities.keys()
            self.reference_outputs += [(asset_no, tx_id, place) for asset_no in tokens]
        touched = {output.address_no for output in outputs}
        for spent in packed.unpack_inputs(transaction.inputs):
            if spent.source is not None:
                touched.add(spent.source.address_no)
                self._move(spent.source, -1, tx_id)
                for _ in self._tokens & spent.source.quantities.keys():
                    self.spent_references.append((spent.tx_hash, spent.output_index, tx_id))
        for asset_no, quantity in received.items():
            self._receive(asset_no, quantity, tx_id)
        self._touch_accounts(transaction, touched)
        if transaction.mint is not None:
            self._mint(tx_id, packed.unpack_mint(transaction.mint), packed.unpack_extra(transaction.extra))

    def _move(self, output: packed.Output, sign: int, tx_id: int) -> None:
        """Count an output that is made (`sign` 1) or spent (-1)."""
        part = self.addresses[output.address_no]
        part.lovelace += sign * output.lovelace
        if part.last_tx_id != tx_id:
            part.last_tx_id = tx_id
            part.txs += 1
            part.tx_ids += tx_id
        for asset_no, quantity in output.quantities.items():
            part.held[asset_no] = part.held.get(asset_no, 0) + sign * quantity

    def _touch_accounts(self, transaction: Row, addresses: set[AddressNo]) -> None:
        """Count a transaction for the accounts whose addresses it touches, and its withdrawals."""
        tx_id, known = transaction.tx_id, self._known
        for stake_no in {known.accounts[address_no] for address_no in addresses if address_no in known.accounts}:
            part = self.accounts[stake_no]
            part.txs += 1
            part.tx_ids += tx_id
        for account, lovelace in _withdrawals(transaction).items():
            part = self.accounts[known.stakes.get(account, _UNKNOWN)]
            part.withdrawals += 1
            part.withdrawal_tx_ids += tx_id
            part.withdrawal_weighted += tx_id * lovelace

    def _receive(self, asset_no: AssetNo, quantity: int, tx_id: int) -> None:
        """Count a transaction that has this quantity of an asset in its outputs."""
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
            asset = self._known.names.get(asset_no)
            if asset is not None and described.entry(asset.policy_id, asset.name) is not None:
                part.named += 1
                part.named_tx_ids += tx_id


def _withdrawals(transaction: Row) -> dict[bytes, int]:
    """The withdrawals of a transaction, in lovelace by reward account."""
    if not packed.may_have_withdrawals(transaction.extra):
        return {}
    return packed.unpack_extra(transaction.extra).withdrawals


def _account_row(part: AccountPart) -> tuple[int, int, int, int, int]:
    return (
        part.txs,
        part.tx_ids,
        part.withdrawals,
        part.withdrawal_tx_ids,
        part.withdrawal_weighted % MODULUS,
    )


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
_UNKNOWN = StakeNo(0)  # numbers begin at 1
asset_names = _sql.query("asset_names", AssetNumber)
accounts = _sql.query("accounts", StakeOfAddress)
stakes = _sql.query("stakes", AccountNumber)
