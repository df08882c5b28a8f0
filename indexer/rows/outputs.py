"""The outputs that blocks make and spend, as rows of `utxo` and `spender`."""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

import msgspec

from indexer.rows.caches import ResolvedOutput
from shared.ledger import AddressNo, AssetNo, StakeNo, TxId, index_of, slot_of, tx_id_of
from shared.packed import OutputKey


class UtxoRow(NamedTuple):
    """A row of `utxo`; `asset_nos` are ascending."""

    tx_id: TxId
    output_index: int
    lovelace: int
    address_no: AddressNo
    stake_no: StakeNo | None
    credential_no: AddressNo | None
    asset_nos: tuple[AssetNo, ...] | None


class Outputs(msgspec.Struct):
    """The outputs that a batch makes and leaves unspent, those of earlier batches that it spends, and the spenders.

    `spenders` has entries of `spender` by the slot_no in which the spent output was made, including those for outputs
    that the batch both makes and spends.
    """

    made: dict[OutputKey, ResolvedOutput] = {}
    spent: list[ResolvedOutput] = []
    spenders: dict[int, bytes] = {}

    def add_spender(self, spent_by: TxId, output: ResolvedOutput) -> None:
        """Add the transaction that spends an output."""
        slot_no = slot_of(output.tx_id)
        self.spenders[slot_no] = self.spenders.get(slot_no, b"") + pack_spender(spent_by, output.tx_id, output.index)

    @property
    def script_lovelace(self) -> int:
        """The change of the lovelace in unspent outputs that scripts lock."""
        return lovelace_of_scripts(self.made.values()) - lovelace_of_scripts(self.spent)

    def spent_rows(self) -> list[UtxoRow]:
        """The rows of the outputs that are spent."""
        return [utxo_row(output) for output in self.spent]

    def made_rows(self) -> list[UtxoRow]:
        """The rows of the outputs that are made and left."""
        return [utxo_row(output) for output in self.made.values()]


def lovelace_of_scripts(outputs: Iterable[ResolvedOutput]) -> int:
    """The lovelace in those of some outputs that scripts lock."""
    return sum(output.lovelace for output in outputs if output.script_key is not None)


def utxo_row(output: ResolvedOutput) -> UtxoRow:
    """The row of an output."""
    asset_nos = tuple(sorted(output.quantities)) if output.quantities else None
    return UtxoRow(
        output.tx_id,
        output.index,
        output.lovelace,
        output.address_no,
        output.stake_no,
        output.credential_no,
        asset_nos,
    )


def pack_spender(spent_by: TxId, made_by: TxId, index: int) -> bytes:
    """An entry of `spender`: the transaction that spends, and the output."""
    return _SPENDER.pack(spent_by, index_of(made_by), index)


def unpack_spenders(slot_no: int, entries: bytes) -> Iterator[tuple[TxId, int, TxId]]:
    """The tx_id and index of each spent output of a slot, and the transaction that spent it."""
    for spent_by, place, index in _SPENDER.iter_unpack(entries):
        yield tx_id_of(slot_no, place), index, TxId(spent_by)


_SPENDER = Struct(">qHH")
