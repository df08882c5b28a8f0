"""The outputs that hold CIP-68 reference tokens or reference scripts."""

from typing import NamedTuple

import msgspec

from indexer.blocks.packed_block import Transaction
from indexer.rows import tables
from shared import packed
from shared.ledger import AssetNo, TxId


class SpentReference(NamedTuple):
    """A reference output, and the transaction that spends it."""

    tx_hash: bytes
    output_index: int
    spent_by: TxId


class ReferenceOutputs(msgspec.Struct):
    """The reference outputs that are spent.

    `spent_rows` counts their rows in reference_output, one for each reference token, and in script_output.
    """

    spent_references: list[SpentReference] = []
    spent_rows: int = 0

    def spend(self, tx_id: TxId, key: packed.OutputKey, rows: int) -> None:
        """Add an output with this many rows that a transaction spends."""
        self.spent_references.append(SpentReference(*packed.output_of(key), tx_id))
        self.spent_rows += rows


def made_by(tx_id: TxId, tx: Transaction, assets: list[AssetNo]) -> list[tables.ReferenceOutput]:
    """The reference outputs of one transaction; `assets` are those of its block's Lookups."""
    return [
        tables.ReferenceOutput(assets[place], tx_id, index, datum_hash)
        for place, index, datum_hash in tx.reference_outputs
    ]
