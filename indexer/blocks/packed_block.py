"""A block between the node and its rows: its effects as bytes, with the look-ups that they need.

A batch may have thousands of transactions. As objects they would not fit into a processor's cache, and reading them
from memory would take longer than the work on them. Bytes take a tenth of the space; each block is unpacked when its
rows are built (docs/decisions/0015).
"""

import msgspec

from indexer.blocks import certificates
from indexer.blocks.attachments import HashedScript
from indexer.blocks.effects import Assets, BlockEffects, Effects, PaidOutput, described, reference_tokens
from indexer.ogmios import frames
from shared import packed
from shared.address import script_key
from shared.ledger import LabelNo, Point, ScriptKey
from shared.network import Network
from shared.packed import OutputKey

_NEAR_TIP_BLOCKS = 100


class Payment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An output that waits for the row numbers of its address and assets.

    `address` is a place in Lookups.addresses; `assets` has quantities by place in Lookups.assets.
    `references` is the number of CIP-68 reference tokens among them, and one more if the output has a reference script.
    `script_key` is that of the script that locks it, None if none does.
    """

    address: int
    lovelace: int
    assets: dict[int, int]
    references: int
    script_key: ScriptKey | None


class Transaction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The effects of a transaction, with `attached` and `extra` packed as in its row.

    `returned` is the collateral return as in packed.Referred.

    Assets are places in Lookups.assets. Those in `named` are minted here and described by its metadata (CIP-25).
    `reference_outputs` has for each CIP-68 reference token the asset, the output index, and the datum's hash.
    `script_outputs` has the index of each output with a reference script, and its hash.
    `labels` are those of its metadata, none if its scripts failed; `redeemers` and `spends` are as in packed.Extra.
    """

    tx_hash: bytes
    inputs: list[OutputKey]
    first_index: int
    payments: list[Payment]
    mint: dict[int, int]
    named: list[int]
    fee: int | None
    size: int | None
    valid: bool
    withdrawals: dict[bytes, int]
    credits: dict[bytes, int]
    certificates: list[frames.Certificate]
    instantaneous_rewards: list[packed.InstantaneousRewards]
    other_payments: int
    references: list[OutputKey]
    collaterals: list[OutputKey]
    returned: packed.Returned | None
    reference_outputs: list[tuple[int, int, bytes | None]]
    script_outputs: list[tuple[int, bytes]]
    datums: dict[bytes, bytes]
    scripts: dict[bytes, HashedScript]
    attached: bytes | None
    extra: bytes | None
    labels: list[LabelNo]
    redeemers: list[ScriptKey | None]
    spends: list[int]


class Lookups(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Everything to look up before the rows of a block can be built, without duplicates.

    `tx_hashes` are the block's own transactions, `spent` the outputs of other blocks that they spend or refer to.
    `addresses` are in the order of their first use. `assets` are policy id and name in one byte string,
    `reward_accounts` the 29 bytes of CIP-19, `pool_ids` 28 bytes.
    """

    tx_hashes: list[bytes]
    spent: list[OutputKey]
    addresses: list[bytes]
    assets: list[bytes]
    reward_accounts: list[bytes]
    pool_ids: list[bytes]


class Observations(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Signs of the node's flags, and unknown certificates in a block; see node_warnings.py.

    `sized`: transactions have their CBOR and so their size. `lossy`: the form of metadata loses bytes. Either is None
    if no transaction shows it. `unknown_certificates` maps each unknown type to the hash of a transaction that has one.
    """

    sized: bool | None
    lossy: bool | None
    unknown_certificates: dict[str, bytes]


class PackedBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block as in effects.BlockEffects, and the tip of the node when it arrived.

    `host_count` is the number of transactions without their sub-transactions; the column `tx_count` counts these, too.
    """

    era: str
    point: Point
    block_no: int
    ancestor: str
    ebb: bool
    issuer: bytes | None
    node_tip: frames.NodePoint
    host_count: int
    size: int | None
    lookups: Lookups
    observations: Observations
    packed: bytes

    @property
    def blocks_to_tip(self) -> int:
        """How many blocks the node's tip was ahead when this one arrived."""
        return self.node_tip.height - self.block_no

    def unpack(self) -> list[list[Transaction]]:
        """The transactions, each in a group with its sub-transactions as in effects.BlockEffects."""
        return _decode(self.packed)


def pack(block: BlockEffects, node_tip: frames.NodePoint, network: Network) -> PackedBlock:
    """Pack a block that arrived when the node's tip was `node_tip`. Raises frames.Unreadable."""
    transactions = [tx for group in block.transactions for tx in group]
    made = {tx.tx_hash for tx in transactions}
    spent = [key for tx in transactions for key in (*tx.inputs, *tx.references, *tx.collaterals)]
    accounts, pool_ids = certificates.named_by(block, network)
    addresses, assets = _Places(), _Places()
    groups = [
        [_transaction(tx, addresses, assets, block.point, network) for tx in group] for group in block.transactions
    ]
    return PackedBlock(
        era=block.era,
        point=block.point,
        block_no=block.block_no,
        ancestor=block.ancestor,
        ebb=block.ebb,
        issuer=block.issuer,
        node_tip=node_tip,
        host_count=len(block.transactions),
        size=block.size,
        lookups=Lookups(
            tx_hashes=list(made),
            spent=[key for key in dict.fromkeys(spent) if packed.tx_hash_of(key) not in made],
            addresses=list(addresses),
            assets=list(assets),
            reward_accounts=list(accounts),
            pool_ids=list(pool_ids),
        ),
        observations=_observed(transactions),
        packed=_encoded(groups, block.point),
    )


def is_near_tip(block_no: int, node_tip: frames.NodePoint) -> bool:
    """Whether a block is within _NEAR_TIP_BLOCKS of the node's tip: a batch that ends with it does not wait for more
    blocks, and its commit waits for the disk.
    """
    return node_tip.height - block_no <= _NEAR_TIP_BLOCKS


def placed(block: PackedBlock, before: Point | None, network: Network) -> PackedBlock:
    """The block after `before`. An epoch boundary block, which has no slot, gets the first slot of its epoch."""
    if not block.ebb:
        return block
    epoch_no = 0 if before is None else network.epoch_of(before.slot_no) + 1
    point = Point(network.epoch_start(epoch_no), block.point.block_hash)
    return msgspec.structs.replace(block, point=point)


class _Places(dict[bytes, int]):
    """Assigns a place to each byte string, in the order of their first look-up."""

    def __missing__(self, key: bytes) -> int:
        place = self[key] = len(self)
        return place


def _encoded(groups: list[list[Transaction]], at: Point) -> bytes:
    try:
        return _encode(groups)
    except OverflowError as error:
        tx_hash = next(tx.tx_hash for group in groups for tx in group if not _is_encodable(tx))
        raise _unreadable(tx_hash, at, error) from error


def _unreadable(tx_hash: bytes, at: Point, error: OverflowError) -> frames.Unreadable:
    """No ledger has a number beyond 64 bits."""
    where = f"block {at.block_hash.hex()} at slot {at.slot_no}: transaction {tx_hash.hex()}"
    return frames.Unreadable(f"{where}: {error}")


def _is_encodable(tx: Transaction) -> bool:
    try:
        _encode(tx)
    except OverflowError:
        return False
    return True


def _transaction(tx: Effects, addresses: _Places, assets: _Places, at: Point, network: Network) -> Transaction:
    extra = tx.extra
    if tx.certificates:
        packed_certificates = certificates.packed_of(tx.certificates, tx.tx_hash, network)
        extra = msgspec.structs.replace(extra, certificates=packed_certificates)
    try:
        packed_extra = packed.pack_extra(extra)
    except OverflowError as error:
        raise _unreadable(tx.tx_hash, at, error) from error
    payments: list[Payment] = []
    references: list[tuple[int, int]] = []
    scripts = {each.output_index: each.script_hash for each in tx.attached if each.script_hash is not None}
    for index, output in enumerate(tx.outputs, tx.first_index):
        if not output.assets:
            locked_by = script_key(output.address)
            payments.append(
                Payment(addresses[output.address], output.lovelace, _NOTHING, int(index in scripts), locked_by)
            )
            continue
        held, tokens = _by_place(output.assets, assets), reference_tokens(output.assets)
        references += [(assets[token], index) for token in tokens]
        marks = len(tokens) + (index in scripts)
        locked_by = script_key(output.address)
        payments.append(Payment(addresses[output.address], output.lovelace, held, marks, locked_by))
    datum_hashes = {attached.output_index: attached.datum_hash for attached in tx.attached} if references else {}
    return Transaction(
        tx_hash=tx.tx_hash,
        inputs=tx.inputs,
        first_index=tx.first_index,
        payments=payments,
        mint=_by_place(tx.mint, assets) if tx.mint else _NOTHING,
        named=[assets[asset] for asset in described(tx)] if tx.mint else [],
        fee=tx.fee,
        size=tx.size,
        valid=extra.valid,
        withdrawals=extra.withdrawals,
        credits=extra.credits,
        certificates=tx.certificates,
        instantaneous_rewards=extra.instantaneous_rewards or [],
        other_payments=tx.other_payments,
        references=tx.references,
        collaterals=tx.collaterals,
        returned=None if tx.returned is None else _returned(tx.returned, tx.outputs),
        reference_outputs=[(token, index, datum_hashes.get(index)) for token, index in references],
        script_outputs=list(scripts.items()),
        datums=tx.datums,
        scripts=tx.scripts,
        attached=packed.pack_attached(tx.attached),
        extra=packed_extra,
        labels=extra.label_nos,
        redeemers=extra.redeemers,
        spends=extra.spends,
    )


def _returned(returned: PaidOutput, outputs: list[PaidOutput]) -> packed.Returned:
    """The collateral return. Its address is mostly one that the transaction pays, too."""
    paid = (at for at, output in enumerate(outputs) if output.address == returned.address)
    return packed.Returned(next(paid, returned.address), returned.lovelace)


def _by_place(bundle: Assets, places: _Places) -> dict[int, int]:
    return {
        places[policy_id + name]: quantity
        for policy_id, quantities in bundle.items()
        for name, quantity in quantities.items()
    }


def _observed(transactions: list[Effects]) -> Observations:
    sized, lossy, unknown = None, None, dict[str, bytes]()
    for tx in transactions:
        sized = tx.size is not None
        if tx.extra.metadata_json:
            lossy = lossy or not all(json.startswith(_DETAILED) for json in tx.extra.metadata_json.values())
        elif tx.extra.metadata_cbor:
            lossy = lossy or False
        for certificate in tx.certificates:
            if certificate.type not in packed.CERTIFICATES:
                unknown.setdefault(certificate.type, tx.tx_hash)
    return Observations(sized, lossy, unknown)


_NOTHING: dict[int, int] = {}
# The beginnings of metadata in the detailed schema of Ogmios, which distinguishes bytes from text.
_DETAILED = (b'{"int"', b'{"string"', b'{"bytes"', b'{"list"', b'{"map"')
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[Transaction]]).decode
