"""What a transaction did, valid or not, in our words. Pure; nobody downstream asks whether scripts failed."""

from functools import lru_cache

import msgspec

from indexer import frames
from shared import address, packed
from shared.encoding import bech32_payload
from shared.ledger import Point, pool_id_of
from shared.packed import Assets, Output

_BEFORE_ALONZO = frozenset(("byron", "shelley", "allegra", "mary"))


class Reference(msgspec.Struct, frozen=True, gc=False):
    """An output by its transaction's hash and its index there."""

    tx_hash: bytes
    output_index: int


class Effects(msgspec.Struct, frozen=True, gc=False):
    """One transaction: what it spent, paid and minted.

    A transaction that failed its scripts spent its collateral and paid its collateral return, whose index is the
    number of its declared outputs (Alonzo and Babbage ledger specifications), and did nothing else. `fee` is None
    where it follows from the inputs: in Byron, and for failed scripts. `size` is None where the node sends no CBOR.
    `declared` is the node's own frame, for what only some tables want.
    """

    tx_hash: bytes
    inputs: list[Reference]
    first_index: int
    outputs: list[Output]
    mint: Assets
    fee: int | None
    size: int | None
    extra: packed.Extra
    declared: frames.SubTransaction


class BlockEffects(msgspec.Struct, frozen=True, gc=False):
    """A block. `transactions` holds one group per transaction: its sub-transactions (Dijkstra), then itself.

    `pool` is the hash of the issuer's cold key, None in Byron. `slot_no` of an epoch boundary block (`ebb`) is the
    first of its epoch.
    """

    point: Point
    block_no: int
    ancestor: str
    ebb: bool
    pool: bytes | None
    transactions: list[list[Effects]]


def of_block(block: frames.Block, boundary_slot: int) -> BlockEffects:
    """The effects of a block; `boundary_slot` is the slot that it has if it is an epoch boundary block.

    Raises frames.Unreadable where a hash, an address or a number is none.
    """
    ebb = block.type == "ebb"
    slot_no = boundary_slot if ebb else block.slot
    if slot_no is None:
        raise frames.Unreadable(f"block {block.id} without a slot")
    try:
        return BlockEffects(
            point=Point(slot_no, bytes.fromhex(block.id)),
            block_no=block.height,
            ancestor=block.ancestor,
            ebb=ebb,
            pool=None if block.era == "byron" or block.issuer is None else _issuer(block.issuer.verification_key),
            transactions=[of(transaction, block.era) for transaction in block.transactions],
        )
    except (ValueError, OverflowError) as error:
        raise frames.Unreadable(f"block {block.id} at slot {slot_no}: {error}") from error


def of(tx: frames.Transaction, era: str) -> list[Effects]:
    """The effects of a transaction, after those of its sub-transactions: these spend and pay on their own."""
    if tx.spends == "inputs":
        fee = None if tx.fee is None or era == "byron" else frames.lovelace(tx.fee)
        return [*(_valid(sub, era, 0) for sub in tx.sub_transactions), _valid(tx, era, fee)]
    change = [] if tx.collateral_return is None else [_output(tx.collateral_return)]
    return [
        Effects(
            tx_hash=bytes.fromhex(tx.id),
            inputs=_inputs(tx.collaterals),
            first_index=len(tx.outputs),
            outputs=change,
            mint={},
            fee=None if tx.total_collateral is None else frames.lovelace(tx.total_collateral),
            size=_size(tx, era),
            extra=_extra(tx, valid=False),
            declared=tx,
        )
    ]


def _valid(tx: frames.SubTransaction, era: str, fee: int | None) -> Effects:
    mint = _assets(tx.mint)
    return Effects(
        tx_hash=bytes.fromhex(tx.id),
        inputs=_inputs(tx.inputs),
        first_index=0,
        outputs=[_output(output) for output in tx.outputs],
        mint=mint,
        fee=fee,
        size=_size(tx, era),
        extra=_extra(tx, mint=mint),
        declared=tx,
    )


def _issuer(verification_key: str) -> bytes:
    return pool_id_of(bytes.fromhex(verification_key))


def _inputs(references: list[frames.Reference]) -> list[Reference]:
    return [Reference(bytes.fromhex(reference.transaction.id), reference.index) for reference in references]


def _output(output: frames.Output) -> Output:
    value = output.value
    if len(value) == 1:
        return Output(_raw(output.address), frames.lovelace(value))
    lovelace = frames.lovelace(value)
    return Output(_raw(output.address), lovelace, _assets({key: value[key] for key in value if key != "ada"}))


def _assets(assets: dict[str, dict[str, int]]) -> Assets:
    """Assets by their bytes. Eras before Conway let a quantity of 0 into a block, where it means nothing."""
    found = {}
    for policy_id, quantities in assets.items():
        kept = {_name(name): quantity for name, quantity in quantities.items() if quantity}
        if kept:
            found[_policy(policy_id)] = kept
    return found


def _extra(tx: frames.SubTransaction, *, mint: Assets | None = None, valid: bool = True) -> packed.Extra:
    """Everything of a transaction that is neither input nor output; one that is not valid keeps its metadata alone."""
    labels = {} if tx.metadata is None else tx.metadata.labels
    metadata_cbor = {int(label): bytes.fromhex(form.cbor) for label, form in labels.items() if form.cbor is not None}
    metadata_json = {int(label): bytes(form.json) for label, form in labels.items() if form.cbor is None}
    if not valid:
        return packed.Extra(metadata_cbor=metadata_cbor, metadata_json=metadata_json, valid=False)
    return packed.Extra(
        mint=mint or {},
        withdrawals={bech32_payload(text): frames.lovelace(value) for text, value in tx.withdrawals.items()},
        metadata_cbor=metadata_cbor,
        metadata_json=metadata_json,
        invalid_before=tx.validity_interval.invalid_before,
        invalid_hereafter=tx.validity_interval.invalid_after,
    )


def _size(tx: frames.SubTransaction, era: str) -> int | None:
    """Bytes as the ledger counts them: from Alonzo on the validity flag is on the wire but does not count."""
    if not tx.cbor:
        return None
    quoted_hex = memoryview(tx.cbor).nbytes
    return (quoted_hex - 2) // 2 - (era not in _BEFORE_ALONZO)


# NOTE: the same addresses, policies and names come again and again; decoding one costs more than finding it here.
_raw = lru_cache(maxsize=1 << 18)(address.of_node)
_policy = lru_cache(maxsize=1 << 16)(bytes.fromhex)
_name = lru_cache(maxsize=1 << 16)(bytes.fromhex)
