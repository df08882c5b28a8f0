"""The packed transactions of history, and the outputs of the genesis, as verify reads them."""

from collections.abc import Sequence

import msgspec

from indexer.verify.results import Difference
from shared import packed, sql
from shared.ledger import AddressNo, StakeNo
from shared.packed import Output


class UnreadableRow(Exception):
    """A row of `tx` whose bytes can't be unpacked; its argument is the Difference."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row of `tx`."""

    tx_id: int
    outputs: bytes
    inputs: bytes
    mint: bytes | None
    extra: bytes | None
    hash: bytes
    fee: int | None
    attached: bytes | None
    referred: bytes | None


class GenesisOutput(msgspec.Struct, frozen=True):
    """An output that exists before the first block, at index 0. `address_no` is None if its address has no row, and
    `in_history` says whether a transaction has touched that address.
    """

    tx_id: int
    tx_hash: bytes
    address: bytes
    lovelace: int
    address_no: AddressNo | None
    stake_no: StakeNo | None
    credential_no: AddressNo | None
    in_history: bool

    @property
    def output(self) -> Output | None:
        """The output as rows have it; None if its address has no number."""
        return None if self.address_no is None else Output(self.address_no, self.lovelace)


def refuse_unreadable(rows: Sequence[Row]) -> None:
    """Raise UnreadableRow for the first row whose bytes can't be unpacked."""
    for row in rows:
        for column, unpack in (
            ("outputs", packed.unpack_outputs),
            ("inputs", packed.unpack_inputs),
            ("mint", packed.unpack_mint),
            ("extra", packed.unpack_extra_strictly),
            ("attached", packed.unpack_attached),
            ("referred", packed.unpack_referred),
        ):
            try:
                unpack(getattr(row, column))
            except packed.UNREADABLE as error:
                what = f"{column} of tx {row.hash.hex()} (tx_id {row.tx_id})"
                raise UnreadableRow(Difference(what, None, str(error), "packed bytes")) from error


_sql = sql.beside(__file__)
between = _sql.query("rows", Row)
of_genesis = _sql.query("genesis_outputs", GenesisOutput)
