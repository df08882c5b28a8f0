"""Download a published snapshot: only the parts that a folder does not have yet, and the rest of those begun.

A part counts as there under its name only after its checksum was compared with the signed manifest. The manifest comes
last, so the folder then holds a complete snapshot, which can be restored, or published again.
"""

import asyncio
import os
import re
import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import aiohttp
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from indexer.snapshot import manifest, packing, signing, together
from indexer.snapshot.manifest import Manifest, Part
from indexer.snapshot.take import Tell
from shared import copies
from shared.copies import CopyRefused
from shared.network import Network
from shared.setting_forms import masked

_ATTEMPTS = 6
"""Without progress, which is a part, or _PROGRESS_BYTES of one."""
_PROGRESS_BYTES = 1 << 20
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.2, 20.0
_CONNECT_WITHIN_S, _SILENT_FOR_S = 15.0, 30.0
_ATTEMPT_WITHIN_S, _LEAST_BYTES_PER_S = 60.0, 1 << 15
_CHUNK_BYTES = 1 << 18
_AGAIN_LATER = {408, 425, 429}
_UNFINISHED = ".unfinished"


async def download(url: str, folder: Path, key: Ed25519PublicKey, network: Network, jobs: int, tell: Tell) -> Manifest:
    """Bring the snapshot that is published at a URL into a folder, which may hold an earlier one.

    Parts that only earlier snapshots had are deleted at the end. Raises CopyRefused if the manifest is not signed by
    the key or does not fit, if the folder can't be used, and if the server fails repeatedly.
    """
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_WITHIN_S, sock_read=_SILENT_FOR_S)
    headers = {"Accept-Encoding": "identity"}
    async with aiohttp.ClientSession(
        timeout=timeout, headers=headers, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        published = _Published(session, url.rstrip("/"))
        snapshot = await published.manifest()
        signing.check(snapshot, key, published.shown)
        manifest.refuse_unfit(snapshot, network)
        with packing.writing(folder):
            await _fill(published, snapshot, folder, jobs, tell)
    return snapshot


def is_url(text: str) -> bool:
    """Whether a text is a URL, not the name of a folder."""
    return "://" in text


def check_url(url: str) -> None:
    """Raise CopyRefused if a snapshot can't be at such a URL."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or re.search(r"\s", url):
        raise CopyRefused(f"--from is {masked(url)}, expected a folder or http[s]://host[:port]/folder")


class _Unfinished(Exception):
    """An attempt has failed, and another one may succeed."""


class _Differs(Exception):
    """What was downloaded is not what the manifest says."""


class _Published:
    """A folder on a web server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url
        self.shown = masked(f"{url}/{copies.MANIFEST}").strip("'")

    async def manifest(self) -> Manifest:
        """The manifest. Raises CopyRefused if it can't be had."""
        failures = 0
        while True:
            try:
                return manifest.parse(await self._manifest_text(), self.shown)
            except _FAILURES as cause:
                failures = await self._pause(failures, self.shown, cause)

    async def _manifest_text(self) -> bytes:
        async with (
            asyncio.timeout(_ATTEMPT_WITHIN_S),
            self._session.get(f"{self._url}/{copies.MANIFEST}") as answer,
        ):
            if answer.status != 200:
                _refuse(answer, self.shown)
            text = bytearray()
            async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
                text += chunk
                if len(text) > manifest.MOST_BYTES:
                    raise CopyRefused(f"{self.shown} has more than {manifest.MOST_BYTES} bytes")
            return bytes(text)

    async def part(self, name: str, part: Part, to: Path, add: Callable[[int], None]) -> None:
        """Download a part, or the rest of it, to a file; `add` is called with numbers of bytes."""
        shown = masked(f"{self._url}/{manifest.PARTS}/{name}").strip("'")
        unfinished = to.with_name(f"{name}{_UNFINISHED}")
        failures, differed = 0, False
        while True:
            had = _size(unfinished)
            try:
                await self._rest(name, part, unfinished, shown, add)
                await asyncio.to_thread(_complete, unfinished, to)
                return
            except _FAILURES as cause:
                if _size(unfinished) - had >= _PROGRESS_BYTES:
                    failures = 0
                failures = await self._pause(failures, shown, cause)
            except _Differs as cause:
                # What was there from an earlier attempt may be of something else: once more from the beginning.
                unfinished.unlink(missing_ok=True)
                if differed:
                    raise CopyRefused(f"{shown} is not what the manifest says: {cause}") from cause
                differed = True

    async def _rest(self, name: str, part: Part, path: Path, shown: str, add: Callable[[int], None]) -> None:
        """Append what is missing. Raises _Unfinished or an error of aiohttp, and _Differs."""
        have = _size(path)
        within_s = _ATTEMPT_WITHIN_S + (part.size_bytes - have) / _LEAST_BYTES_PER_S
        if have < part.size_bytes:
            headers = {"Range": f"bytes={have}-"} if have else {}
            url = f"{self._url}/{manifest.PARTS}/{name}"
            async with asyncio.timeout(within_s), self._session.get(url, headers=headers) as answer:
                if answer.status == 200:
                    have = 0
                elif answer.status == 416 or (answer.status == 206 and not _begins_at(have, answer)):
                    raise _Differs(f"the server answers {answer.status} to a request for the rest")
                elif answer.status != 206:
                    _refuse(answer, shown)
                with path.open("ab" if have else "wb") as file:
                    async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
                        have += len(chunk)
                        if have > part.size_bytes:
                            raise _Differs(f"it has more than {part.size_bytes} bytes")
                        await asyncio.to_thread(file.write, chunk)
                        add(len(chunk))
        if have < part.size_bytes:
            raise _Unfinished(f"it ended after {have} of {part.size_bytes} bytes")
        if await copies.sha256(path) != part.sha256:
            raise _Differs("its checksum does not match")

    async def _pause(self, failures: int, shown: str, cause: Exception) -> int:
        """Wait after a failure; returns how many there were. Raises CopyRefused after the last one."""
        if failures + 1 == _ATTEMPTS:
            what = "no answer in time" if isinstance(cause, TimeoutError) else cause
            raise CopyRefused(f"{shown} can't be read: {what}; repeat the command to continue") from cause
        await asyncio.sleep(min(_FIRST_PAUSE_S * 4**failures, _MAX_PAUSE_S))
        return failures + 1


_FAILURES = (aiohttp.ClientError, TimeoutError, _Unfinished)


def _refuse(answer: aiohttp.ClientResponse, shown: str) -> NoReturn:
    """Raise _Unfinished for an answer that another attempt may not get, otherwise CopyRefused."""
    if answer.status >= 500 or answer.status in _AGAIN_LATER:
        raise _Unfinished(f"the server answers {answer.status}")
    raise CopyRefused(f"{shown} can't be read: the server answers {answer.status}")


def _begins_at(place: int, answer: aiohttp.ClientResponse) -> bool:
    """Whether a part of a file begins there (RFC 9110, 14.4)."""
    return answer.headers.get("Content-Range", "").startswith(f"bytes {place}-")


async def _fill(published: _Published, snapshot: Manifest, folder: Path, jobs: int, tell: Tell) -> None:
    """Download what is missing, and write the manifest."""
    parts = folder / manifest.PARTS
    parts.mkdir(parents=True, exist_ok=True)
    missing = {name: part for name, part in snapshot.files.items() if _size(parts / name) != part.size_bytes}
    begun = sum(_size(parts / f"{name}{_UNFINISHED}") for name in missing)
    left_bytes = sum(part.size_bytes for part in missing.values()) - begun
    if (free := shutil.disk_usage(parts).free) < left_bytes:
        raise CopyRefused(f"{folder} has {free:,} free bytes, the download needs {left_bytes:,}")
    waiting, done_bytes = deque(missing.items()), 0

    def add(size_bytes: int) -> None:
        nonlocal done_bytes
        done_bytes += size_bytes
        tell("download", min(done_bytes, left_bytes), left_bytes)

    async def download_some() -> None:
        while waiting:
            name, part = waiting.popleft()
            await published.part(name, part, parts / name, add)

    await together.run(download_some, jobs)
    copies.write(folder, snapshot)
    for path in parts.iterdir():
        if path.name not in snapshot.files and manifest.PART_NAME.fullmatch(path.name.removesuffix(_UNFINISHED)):
            path.unlink()


def _complete(unfinished: Path, to: Path) -> None:
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.rename(to)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
