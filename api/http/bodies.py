"""Bodies of long answers: built, compressed and sent in pieces, and limited in length (docs/decisions/0060).

A handler puts `in_parts(…)` where an answer has a list whose entries may be long, and passes the answer to
`ask.written`, which makes one entry after the other. Memory then has one entry at a time. What exceeds
MAX_IN_MEMORY_BYTES after compression goes to a file, so that a slow reader holds no memory either.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast

import msgspec

from api import errors
from api.answers import LastUpdated
from api.http import compression
from api.http.sending import BYTES_AT_ONCE, SentFile
from api.http.turns import Turns

Entry = TypeVar("Entry")
Limiting = Literal["limit", "count", "ids"]

MAX_BYTES = 16 * 1024**2
"""The most bytes, before compression, of a list with more than one entry."""

MAX_IN_MEMORY_BYTES = 256 * 1024
MAX_AT_ONCE_BYTES = 64 * 1024
"""Packed rows of at most this many bytes are shown at once, as the answer is short. Names in JSON take some 60 times as
many bytes as numbers in rows.
"""

BUILDING, BUILDING_EACH = 2, 1
"""The most long answers that are built at a time, per process and credential."""

FILES, FILES_EACH = 16, 4
"""The most answers in files, per process and credential."""

_PART = b"\0"  # in JSON, text has no such byte
_LISTS = ("inputs", "assets", "received_sum")
"""The lists in the data of an answer that may be in parts."""


class Exceeded(Exception):
    """A list has more than MAX_BYTES."""


class NoTurnYet(Exception):
    """No turn of `turns` is free: give back the connection, wait for one (`Held.take`), then answer again."""

    def __init__(self, turns: Turns[Any]) -> None:
        super().__init__()
        self.turns = turns


class Room(msgspec.Struct, frozen=True):
    """The turns of long answers. Their files are in a folder."""

    building: Turns[None]
    files: Turns[Path]

    @classmethod
    def in_folder(cls, folder: Path) -> "Room":
        """All turns, free."""
        return cls(
            Turns(None, BUILDING, BUILDING_EACH, "long answers"), Turns(folder, FILES, FILES_EACH, "long answers")
        )


class Held:
    """The turns that the long answer of one request holds."""

    def __init__(self, key: Hashable) -> None:
        self._key = key
        self._turns: dict[Turns[Any], AsyncExitStack] = {}

    def __contains__(self, turns: Turns[Any]) -> bool:
        return turns in self._turns

    async def take(self, turns: Turns[Any]) -> None:
        """Wait for a turn. Raises Refusal."""
        stack = AsyncExitStack()
        await stack.enter_async_context(turns.turn(self._key))
        self._turns[turns] = stack

    async def take_free(self, turns: Turns[Any]) -> None:
        """Take a turn, unless it is held already. Raises NoTurnYet."""
        if turns not in self._turns:
            if not turns.is_free(self._key):
                raise NoTurnYet(turns)
            await self.take(turns)

    def hand_over(self, turns: Turns[Any]) -> AsyncExitStack:
        """The end of a turn, for someone else to call."""
        return self._turns.pop(turns)

    async def end(self, *turns: Turns[Any]) -> None:
        """End those of these turns that are held."""
        for turn in turns:
            if turn in self._turns:
                await self._turns.pop(turn).aclose()

    async def close(self) -> None:
        """End all."""
        await self.end(*list(self._turns))


class Parts:
    """A list in an answer whose entries are made while the answer is written.

    `limited_by` names the parameter that shortens the list, "" if none does.
    """

    def __init__(self, entries: AsyncIterator[Any], limited_by: Limiting | Literal[""]) -> None:
        self.entries, self.limited_by = entries, limited_by


def in_parts(entries: AsyncIterator[Entry], limited_by: Limiting | Literal[""] = "") -> list[Entry]:
    """The list of these entries, for answers that are passed to `ask.written`. It is a Parts."""
    return cast(list[Entry], Parts(entries, limited_by))


def has_parts(answer: Any) -> bool:
    """Whether an answer, its data, or a list in its data is a Parts."""
    data = getattr(answer, "data", answer)
    return isinstance(data, Parts) or any(isinstance(getattr(data, name, None), Parts) for name in _LISTS)


class WrittenBody(msgspec.Struct, frozen=True):
    """The body of an answer, and how it is compressed; `digest` is that of its bytes before compression."""

    content: bytes | SentFile
    encoding: str | None
    digest: bytes

    async def close(self) -> None:
        """Free its file, if it has one."""
        if isinstance(self.content, SentFile):
            await self.content.close()


class Encoded(msgspec.Struct, frozen=True):
    """An answer to a GET as it is sent to everyone who asks for its URL and accepts its encoding.

    `validators` are the headers that a 304 has as well, and `tip` is the last block in its snapshot, None if unknown.
    """

    status: int
    validators: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    tip: LastUpdated | None


class Writer:
    """Writes one answer. `held` are the turns that its request has waited for."""

    def __init__(self, room: Room, encoding: str | None, held: Held) -> None:
        self._room, self._held = room, held
        self._encoding, self._compress = encoding, compression.in_pieces(encoding)
        self._digest = sha256()
        self._max_bytes: int | None = None
        self._size = 0
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._written: list[bytes] = []
        self._written_bytes = 0
        self._file: IO[bytes] | None = None
        self._is_building = False

    async def write(self, answer: Any) -> WrittenBody:
        """The body of an answer. Raises Refusal, and NoTurnYet, after which a turn for a file is kept."""
        try:
            await self._write(answer)
            await self._flush(ends=True)
            content: bytes | SentFile = b"".join(self._written)
            if self._file is not None:
                self._file.seek(0)
                stack = self._held.hand_over(self._room.files)
                stack.enter_context(self._file)
                content = SentFile(self._file, stack, is_negotiated=True)
            await self._held.close()  # of a file, if it was waited for and the answer has become shorter since
            return WrittenBody(content, self._encoding, self._digest.digest())
        except NoTurnYet:
            await self._held.end(self._room.building)
            raise
        except BaseException:
            if self._file is not None:
                self._file.close()
            await self._held.close()
            raise

    async def _write(self, value: Any) -> None:
        parts: list[Parts] = []
        first, *others = _encoder(parts).encode(value).split(_PART)
        await self._add(first)
        for part, text in zip(parts, others, strict=True):
            await self._write_list(part)
            await self._add(text)

    async def _write_list(self, part: Parts) -> None:
        count = 0
        try:
            async for entry in part.entries:
                await self._add(b"," if count else b"[")
                await self._write(entry)
                count += 1
                if part.limited_by:
                    self._max_bytes = MAX_BYTES  # for further ones, since one entry alone is always answered
        except Exceeded as cause:
            if not part.limited_by:  # a list in an entry of the one that has a limit
                raise
            raise errors.answer_too_large(part.limited_by, count) from cause
        if part.limited_by:
            self._max_bytes = None
        await self._add(b"]" if count else b"[]")

    async def _add(self, text: bytes) -> None:
        self._size += len(text)
        if self._max_bytes is not None and self._size > self._max_bytes:
            raise Exceeded
        self._pending.append(text)
        self._pending_bytes += len(text)
        if self._pending_bytes >= BYTES_AT_ONCE:
            await self._flush()

    async def _flush(self, *, ends: bool = False) -> None:
        """Compress and store what is pending, in a thread unless it is short."""
        text = b"".join(self._pending)
        self._pending, self._pending_bytes = [], 0
        if ends and not self._is_building:
            self._store(text, ends)
            return
        if not self._is_building:
            await self._held.take_free(self._room.building)
            self._is_building = True
        if self._file is None and self._written_bytes >= MAX_IN_MEMORY_BYTES:
            await self._to_file()
        await asyncio.get_running_loop().run_in_executor(None, self._store, text, ends)

    def _store(self, text: bytes, ends: bool) -> None:
        self._digest.update(text)
        packed = self._compress(text, ends)
        if self._file is None:
            self._written.append(packed)
            self._written_bytes += len(packed)
        else:
            self._file.write(packed)

    async def _to_file(self) -> None:
        await self._held.take_free(self._room.files)
        self._file = tempfile.TemporaryFile(dir=self._room.files.shared)  # noqa: SIM115 - closed with the turn
        self._file.writelines(self._written)
        self._written = []


def _encoder(parts: list[Parts]) -> msgspec.json.Encoder:
    """An encoder that leaves a placeholder for each Parts, and adds it to `parts`."""

    def hold_place(part: Any) -> msgspec.Raw:
        assert isinstance(part, Parts), f"a {type(part).__name__} in an answer"
        parts.append(part)
        return msgspec.Raw(_PART)

    return msgspec.json.Encoder(enc_hook=hold_place)
