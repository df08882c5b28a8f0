"""What blocks say of assets, as rows: which mints are described, and the datums beside reference tokens. Pure."""

import msgspec

from indexer.effects import Effects, references
from indexer.known import Known
from shared import metadata, packed
from shared.ledger import TxId


class Descriptions(msgspec.Struct):
    """Rows, each a tuple of its table's columns, and the reference outputs that are spent (hash, index, by whom), each
    of which has a row for every one of the `spent_tokens` in it.
    """

    reference_outputs: list[tuple[int, int, int, bytes | None, bytes | None]] = []
    spent_references: list[tuple[bytes, int, int]] = []
    spent_tokens: int = 0
    datums: dict[bytes, tuple[int, bytes]] = {}

    def add(self, key: TxId, tx: Effects, inputs: list[packed.Input], known: Known) -> None:
        """A transaction happened."""
        for spent in inputs:
            tokens = references(spent.source) if spent.source is not None and spent.source.assets else []
            if tokens:
                self.spent_references.append((spent.tx_hash, spent.output_index, key))
                self.spent_tokens += len(tokens)
        for place, datum in tx.reference_datums.items():
            for reference in references(tx.outputs[place]):
                self.reference_outputs.append((known.assets[reference], key, tx.first_index + place, *datum))
        for datum_hash, body in tx.datums.items():
            self.datums.setdefault(datum_hash, (key, body))


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
