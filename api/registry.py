"""The off-chain token registry (CIP-26): what it says of an asset, as long as it answers in time.

A registry that is slow, away, or talks nonsense costs the caller nothing but null: a look-up takes at most LOOK_UP_S,
after some failures in a row nobody waits for it for a while, and what it said before is still told until it is too old.
"""

import asyncio
import base64
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import structlog
from prometheus_client import Counter

from shared.metadata import IMAGE_SCHEMES, Metadata, is_decimals

log = structlog.get_logger()

LOOK_UP_S = 1.5
FRESH_S = 3_600
"""How old an answer may be before the registry is asked again."""

ABSENT_FRESH_S = 300
"""The same for the answer that it knows nothing of an asset."""

USABLE_S = 86_400
"""How old an answer may be while the registry does not give a newer one."""

FAILURES_IN_A_ROW = 3
PAUSE_S = 30
MOST_LOOK_UPS = 16
MOST_ANSWER_BYTES = 256 * 1024
MOST_CACHED_BYTES = 32 * 1024 * 1024

_ENTRY_BYTES = 500  # what an entry takes beside its texts
_LONGEST_TEXT = 5_000
_NOTHING = Metadata(decimals=0)

_look_ups = Counter("ledgerline_registry_look_ups", "Questions to the token registry", ["outcome"])


class Unusable(Exception):
    """The registry did not answer with an entry of the subject that was asked for."""


class Unwell(Exception):
    """The registry says that it can't answer anything now."""


class _Entry(msgspec.Struct):
    metadata: Metadata | None
    read_at: float
    size_bytes: int


class Registry:
    """What the registry at `url` says of assets, remembered. Without a url it says nothing."""

    def __init__(self, url: str | None, session: aiohttp.ClientSession) -> None:
        self._url, self._session = url, session
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._cached_bytes = 0
        self._looking_up: dict[str, asyncio.Task[Metadata | None]] = {}
        self._failures = 0
        self._asked_again_at = 0.0

    async def metadata(self, asset: bytes) -> Metadata | None:
        """What the registry says of an asset, a policy id and a name; None where it says nothing or can't be asked."""
        if self._url is None:
            return None
        subject = asset.hex()
        entry = self._entries.get(subject)
        if entry is not None:
            self._entries.move_to_end(subject)
            age_s = time.monotonic() - entry.read_at
            if age_s < (ABSENT_FRESH_S if entry.metadata is None else FRESH_S):
                _look_ups.labels("cached").inc()
                return entry.metadata
        task = self._looking_up.get(subject)
        if task is None:
            if time.monotonic() < self._asked_again_at or len(self._looking_up) >= MOST_LOOK_UPS:
                _look_ups.labels("skipped").inc()
                return _usable(entry)
            task = self._looking_up[subject] = asyncio.create_task(self._look_up(subject))
            task.add_done_callback(lambda _: self._looking_up.pop(subject))
        # A caller who leaves takes nothing away from the others who wait for the same answer.
        return await asyncio.shield(task)

    async def _look_up(self, subject: str) -> Metadata | None:
        assert self._url is not None, "without a url nobody looks up"
        try:
            async with asyncio.timeout(LOOK_UP_S):
                answer = await self._ask(self._url.replace("{subject}", subject))
            found = None if answer is None else read(answer, subject)
        except (Unwell, TimeoutError, OSError, aiohttp.ClientError) as cause:
            self._fail(cause)
            return _usable(self._entries.get(subject))
        except (Unusable, ValueError):
            # Nonsense about one subject says nothing of others; asking for it again and again helps nobody.
            self._failures = 0
            _look_ups.labels("unusable").inc()
            known = _usable(self._entries.get(subject))
            if known is None:
                self._keep(subject, None, _ENTRY_BYTES)
            return known
        self._failures = 0
        _look_ups.labels("absent" if found is None else "found").inc()
        self._keep(subject, found, _ENTRY_BYTES + (0 if answer is None else len(answer)))
        return found

    async def _ask(self, url: str) -> bytes | None:
        """The body of the registry's answer, None for 404. Raises Unwell or Unusable for other failures."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        # NOTE: a redirect would lead our request to wherever the registry wants.
        async with self._session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status == 404:
                return None
            if response.status >= 500 or response.status == 429:
                raise Unwell(f"status {response.status}")
            if response.status != 200:
                raise Unusable(f"status {response.status}")
            body = b""
            async for chunk in response.content.iter_chunked(16_384):
                body += chunk
                if len(body) > MOST_ANSWER_BYTES:
                    raise Unusable(f"more than {MOST_ANSWER_BYTES} bytes")
            return body

    def _fail(self, cause: Exception) -> None:
        _look_ups.labels("failed").inc()
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            self._asked_again_at = time.monotonic() + PAUSE_S
            log.warning("registry.paused", seconds=PAUSE_S, cause=f"{type(cause).__name__}: {cause}")

    def _keep(self, subject: str, found: Metadata | None, size_bytes: int) -> None:
        before = self._entries.pop(subject, None)
        self._cached_bytes += size_bytes - (0 if before is None else before.size_bytes)
        self._entries[subject] = _Entry(found, time.monotonic(), size_bytes)
        while self._cached_bytes > MOST_CACHED_BYTES:
            _, oldest = self._entries.popitem(last=False)
            self._cached_bytes -= oldest.size_bytes


def read(answer: bytes, subject: str) -> Metadata | None:
    """An entry of CIP-26, None where it has none of our fields. What is of the wrong type is left out.

    Raises Unusable where it is no entry, or one of another subject.
    """
    try:
        said = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unusable(f"no JSON: {error}") from error
    if not isinstance(said, dict) or not isinstance(said.get("subject"), str) or said["subject"].lower() != subject:
        raise Unusable("an entry of another subject")
    found = Metadata(
        name=_text(said, "name"),
        ticker=_text(said, "ticker"),
        description=_text(said, "description"),
        decimals=_decimals(said),
        image=_image(said),
        url=_url(said),
        logo=_logo(said),
    )
    return None if found == _NOTHING else found


@asynccontextmanager
async def opened(url: str | None) -> AsyncIterator[Registry]:
    """The registry at `url`, with connections of its own."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session:
        yield Registry(url, session)


def _usable(entry: _Entry | None) -> Metadata | None:
    """An entry that there is no newer one for."""
    return entry.metadata if entry is not None and time.monotonic() - entry.read_at < USABLE_S else None


def _value(said: dict[str, Any], field: str) -> object:
    """The value of a property, which is attested: `{"value": …, "signatures": […]}`."""
    attested = said.get(field)
    return attested.get("value") if isinstance(attested, dict) else None


def _text(said: dict[str, Any], field: str) -> str | None:
    value = _value(said, field)
    return value if isinstance(value, str) and len(value) <= _LONGEST_TEXT else None


def _decimals(said: dict[str, Any]) -> int:
    value = _value(said, "decimals")
    return value if is_decimals(value) else 0


def _url(said: dict[str, Any]) -> str | None:
    text = _text(said, "url")
    return text if text is not None and text.startswith(("https://", "http://")) else None


def _image(said: dict[str, Any]) -> str | None:
    """The entry's own, if it has one (CIP-26 leaves properties open); else its logo, which is a PNG."""
    own, logo = _text(said, "image"), _logo(said)
    if own is not None and own.startswith(IMAGE_SCHEMES):
        return own
    return None if logo is None else f"data:image/png;base64,{logo}"


def _logo(said: dict[str, Any]) -> str | None:
    value = _value(said, "logo")
    try:
        return value if isinstance(value, str) and base64.b64decode(value, validate=True) else None
    except ValueError:
        return None
