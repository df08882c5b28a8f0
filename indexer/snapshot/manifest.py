"""The manifest of a snapshot: its contents, and checksums of each of its files and of the manifest."""

import asyncio
import hashlib
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from shared.ledger import Point

FORMAT = 1
"""The version of the layout of a snapshot's folder; another version of the program may not know it."""

NAME, DUMP = "manifest.json", "dump"
"""The contents of a snapshot's folder: this file, and a folder in pg_dump's directory format."""

_CHUNK_BYTES = 1 << 20


class SnapshotRefused(Exception):
    """A snapshot can't be taken or restored; the message is one line for the operator."""


class Tip(msgspec.Struct, frozen=True):
    """The last block of a snapshot."""

    slot_no: int
    block_no: int
    block_hash: str
    block_time: datetime


class TableFile(msgspec.Struct, frozen=True):
    """The table whose rows a file contains, and its columns in the order of the file."""

    name: str
    columns: list[str]


class DumpFile(msgspec.Struct, frozen=True):
    """A file of the dump. `table` is None for pg_dump's own table of contents."""

    size_bytes: int
    sha256: str
    table: TableFile | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot. `checksum` is the SHA-256 of the manifest's own text with an empty `checksum`."""

    format: int
    network: str
    made_at: datetime
    program_version: str
    schema_version: int
    postgres_version: str
    tip: Tip
    first_block_no: int
    tx_count: int
    files: dict[str, DumpFile]
    checksum: str = ""

    @property
    def point(self) -> Point:
        """The last block."""
        return Point(self.tip.slot_no, bytes.fromhex(self.tip.block_hash))

    def __str__(self) -> str:
        """The last block, in words."""
        return f"block {self.tip.block_no}, slot {self.tip.slot_no}, {self.tip.block_hash}"

    def text(self) -> bytes:
        """The contents of the manifest's file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def sealed(self) -> "Manifest":
        """The same with its checksum."""
        bare = msgspec.structs.replace(self, checksum="")
        return msgspec.structs.replace(bare, checksum=hashlib.sha256(bare.text()).hexdigest())


def write(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest, which completes a snapshot, in one step; returns it with its checksum."""
    sealed = manifest.sealed()
    unfinished = folder / f"{NAME}.unfinished"
    with unfinished.open("wb") as file:
        file.write(sealed.text())
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(folder / NAME)
    return sealed


def read(folder: Path) -> Manifest:
    """The manifest of a snapshot. Raises SnapshotRefused if it is missing, damaged or of another format."""
    path = folder / NAME
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise SnapshotRefused(f"{path} is missing: {folder} holds no complete snapshot") from None
    except OSError as cause:
        raise SnapshotRefused(f"{path} can't be read: {cause.strerror}") from cause
    try:
        found = msgspec.json.decode(text, type=_Format).format
        if found != FORMAT:
            raise SnapshotRefused(f"{path} has format {found}, this program reads format {FORMAT}")
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.MsgspecError as cause:
        raise SnapshotRefused(f"{path} is damaged: {cause}") from cause
    # NOTE: compared as text, so that a changed byte is found anywhere, even between the values.
    if manifest.sealed().text() != text:
        raise SnapshotRefused(f"{path} is damaged: its checksum does not match")
    return manifest


async def check(folder: Path, manifest: Manifest, tell: Callable[[int], None]) -> None:
    """Compare every file with the manifest; `tell` is called with numbers of compared bytes.

    Raises SnapshotRefused with the name of the first file that differs.
    """
    dump = folder / DUMP
    present = {path.name for path in dump.iterdir()} if dump.is_dir() else set()
    for name in sorted(present - manifest.files.keys()):
        raise SnapshotRefused(f"{dump / name} is not in the manifest")
    for name, file in sorted(manifest.files.items()):
        path = dump / name
        if name not in present:
            raise SnapshotRefused(f"{path} is missing")
        if (size_bytes := path.stat().st_size) != file.size_bytes:
            raise SnapshotRefused(f"{path} is damaged: it has {size_bytes} bytes, the manifest says {file.size_bytes}")
        if await sha256(path, tell) != file.sha256:
            raise SnapshotRefused(f"{path} is damaged: its checksum does not match")


async def sha256(path: Path, tell: Callable[[int], None]) -> str:
    """The checksum of a file; `tell` is called with numbers of bytes read."""
    digest = hashlib.sha256()

    def add() -> int:
        chunk = file.read(_CHUNK_BYTES)
        digest.update(chunk)
        return len(chunk)

    with path.open("rb") as file:
        while size_bytes := await asyncio.to_thread(add):
            tell(size_bytes)
    return digest.hexdigest()


class _Format(msgspec.Struct, frozen=True):
    format: int
