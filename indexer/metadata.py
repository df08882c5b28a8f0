"""What blocks say of assets, as rows: which mints are described, and the datums beside reference tokens. Pure."""

import msgspec

from indexer import frames
from indexer.effects import Effects
from indexer.known import Known
from shared import metadata, packed
from shared.ledger import TxId


class Descriptions(msgspec.Struct):
    """Rows, each a tuple of its table's columns, and the reference outputs that are spent (hash, index, by whom)."""

    reference_outputs: list[tuple[int, int, int, bytes | None, bytes | None]] = []
    spent_references: list[tuple[bytes, int, int]] = []
    datums: dict[bytes, tuple[int, bytes]] = {}

    def add(self, key: TxId, tx: Effects, inputs: list[packed.Input], known: Known) -> None:
        """A transaction happened. Raises frames.Unreadable."""
        for spent in inputs:
            if spent.source is not None and spent.source.assets and _references(spent.source):
                self.spent_references.append((spent.tx_hash, spent.output_index, key))
        for place, output in enumerate(tx.outputs):
            if output.assets:
                for reference in _references(output):
                    datum_hash, datum = _datum(_declared(tx)[place])
                    row = (known.assets[reference], key, tx.first_index + place, datum_hash, datum)
                    self.reference_outputs.append(row)
        for datum_hash_text, body in tx.declared.datums.items():
            # NOTE: those of failed scripts as well: what a hash stands for does not depend on who says it.
            if metadata.may_describe(bytes(body)[1:]):
                self.datums.setdefault(bytes.fromhex(datum_hash_text), (key, _read(body)))


def described(tx: Effects) -> set[bytes]:
    """The assets, each a policy id and a name, that a transaction mints and that its label 721 names (CIP-25)."""
    minted = [
        (policy_id, name)
        for policy_id, quantities in tx.mint.items()
        for name, quantity in quantities.items()
        if quantity > 0
    ]
    if not minted:
        return set()
    entries = metadata.Described(tx.extra)
    return {policy_id + name for policy_id, name in minted if entries.entry(policy_id, name) is not None}


def _references(output: packed.Output) -> list[bytes]:
    """The reference tokens in an output, each a policy id and a name."""
    return [
        policy_id + name
        for policy_id, quantities in output.assets.items()
        for name in quantities
        if name.startswith(metadata.REFERENCE_PREFIX)
    ]


def _declared(tx: Effects) -> list[frames.Output]:
    """The node's own words for `tx.outputs`."""
    if tx.extra.valid:
        return tx.declared.outputs
    assert isinstance(tx.declared, frames.Transaction), "a sub-transaction fails with its host, and is none then"
    return [] if tx.declared.collateral_return is None else [tx.declared.collateral_return]


def _datum(output: frames.Output) -> tuple[bytes | None, bytes | None]:
    """The hash of a datum, or the datum itself, that an output carries."""
    if output.datum and bytes(output.datum) != b"null":
        return None, _read(output.datum)
    return None if output.datum_hash is None else bytes.fromhex(output.datum_hash), None


def _read(text: msgspec.Raw) -> bytes:
    """The CBOR of a datum that comes as hex. Raises frames.Unreadable."""
    try:
        return bytes.fromhex(msgspec.json.decode(text, type=str))
    except (msgspec.MsgspecError, ValueError) as error:
        raise frames.Unreadable(f"a datum that is no hex: {error}") from error
