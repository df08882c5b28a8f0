"""The effects of a transaction, valid or not, in one form. No side effects.

After this step, only the value check looks at whether scripts failed.
"""

import msgspec

from indexer.blocks import attachments, certificate_places, instantaneous_rewards, redeemers
from indexer.blocks.attachments import HashedScript
from indexer.ogmios import frames
from indexer.ogmios.frames import hash_bytes
from shared import address, metadata, packed
from shared.encoding import bech32_payload
from shared.ledger import HASH28_BYTES, MAX_SLOT, Point, genesis_key_hash_of, pool_id_of
from shared.packed import OutputKey

_OF_FOUR = b"84"  # the head of an array of four items, in hex


Assets = dict[bytes, dict[bytes, int]]
"""Policy id (28 bytes) -> asset name (0 to 32 bytes) -> quantity."""


class PaidOutput(msgspec.Struct, frozen=True, gc=False):
    """An output: the bytes of its address, lovelace and native assets."""

    address: bytes
    lovelace: int
    assets: Assets = {}


class Effects(msgspec.Struct, frozen=True, gc=False):
    """One transaction: what it spent, paid and minted.

    A transaction with failed scripts spent its collateral and paid its collateral return, whose index is the number of
    its declared outputs (Alonzo and Babbage ledger specifications), and did nothing else. `fee` is None if it must be
    computed from the inputs: in Byron, and for failed scripts without a declared total collateral. `size` is None if
    the node sends no CBOR.
    `other_payments` is the lovelace of its credits, proposals and donation, which are neither outputs nor fee.
    `references`, `collaterals` and `returned`, the collateral return, are what a transaction whose scripts succeeded
    names without spending or making it.
    `attached` are the datums and reference scripts of the outputs that have any. `datums` and `scripts` are those in
    the outputs and witnesses, by hash; those of a transaction with failed scripts are included.

    NOTE: a reference to any raw part of a frame would keep the JSON of the whole block in memory, ten times the size.
    """

    tx_hash: bytes
    inputs: list[OutputKey]
    first_index: int
    outputs: list[PaidOutput]
    mint: Assets
    fee: int | None
    size: int | None
    extra: packed.Extra
    certificates: list[frames.Certificate]
    other_payments: int
    references: list[OutputKey]
    collaterals: list[OutputKey]
    returned: PaidOutput | None
    attached: list[packed.Attached]
    datums: dict[bytes, bytes]
    scripts: dict[bytes, HashedScript]


class BlockEffects(msgspec.Struct, frozen=True, gc=False):
    """A block. `transactions` has one group per transaction: its sub-transactions (Dijkstra), then itself.

    `issuer` is the pool id, in Byron the hash of the genesis key; `size` is in bytes. An epoch boundary block (`ebb`)
    has neither, and no slot: its point has slot -1 until packed_block.placed puts it at the first slot of its epoch.
    """

    point: Point
    block_no: int
    ancestor: str
    ebb: bool
    issuer: bytes | None
    transactions: list[list[Effects]]
    era: str
    size: int | None


def of_block(block: frames.Block) -> BlockEffects:
    """The effects of a block. Raises frames.Unreadable for an invalid hash, address or number."""
    ebb = block.type == "ebb"
    slot_no = -1 if ebb else block.slot
    if slot_no is None:
        raise frames.Unreadable(f"block {block.id} without a slot")
    if not ebb and (block.size is None or block.issuer is None):
        raise frames.Unreadable(f"block {block.id} at slot {slot_no} without a size or an issuer")
    if slot_no > MAX_SLOT or not 0 <= block.height <= MAX_SLOT:
        raise frames.Unreadable(f"block {block.id} at slot {slot_no} and height {block.height}: out of range")
    try:
        return BlockEffects(
            point=Point(slot_no, hash_bytes(block.id)),
            block_no=block.height,
            ancestor=block.ancestor,
            ebb=ebb,
            issuer=None if block.issuer is None else _issuer(block.issuer, block.era),
            transactions=[of_transaction(transaction, block.era) for transaction in block.transactions],
            era=block.era,
            size=None if block.size is None else block.size.bytes,
        )
    except (ValueError, OverflowError) as error:
        raise frames.Unreadable(f"block {block.id} at slot {slot_no}: {error}") from error


def of_transaction(tx: frames.Transaction, era: str) -> list[Effects]:
    """The effects of a transaction, preceded by those of its sub-transactions, which spend and pay independently."""
    if tx.spends == "inputs":
        fee = None if tx.fee is None or era == "byron" else frames.lovelace(tx.fee)
        done = _valid(tx, era, fee)
        if tx.collaterals:
            returned = None if tx.collateral_return is None else _output(tx.collateral_return)
            done = msgspec.structs.replace(done, collaterals=_inputs(tx.collaterals), returned=returned)
        return [*(_valid(sub, era, 0) for sub in tx.sub_transactions), done]
    declared = [] if tx.collateral_return is None else [tx.collateral_return]
    carried = attachments.collect(tx, declared, first_index=len(tx.outputs))
    return [
        Effects(
            tx_hash=hash_bytes(tx.id),
            inputs=_inputs(tx.collaterals),
            first_index=len(tx.outputs),
            outputs=[_output(output) for output in declared],
            mint={},
            fee=None if tx.total_collateral is None else frames.lovelace(tx.total_collateral),
            size=_size(tx),
            extra=_extra(tx, era, valid=False),
            certificates=[],
            other_payments=0,
            references=[],
            collaterals=[],
            returned=None,
            attached=carried.attached,
            datums=carried.datums,
            scripts=carried.scripts,
        )
    ]


def _valid(tx: frames.SubTransaction, era: str, fee: int | None) -> Effects:
    carried, extra = attachments.collect(tx, tx.outputs), _extra(tx, era)
    return Effects(
        tx_hash=hash_bytes(tx.id),
        inputs=_inputs(tx.inputs),
        first_index=0,
        outputs=[_output(output) for output in tx.outputs],
        mint=_assets(tx.mint) if tx.mint else {},
        fee=fee,
        size=_size(tx),
        extra=extra,
        certificates=tx.certificates,
        references=_inputs(tx.references) if tx.references else [],
        collaterals=[],
        returned=None,
        other_payments=extra.donation + _other_payments(tx) if extra.donation or tx.credits or tx.proposals else 0,
        attached=carried.attached,
        datums=carried.datums,
        scripts=carried.scripts,
    )


def _issuer(issuer: frames.Issuer, era: str) -> bytes:
    key = bytes.fromhex(issuer.verification_key)
    return genesis_key_hash_of(key) if era == "byron" else pool_id_of(key)


def _inputs(references: list[frames.Reference]) -> list[OutputKey]:
    return [packed.output_key(hash_bytes(reference.transaction.id), reference.index) for reference in references]


def _output(output: frames.Output) -> PaidOutput:
    value = output.value
    # NOTE: decoded each time. A cache would not be faster, since it would not fit into the processor's.
    raw = address.of_node(output.address)
    return PaidOutput(raw, frames.lovelace(value), _assets(value) if len(value) > 1 else {})


def _assets(value: dict[str, dict[str, int]]) -> Assets:
    """Assets by their bytes. NOTE: before Conway a block may contain a quantity of 0, which is left out."""
    assets = {}
    for text, quantities in value.items():
        if text != "ada":
            kept = {bytes.fromhex(name): quantity for name, quantity in quantities.items() if quantity}
            if kept:
                assets[hash_bytes(text, HASH28_BYTES)] = kept
    return assets


def _extra(tx: frames.SubTransaction, era: str, *, valid: bool = True) -> packed.Extra:
    """The rest of a transaction besides inputs, outputs and mint; of an invalid one only the metadata."""
    metadata_cbor, metadata_json = ({}, {}) if tx.metadata is None else _metadata(tx.metadata.labels)
    if not valid:
        return packed.Extra(metadata_cbor=metadata_cbor, metadata_json=metadata_json, valid=False)
    withdrawals = _by_account(tx.withdrawals) if tx.withdrawals else {}
    scripts, spends = redeemers.of(tx, withdrawals) if tx.redeemers else ([], [])
    return packed.Extra(
        withdrawals,
        metadata_cbor,
        metadata_json,
        tx.validity_interval.invalid_before,
        tx.validity_interval.invalid_after,
        credits=_by_account(tx.credits) if tx.credits else {},
        certificate_places=certificate_places.locate(tx, era) if tx.certificates else [],
        redeemers=scripts,
        spends=spends,
        instantaneous_rewards=instantaneous_rewards.of(tx, era) if tx.proposals else [],
        donation=0 if tx.treasury is None or tx.treasury.donation is None else frames.lovelace(tx.treasury.donation),
    )


def _by_account(amounts: dict[str, frames.Lovelace]) -> dict[bytes, int]:
    return {bech32_payload(text): frames.lovelace(value) for text, value in amounts.items()}


def _metadata(labels: dict[str, frames.Metadatum]) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Metadata by label as CBOR, or as JSON if the node sends no CBOR."""
    cbor, json = {}, {}
    for label, form in labels.items():
        if form.cbor is not None:
            cbor[int(label)] = bytes.fromhex(form.cbor)
        else:
            json[int(label)] = bytes(form.json)
    return cbor, json


def _other_payments(tx: frames.SubTransaction) -> int:
    """The deposits of proposals, and the credits."""
    paid = sum(frames.lovelace(proposal.deposit) for proposal in tx.proposals if proposal.deposit is not None)
    return paid + sum(frames.lovelace(credit) for credit in tx.credits.values())


def reference_tokens(bundle: Assets) -> list[bytes]:
    """The reference tokens (CIP-68) in a bundle, each a policy id and a name in one byte string."""
    return [
        policy_id + name
        for policy_id, names in bundle.items()
        for name in names
        if name.startswith(metadata.REFERENCE_PREFIX)
    ]


def described(tx: Effects) -> list[bytes]:
    """The assets, each a policy id and a name, that a transaction mints and describes under label 721 (CIP-25)."""
    minted = [
        (policy_id, name)
        for policy_id, quantities in tx.mint.items()
        for name, quantity in quantities.items()
        if quantity > 0
    ]
    if not minted:
        return []
    entries = metadata.Described(tx.extra)
    return [policy_id + name for policy_id, name in minted if entries.entry(policy_id, name) is not None]


def _size(tx: frames.SubTransaction) -> int | None:
    """Bytes as the ledger counts them: without the validity flag, the third of four items from Alonzo on.

    NOTE: in Dijkstra the flag is gone (cardano-ledger `toCBORForMempoolSubmission`); earlier test versions had it.
    """
    if not tx.cbor:
        return None
    quoted_hex = memoryview(tx.cbor)
    return (quoted_hex.nbytes - 2) // 2 - (quoted_hex[1:3] == _OF_FOUR)
