"""Compare the sums of epochs with their blocks and transactions: a part of verify."""

from bisect import bisect_right
from collections.abc import Sequence

import asyncpg
import msgspec

from indexer.verify.history.rows import Row
from indexer.verify.results import MAX_SHOWN, Difference
from shared import sql
from shared.ledger import slot_of
from shared.network import Network


class Sums(msgspec.Struct, frozen=True):
    """The sums of an epoch that follow from its transactions; fees and outputs are in lovelace."""

    tx_count: int = 0
    fees: int = 0
    output: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.tx_count + other.tx_count, self.fees + other.fees, self.output + other.output)


class Epoch(msgspec.Struct, frozen=True):
    """A row of `epoch`, null if it is missing, and the blocks of that epoch."""

    epoch_no: int
    counted_blocks: int
    blocks: int | None
    tx_count: int | None
    fees: int | None
    output: str | None


def add_up(rows: Sequence[Row], lovelace_out: Sequence[int], network: Network) -> dict[int, Sums]:
    """The sums by epoch of some transactions, which are in order; `lovelace_out` is the lovelace of their outputs."""

    def epoch_of(row: Row) -> int:
        return network.epoch_of(slot_of(row.tx_id))

    sums: dict[int, Sums] = {}
    first = 0
    while first < len(rows):
        epoch_no = epoch_of(rows[first])
        end = bisect_right(rows, epoch_no, first, key=epoch_of)
        fees = sum(row.fee or 0 for row in rows[first:end])
        sums[epoch_no] = Sums(end - first, fees, sum(lovelace_out[first:end]))
        first = end
    return sums


def add(total: dict[int, Sums], part: dict[int, Sums]) -> None:
    """Add the sums of more transactions to a total."""
    for epoch_no, sums in part.items():
        total[epoch_no] = total.get(epoch_no, _NONE) + sums


async def stored(db: asyncpg.Connection, network: Network) -> list[Epoch]:
    """Every epoch with a row or a block."""
    epochs = (network.byron_slots, network.byron_epoch_slots, network.byron_epochs, network.epoch_slots)
    return await _epochs.all(db, *epochs)


def differences(rows: Sequence[Epoch], expected: dict[int, Sums]) -> list[Difference]:
    """The figures in `epoch` that differ from blocks, or from the sums of all transactions."""
    found: list[Difference] = []
    for row in rows:
        sums = expected.get(row.epoch_no, _NONE)
        for what, indexed, recomputed in (
            ("blocks", _text(row.blocks), str(row.counted_blocks)),
            ("tx_count", _text(row.tx_count), str(sums.tx_count)),
            ("fees", _text(row.fees), str(sums.fees)),
            ("output", row.output, str(sums.output)),
        ):
            if indexed != recomputed:
                found.append(Difference(f"{what} of epoch {row.epoch_no}", None, indexed, recomputed))
    return found[:MAX_SHOWN]


def _text(figure: int | None) -> str | None:
    return None if figure is None else str(figure)


_NONE = Sums()
_sql = sql.beside(__file__)
_epochs = _sql.query("epochs", Epoch)
