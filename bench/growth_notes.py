"""The measurements of `bench.growth` so far, in a file that survives a kill."""

from pathlib import Path

import msgspec

from bench.checkpoint import Checkpoint


class Piece(msgspec.Struct, frozen=True):
    """A piece in bulk: its transactions (after a kill, the remaining ones), seconds, memory in MB.

    `postgres_mb` is the memory of the indexer's largest backend, without shared memory; None if it can't be read.
    """

    last: int  # transactions, from the beginning
    transactions: int
    seconds: float
    database_bytes: int
    indexer_mb: float
    reader_mb: float
    postgres_mb: float | None


class RunNotes(msgspec.Struct):
    """All notes of a run."""

    transactions: int
    seed: int
    live_blocks: int  # indexed at the tip by each checkpoint
    machine: str
    pieces: list[Piece] = []
    checkpoints: list[Checkpoint] = []
    done: bool = False

    @classmethod
    def read(cls, folder: Path) -> "RunNotes | None":
        """The notes in a folder, or None."""
        path = folder / _FILE
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else None

    def write(self, folder: Path) -> None:
        """Replace the notes in a folder."""
        unfinished = folder / f"{_FILE}.unfinished"
        unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        unfinished.replace(folder / _FILE)

    def checkpoint(self, transactions: int) -> Checkpoint:
        """The notes of one checkpoint, created if necessary."""
        checkpoint = next((known for known in self.checkpoints if known.transactions == transactions), None)
        if checkpoint is None:
            checkpoint = Checkpoint(transactions)
            self.checkpoints.append(checkpoint)
        return checkpoint


_FILE = "notes.json"
