"""The outputs that hold CIP-68 reference tokens, as rows."""

import msgspec

from indexer.blocks.packed_block import Transaction
from shared import packed
from shared.ledger import AssetNo, TxId


class ReferenceOutputs(msgspec.Struct):
    """Rows, each a tuple of its table's columns, and the reference outputs that are spent (hash, index, spending
    tx_id).

    `spent_tokens` counts the reference tokens in them: one row of reference_output each.
    """

    reference_outputs: list[tuple[AssetNo, TxId, int, bytes | None]] = []
    spent_references: list[tuple[bytes, int, TxId]] = []
    spent_tokens: int = 0

    def spend(self, tx_id: TxId, key: packed.OutputKey, tokens: int) -> None:
        """Add an output with this many reference tokens that a transaction spends."""
        self.spent_references.append((*packed.output_of(key), tx_id))
        self.spent_tokens += tokens

    def add(self, tx_id: TxId, tx: Transaction, assets: list[AssetNo]) -> None:
        """Add the reference outputs of one transaction; `assets` are those of its block's Lookups."""
        for place, index, datum_hash in tx.reference_outputs:
            self.reference_outputs.append((assets[place], tx_id, index, datum_hash))
