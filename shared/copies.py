"""Copies of tables in a folder: files, and a manifest with checksums of each of them and of itself.

Snapshots of an index and backups of partner data are such copies.
"""

import asyncio
import gzip
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from shared import schema

MANIFEST = "manifest.json"

_CHUNK_BYTES, _ROWS_BYTES = 1 << 20, 1 << 18


class CopyRefused(Exception):
    """A copy can't be made or restored; the message is one line for the operator."""


class TableFile(msgspec.Struct, frozen=True):
    """The table whose rows a file contains, and its columns in the order of the file."""

    name: str
    columns: list[str]


class CopiedFile(msgspec.Struct, frozen=True):
    """A file of a copy."""

    size_bytes: int
    sha256: str
    table: TableFile


class Manifest(msgspec.Struct, frozen=True):
    """What all manifests have in common.

    Each kind has these fields, too, among its own: `format` is the version of its folder's layout, `program_version`
    and `schema_version` are those of the program that made the copy, and `checksum` is the SHA-256 of the manifest's
    own text while it is empty.
    """

    def text(self) -> bytes:
        """The contents of the manifest's file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"

    def sealed(self: "Sealed") -> "Sealed":
        """The same with its checksum."""
        values: dict[str, Any] = {"checksum": ""}
        bare = msgspec.structs.replace(self, **values)
        return msgspec.structs.replace(bare, checksum=hashlib.sha256(bare.text()).hexdigest())


Sealed = TypeVar("Sealed", bound=Manifest)


def make_folder(folder: Path) -> None:
    """Make the empty folder of a new copy, unless it exists. Raises CopyRefused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CopyRefused(f"{folder} is not empty")
        if not os.access(folder, os.W_OK):
            raise CopyRefused(f"{folder} can't be written to")
    except OSError as cause:
        raise CopyRefused(f"{folder} can't be used: {cause.strerror}") from cause


def write(folder: Path, manifest: Sealed) -> Sealed:
    """Write the manifest, which completes a copy, in one step; returns it with its checksum."""
    sealed = manifest.sealed()
    unfinished = folder / f"{MANIFEST}.unfinished"
    with unfinished.open("wb") as file:
        file.write(sealed.text())
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(folder / MANIFEST)
    return sealed


def read_text(path: Path, what: str, most_bytes: int = 1 << 20) -> bytes:
    """The text of a manifest. `what` names the kind of copy. Raises CopyRefused if it is missing or too long."""
    try:
        with path.open("rb") as file:
            text = file.read(most_bytes + 1)
    except FileNotFoundError:
        raise CopyRefused(f"{path} is missing: {path.parent} holds no complete {what}") from None
    except OSError as cause:
        raise CopyRefused(f"{path} can't be read: {cause.strerror}") from cause
    if len(text) > most_bytes:
        raise CopyRefused(f"{path} is damaged: it has more than {most_bytes} bytes")
    return text


def parse(text: bytes, kind: type[Sealed], where: str, *, form: int) -> Sealed:
    """The manifest of that text, which comes from `where`. `form` is the format that this program knows.

    Raises CopyRefused if the manifest is damaged or of another format.
    """
    try:
        found = msgspec.json.decode(text, type=_Format).format
        if found != form:
            raise CopyRefused(f"{where} has format {found}, this program reads format {form}")
        manifest = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as cause:
        raise CopyRefused(f"{where} is damaged: {cause}") from cause
    # NOTE: compared as text, so that a changed byte is found anywhere, even between the values.
    if manifest.sealed().text() != text:
        raise CopyRefused(f"{where} is damaged: its checksum does not match")
    return manifest


async def check(folder: Path, files: Mapping[str, CopiedFile], tell: Callable[[int], None] = lambda _: None) -> None:
    """Compare every file of the folder with the manifest; `tell` is called with numbers of compared bytes.

    Raises CopyRefused with the name of the first file that differs.
    """
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(present - files.keys() - {MANIFEST}):
        raise CopyRefused(f"{folder / name} is not in the manifest")
    for name, file in sorted(files.items()):
        path = folder / name
        if name not in present:
            raise CopyRefused(f"{path} is missing")
        if (size_bytes := path.stat().st_size) != file.size_bytes:
            raise CopyRefused(f"{path} is damaged: it has {size_bytes} bytes, the manifest says {file.size_bytes}")
        if await sha256(path, tell) != file.sha256:
            raise CopyRefused(f"{path} is damaged: its checksum does not match")


def refuse_other_schema(manifest: Any, what: str) -> None:
    """Raise CopyRefused if a copy was made with another schema version than this program's."""
    if manifest.schema_version != schema.VERSION:
        raise CopyRefused(
            f"the {what} has schema version {manifest.schema_version}, expected {schema.VERSION}: "
            f"restore it with version {manifest.program_version} of this program"
        )


async def rows(path: Path, add: Callable[[int], None] = lambda _: None) -> AsyncIterator[bytes]:
    """The contents of a file, unpacked; `add` is called with numbers of packed bytes."""
    with path.open("rb") as packed, gzip.open(packed) as unpacked:
        read = 0
        while chunk := await asyncio.to_thread(unpacked.read, _ROWS_BYTES):
            yield chunk
            add(packed.tell() - read)
            read = packed.tell()


async def sha256(path: Path, tell: Callable[[int], None] = lambda _: None) -> str:
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
