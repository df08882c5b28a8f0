"""What a transaction did, valid or not, in our words. Pure; nobody downstream asks whether scripts failed."""

import msgspec

from indexer import frames
from shared import address, metadata, packed
from shared.encoding import bech32_payload
from shared.ledger import Point, pool_id_of
from shared.packed import Assets, Output, OutputKey

POLICY_BYTES = 28
HIGHEST_SLOT = (1 << 47) - 1
"""A million years of them: a row key is a slot and 16 bits of index."""

_HASH_BYTES = 32
_BEFORE_ALONZO = frozenset(("byron", "shelley", "allegra", "mary"))


Datum = tuple[bytes | None, bytes | None]
"""The hash of a datum, or the datum itself, that an output carries."""


class Effects(msgspec.Struct, frozen=True, gc=False):
    """One transaction: what it spent, paid and minted.

    A transaction that failed its scripts spent its collateral and paid its collateral return, whose index is the
    number of its declared outputs (Alonzo and Babbage ledger specifications), and did nothing else. `fee` is None
    where it follows from the inputs: in Byron, and for failed scripts. `size` is None where the node sends no CBOR.
    `given` is the lovelace of its credits, proposals and donation, which leave it beside outputs, fee and certificates.
    `reference_datums` holds, by its place in `outputs`, of each output with a CIP-68 reference token the hash of a
    datum, or the datum; `datums` by hash those that may describe an asset, failed scripts' as well: what a hash stands
    for does not depend on who says it.

    NOTE: whatever is kept of a frame as it came keeps the JSON of its whole block in memory, ten times what is here.
    """

    tx_hash: bytes
    inputs: list[OutputKey]
    first_index: int
    outputs: list[Output]
    mint: Assets
    fee: int | None
    size: int | None
    extra: packed.Extra
    certificates: list[frames.Certificate]
    given: int
    reference_datums: dict[int, Datum]
    datums: dict[bytes, bytes]


class BlockEffects(msgspec.Struct, frozen=True, gc=False):
    """A block. `transactions` holds one group per transaction: its sub-transactions (Dijkstra), then itself.

    `pool` is the hash of the issuer's cold key, None in Byron. An epoch boundary block (`ebb`) has no slot of its own;
    its point has slot -1 until `follow` knows better.
    """

    point: Point
    block_no: int
    ancestor: str
    ebb: bool
    pool: bytes | None
    transactions: list[list[Effects]]


def of_block(block: frames.Block) -> BlockEffects:
    """The effects of a block. Raises frames.Unreadable where a hash, an address or a number is none."""
    ebb = block.type == "ebb"
    slot_no = -1 if ebb else block.slot
    if slot_no is None:
        raise frames.Unreadable(f"block {block.id} without a slot")
    if slot_no > HIGHEST_SLOT or not 0 <= block.height <= HIGHEST_SLOT:
        raise frames.Unreadable(f"block {block.id} at slot {slot_no} and height {block.height}: out of range")
    try:
        return BlockEffects(
            point=Point(slot_no, _hash(block.id)),
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
    declared = [] if tx.collateral_return is None else [tx.collateral_return]
    change = [_output(output) for output in declared]
    return [
        Effects(
            tx_hash=_hash(tx.id),
            inputs=_inputs(tx.collaterals),
            first_index=len(tx.outputs),
            outputs=change,
            mint={},
            fee=None if tx.total_collateral is None else frames.lovelace(tx.total_collateral),
            size=_size(tx, era),
            extra=_extra(tx, {}, valid=False),
            certificates=[],
            given=0,
            reference_datums=_reference_datums(change, declared),
            datums=_datums(tx) if tx.datums else {},
        )
    ]


def _valid(tx: frames.SubTransaction, era: str, fee: int | None) -> Effects:
    mint = _assets(tx.mint) if tx.mint else {}
    outputs = [_output(output) for output in tx.outputs]
    return Effects(
        tx_hash=_hash(tx.id),
        inputs=_inputs(tx.inputs),
        first_index=0,
        outputs=outputs,
        mint=mint,
        fee=fee,
        size=_size(tx, era),
        extra=_extra(tx, mint),
        certificates=tx.certificates,
        given=_given(tx) if tx.credits or tx.proposals or tx.treasury else 0,
        reference_datums=_reference_datums(outputs, tx.outputs),
        datums=_datums(tx) if tx.datums else {},
    )


def _issuer(verification_key: str) -> bytes:
    return pool_id_of(bytes.fromhex(verification_key))


def _hash(text: str) -> bytes:
    """The 32 bytes of a hash. NOTE: text of the right length may have blanks in it, which `fromhex` skips."""
    raw = bytes.fromhex(text)
    if len(raw) != _HASH_BYTES:
        raise ValueError(f"{text!r} is no hash of {_HASH_BYTES} bytes")
    return raw


def _inputs(references: list[frames.Reference]) -> list[OutputKey]:
    return [packed.output_key(_hash(reference.transaction.id), reference.index) for reference in references]


def _output(output: frames.Output) -> Output:
    value = output.value
    # NOTE: an address is decoded each time it is seen. A cache of them is no faster: it is larger than the processor's.
    raw = address.of_node(output.address)
    return Output(raw, frames.lovelace(value), _assets(value) if len(value) > 1 else {})


def _assets(value: dict[str, dict[str, int]]) -> Assets:
    """Assets by their bytes. Eras before Conway let a quantity of 0 into a block, where it means nothing."""
    found = {}
    for policy_id, quantities in value.items():
        if policy_id != "ada":
            kept = {bytes.fromhex(name): quantity for name, quantity in quantities.items() if quantity}
            if kept:
                found[_policy(policy_id)] = kept
    return found


def _extra(tx: frames.SubTransaction, mint: Assets, *, valid: bool = True) -> packed.Extra:
    """Everything of a transaction that is neither input nor output; one that is not valid keeps its metadata alone."""
    metadata_cbor, metadata_json = ({}, {}) if tx.metadata is None else _metadata(tx.metadata.labels)
    if not valid:
        return packed.Extra(metadata_cbor=metadata_cbor, metadata_json=metadata_json, valid=False)
    return packed.Extra(
        mint,
        _by_account(tx.withdrawals) if tx.withdrawals else {},
        metadata_cbor,
        metadata_json,
        tx.validity_interval.invalid_before,
        tx.validity_interval.invalid_after,
        credits=_by_account(tx.credits) if tx.credits else {},
    )


def _by_account(amounts: dict[str, frames.Lovelace]) -> dict[bytes, int]:
    return {bech32_payload(text): frames.lovelace(value) for text, value in amounts.items()}


def _metadata(labels: dict[str, frames.Label]) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """Metadata by label as CBOR, and as JSON where the node does not send that."""
    cbor, json = {}, {}
    for label, form in labels.items():
        if form.cbor is not None:
            cbor[int(label)] = bytes.fromhex(form.cbor)
        else:
            json[int(label)] = bytes(form.json)
    return cbor, json


def _given(tx: frames.SubTransaction) -> int:
    given = 0 if tx.treasury is None or tx.treasury.donation is None else frames.lovelace(tx.treasury.donation)
    given += sum(frames.lovelace(proposal.deposit) for proposal in tx.proposals if proposal.deposit is not None)
    return given + sum(frames.lovelace(credit) for credit in tx.credits.values())


def _reference_datums(outputs: list[Output], declared: list[frames.Output]) -> dict[int, Datum]:
    return {
        place: _datum(declared[place])
        for place, output in enumerate(outputs)
        if output.assets and reference_tokens(output.assets)
    }


def assets_of(bundle: Assets) -> list[bytes]:
    """The assets of a bundle, each a policy id and a name in one."""
    return [policy_id + name for policy_id, names in bundle.items() for name in names]


def reference_tokens(bundle: Assets) -> list[bytes]:
    """The reference tokens (CIP-68) in a bundle, each a policy id and a name in one."""
    return [
        policy_id + name
        for policy_id, names in bundle.items()
        for name in names
        if name.startswith(metadata.REFERENCE_PREFIX)
    ]


def described(tx: Effects) -> list[bytes]:
    """The assets, each a policy id and a name, that a transaction mints and that its label 721 names (CIP-25)."""
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


def _datum(output: frames.Output) -> Datum:
    if output.datum and bytes(output.datum) != b"null":
        return None, _hex(output.datum)
    return None if output.datum_hash is None else bytes.fromhex(output.datum_hash), None


def _datums(tx: frames.SubTransaction) -> dict[bytes, bytes]:
    """The datums among a transaction's witnesses that may describe an asset: one in thousands."""
    return {
        bytes.fromhex(datum_hash): _hex(body)
        for datum_hash, body in tx.datums.items()
        if metadata.may_describe(bytes(body)[1:])
    }


def _hex(text: msgspec.Raw) -> bytes:
    """The bytes of a JSON text of hex. Raises ValueError."""
    try:
        return bytes.fromhex(msgspec.json.decode(text, type=str))
    except msgspec.MsgspecError as error:
        raise ValueError(f"a datum that is no hex: {error}") from error


def _size(tx: frames.SubTransaction, era: str) -> int | None:
    """Bytes as the ledger counts them: from Alonzo on the validity flag is on the wire but does not count."""
    if not tx.cbor:
        return None
    quoted_hex = memoryview(tx.cbor).nbytes
    return (quoted_hex - 2) // 2 - (era not in _BEFORE_ALONZO)


def _policy(policy_id: str) -> bytes:
    raw = bytes.fromhex(policy_id)
    if len(raw) != POLICY_BYTES:
        raise ValueError(f"policy {policy_id} has not {POLICY_BYTES} bytes")
    return raw
