"""The manifest of a snapshot, and the names of its files."""

import re
from datetime import datetime
from pathlib import Path

import msgspec

from shared import copies
from shared.copies import CopiedFile, CopyRefused
from shared.ledger import Point
from shared.network import Network

FORMAT = 2
PARTS = "parts"
"""The folder beside the manifest."""
MOST_BYTES = 64 << 20
"""Of a manifest, which has some 400 bytes for each part."""
MOST_PART_BYTES = 1 << 40

PART_NAME = re.compile(r"[a-z_]{1,63}-[0-9a-f]{64}\.zst")
"""The names of parts: the table, and the SHA-256 of the file. So a name stands for a content."""


class Tip(msgspec.Struct, frozen=True):
    """The last block of a snapshot."""

    slot_no: int
    block_no: int
    block_hash: str
    block_time: datetime


class Range(msgspec.Struct, frozen=True):
    """The rows of a table whose `column` is at least `first` and below `end`; None: without that bound."""

    column: str
    first: int | None
    end: int | None


class Part(CopiedFile, frozen=True):
    """Rows of a table, those in a range or all of them, in Postgres' binary format, compressed by zstd.

    A part without rows has no range, and stands for all such ranges of its table. `rows_sha256` is the checksum of the
    rows before compression.
    """

    rows_sha256: str
    range: Range | None


class Manifest(copies.Manifest, frozen=True, kw_only=True):
    """A snapshot. `signature` is empty or that of `signed_text`, in hex (signing.py)."""

    format: int
    network: str
    made_at: datetime
    program_version: str
    schema_version: int
    postgres_version: str
    tip: Tip
    first_block_no: int
    tx_count: int
    files: dict[str, Part]
    signature: str = ""
    checksum: str = ""

    @property
    def point(self) -> Point:
        """The last block."""
        return Point(self.tip.slot_no, bytes.fromhex(self.tip.block_hash))

    @property
    def size_bytes(self) -> int:
        """Of all parts."""
        return sum(part.size_bytes for part in self.files.values())

    @property
    def signed_text(self) -> bytes:
        """What a signature is made of: the manifest's text without signature and checksum."""
        return msgspec.structs.replace(self, signature="", checksum="").text()

    def __str__(self) -> str:
        """The last block, in words."""
        return f"block {self.tip.block_no}, slot {self.tip.slot_no}, {self.tip.block_hash}"


def read(path: Path) -> Manifest:
    """The manifest in a file. Raises CopyRefused if it is missing, damaged, too large or of another format."""
    return parse(copies.read_text(path, "snapshot", MOST_BYTES), str(path))


def parse(text: bytes, where: str) -> Manifest:
    """The manifest of that text, which comes from `where`. Raises CopyRefused."""
    manifest = copies.parse(text, Manifest, where, form=FORMAT)
    for name, part in manifest.files.items():
        if not PART_NAME.fullmatch(name) or name != name_of(part.table.name, part.sha256):
            raise CopyRefused(f"{where} is damaged: {name[:100]!r} is not the name of a part")
        if not 0 < part.size_bytes <= MOST_PART_BYTES:
            raise CopyRefused(f"{where} is damaged: {name} has {part.size_bytes} bytes")
    return manifest


def refuse_unfit(snapshot: Manifest, network: Network) -> None:
    """Raise CopyRefused if a snapshot is of another network or schema version."""
    if snapshot.network != network.name:
        raise CopyRefused(f"the snapshot is for {snapshot.network}, expected {network.name}")
    copies.refuse_other_schema(snapshot, "snapshot")


def name_of(table: str, sha256: str) -> str:
    """The name of a part's file."""
    return f"{table}-{sha256}.zst"
