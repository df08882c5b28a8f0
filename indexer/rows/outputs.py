"""The outputs that blocks make and spend, as rows of `utxo` and `spender`."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import msgspec

from indexer.rows.caches import NumberedOutput, unpack_numbered
from shared import packed
from shared.ledger import MAX_BLOCK_TRANSACTIONS, AddressNo, AssetNo, StakeNo, TxId, slot_of
from shared.packed import OutputKey


class UtxoRow(NamedTuple):
    """A row of `utxo`; `asset_nos` are ascending."""

    tx_id: TxId
    output_index: int
    lovelace: int
    address_no: AddressNo
    stake_no: StakeNo | None
    asset_nos: list[AssetNo] | None


class Outputs(msgspec.Struct):
    """What a batch makes and leaves unspent, what it spends of earlier ones, and by which transaction.

    `made` has packed outputs (caches.pack_numbered), `spent` outputs and their index. `spenders` has entries of
    `spender` by slot_no, also for outputs that the batch makes and spends.
    """

    made: dict[OutputKey, bytes] = {}
    spent: list[tuple[int, NumberedOutput]] = []
    spenders: dict[int, bytes] = {}

    def spend(self, key: TxId, output: OutputKey, source: NumberedOutput, *, of_batch: bool) -> None:
        """A transaction spends an output, which the batch may have made itself."""
        made_by, index = source.tx_id, packed.output_of(output)[1]
        if not of_batch:
            self.spent.append((index, source))
        slot_no = slot_of(made_by)
        self.spenders[slot_no] = self.spenders.get(slot_no, b"") + pack_spender(key, made_by, index)

    def gone(self) -> list[UtxoRow]:
        """The rows of the outputs that are spent."""
        return [utxo_row(index, output) for index, output in self.spent]

    def come(self) -> list[UtxoRow]:
        """The rows of the outputs that are made and left."""
        return [utxo_row(packed.output_of(output)[1], unpack_numbered(data)) for output, data in self.made.items()]


def utxo_row(index: int, output: NumberedOutput) -> UtxoRow:
    """The row of an output with its index."""
    asset_nos = sorted(output.quantities) if output.quantities else None
    return UtxoRow(output.tx_id, index, output.lovelace, output.address_no, output.stake_no, asset_nos)


def pack_spender(key: TxId, made_by: TxId, index: int) -> bytes:
    """An entry of `spender`: the transaction that spends, and the output."""
    return _SPENDER.pack(key, made_by & (MAX_BLOCK_TRANSACTIONS - 1), index)


def unpack_spenders(slot_no: int, entries: bytes) -> Iterator[tuple[TxId, int, TxId]]:
    """The tx_id and index of each spent output of a slot, and the transaction that spent it."""
    for key, place, index in _SPENDER.iter_unpack(entries):
        yield TxId(slot_no << 16 | place), index, TxId(key)


_SPENDER = Struct(">qHH")
