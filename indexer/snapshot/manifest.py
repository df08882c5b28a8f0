"""The manifest of a snapshot."""

from datetime import datetime

import msgspec

from shared import copies
from shared.copies import CopiedFile
from shared.ledger import Point

DUMP = "dump"
"""The folder beside the manifest, in pg_dump's directory format."""


class Tip(msgspec.Struct, frozen=True):
    """The last block of a snapshot."""

    slot_no: int
    block_no: int
    block_hash: str
    block_time: datetime


class Manifest(copies.Manifest, frozen=True, kw_only=True):
    """A snapshot."""

    format: int
    network: str
    made_at: datetime
    program_version: str
    schema_version: int
    postgres_version: str
    tip: Tip
    first_block_no: int
    tx_count: int
    files: dict[str, CopiedFile]
    checksum: str = ""

    @property
    def point(self) -> Point:
        """The last block."""
        return Point(self.tip.slot_no, bytes.fromhex(self.tip.block_hash))

    def __str__(self) -> str:
        """The last block, in words."""
        return f"block {self.tip.block_no}, slot {self.tip.slot_no}, {self.tip.block_hash}"
