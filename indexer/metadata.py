"""The datums that blocks put beside reference tokens (CIP-68), as rows. Pure."""

import msgspec

from indexer.parcels import Transaction
from shared import packed
from shared.ledger import TxId


class Descriptions(msgspec.Struct):
    """Rows, each a tuple of its table's columns, and the reference outputs that are spent (hash, index, by whom), each
    of which has a row for every one of the `spent_tokens` in it.
    """

    reference_outputs: list[tuple[int, int, int, bytes | None, bytes | None]] = []
    spent_references: list[tuple[bytes, int, int]] = []
    spent_tokens: int = 0
    datums: dict[bytes, tuple[int, bytes]] = {}

    def spend(self, key: TxId, output: packed.OutputKey, tokens: int) -> None:
        """A transaction spends an output that holds so many reference tokens."""
        self.spent_references.append((*packed.output_of(output), key))
        self.spent_tokens += tokens

    def add(self, key: TxId, tx: Transaction, assets: list[int]) -> None:
        """A transaction happened; `assets` are those of its block's Names."""
        for place, index, datum_hash, datum in tx.reference_outputs:
            self.reference_outputs.append((assets[place], key, index, datum_hash, datum))
        for datum_hash, body in tx.datums.items():
            self.datums.setdefault(datum_hash, (key, body))
