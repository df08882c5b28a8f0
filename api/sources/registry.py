"""Asset metadata from the off-chain token registry (CIP-26).

A registry that is slow, unreachable or broken never fails a request: the metadata is then an older entry or null, and
the result says that the registry failed. A look-up takes at most LOOK_UP_S. After several failures in a row, look-ups
pause for PAUSE_S. Cached entries are served for up to USABLE_S.
"""

import asyncio
import base64
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import structlog
from prometheus_client import Counter

from api.http import request_id
from shared.metadata import IMAGE_SCHEMES, Metadata, is_decimals

log = structlog.get_logger()

LOOK_UP_S = 1.5
FRESH_S = 3_600
"""Age in seconds after which a cached entry is looked up again."""

ABSENT_FRESH_S = 300
"""The same for an asset that has no entry, or an invalid one."""

USABLE_S = 86_400
"""Age in seconds up to which a cached entry is served while look-ups fail."""

FAILURES_IN_A_ROW = 3
PAUSE_S = 30
NO_ENTRY_STATUSES = (404, 204)
"""What registries answer for a subject without an entry; that of the Cardano Foundation answers 204."""

MAX_LOOK_UPS = 16
MAX_ANSWER_BYTES = 256 * 1024
MAX_CACHED_BYTES = 32 * 1024 * 1024

_ENTRY_BYTES = 500  # memory of an entry, apart from its texts
_MAX_TEXT_LENGTH = 5_000
_NOTHING = Metadata(decimals=0)

_look_ups = Counter("ledgerline_registry_look_ups", "Look-ups in the token registry", ["outcome"])


class InvalidEntry(Exception):
    """The registry's answer is not an entry of the requested subject."""


class Unavailable(Exception):
    """The registry reports that it can't answer requests now."""


class Result(msgspec.Struct, frozen=True):
    """The metadata of an asset, None if it has no entry.

    `failed`: the registry did not answer in time, or its answer was not a valid entry, so the metadata is an older
    entry or None.
    """

    metadata: Metadata | None = None
    failed: bool = False


class _Entry(msgspec.Struct):
    metadata: Metadata | None
    failed: bool
    read_at: float
    asked_at: float  # later than `read_at` if the registry had only an invalid entry since
    size_bytes: int


class Registry:
    """A cache of the registry at `url`. Without a url, no asset has an entry. `clock` tells seconds."""

    def __init__(
        self, url: str | None, session: aiohttp.ClientSession, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url, self._session, self._clock = url, session, clock
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._cached_bytes = 0
        self._looking_up: dict[str, asyncio.Task[Result]] = {}
        self._failures = 0
        self._ask_again_at = 0.0

    @property
    def is_asked(self) -> bool:
        """Whether there is a registry."""
        return self._url is not None

    async def look_up(self, asset: bytes) -> Result:
        """The metadata of an asset (policy id and name); none without a registry."""
        if self._url is None:
            return _NO_ENTRY
        subject = asset.hex()
        entry = self._entries.get(subject)
        if entry is not None:
            self._entries.move_to_end(subject)
            age_s = self._clock() - entry.asked_at
            if age_s < (ABSENT_FRESH_S if entry.metadata is None or entry.failed else FRESH_S):
                _look_ups.labels("cached").inc()
                return Result(entry.metadata, entry.failed)
        task = self._looking_up.get(subject)
        if task is None:
            if self._clock() < self._ask_again_at or len(self._looking_up) >= MAX_LOOK_UPS:
                _look_ups.labels("skipped").inc()
                return Result(self._usable(entry), failed=True)
            task = self._looking_up[subject] = asyncio.create_task(self._ask(subject))
            task.add_done_callback(lambda _: self._looking_up.pop(subject))
        # A request that is cancelled must not cancel the look-up: others may wait for it.
        return await asyncio.shield(task)

    async def _ask(self, subject: str) -> Result:
        assert self._url is not None, "a look-up without a url"
        try:
            async with asyncio.timeout(LOOK_UP_S):
                answer = await self._fetch(self._url.replace("{subject}", subject))
            metadata = None if answer is None else read(answer, subject)
        except (Unavailable, TimeoutError, OSError, aiohttp.ClientError) as cause:
            self._fail(cause)
            return Result(self._usable(self._entries.get(subject)), failed=True)
        except (InvalidEntry, ValueError):
            # An invalid entry says nothing about other subjects. It is cached as a failure, or with an older entry that
            # is still usable, so that the asset is not looked up again immediately.
            self._failures = 0
            _look_ups.labels("unusable").inc()
            older = self._entries.get(subject)
            if older is None or self._usable(older) is None:
                self._keep(subject, _FAILURE, _ENTRY_BYTES)
                return _FAILURE
            older.failed, older.asked_at = True, self._clock()
            return Result(older.metadata, failed=True)
        self._failures = 0
        _look_ups.labels("absent" if metadata is None else "found").inc()
        self._keep(subject, Result(metadata), _ENTRY_BYTES + (0 if answer is None else len(answer)))
        return Result(metadata)

    async def _fetch(self, url: str) -> bytes | None:
        """The body of the registry's answer, None if it has no entry. Raises Unavailable or InvalidEntry otherwise."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if (trace := request_id.traceparent.get()) is not None:
            headers["traceparent"] = trace
        # NOTE: following a redirect would let the registry send our request to any host.
        async with self._session.get(url, headers=headers, allow_redirects=False) as response:
            if response.status in NO_ENTRY_STATUSES:
                return None
            if response.status >= 500 or response.status == 429:
                raise Unavailable(f"status {response.status}")
            if response.status != 200:
                raise InvalidEntry(f"status {response.status}")
            body = b""
            async for chunk in response.content.iter_chunked(16_384):
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise InvalidEntry(f"more than {MAX_ANSWER_BYTES} bytes")
            return body

    def _fail(self, cause: Exception) -> None:
        _look_ups.labels("failed").inc()
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            self._ask_again_at = self._clock() + PAUSE_S
            log.warning("registry.paused", seconds=PAUSE_S, cause=f"{type(cause).__name__}: {cause}")

    def _keep(self, subject: str, result: Result, size_bytes: int) -> None:
        before = self._entries.pop(subject, None)
        self._cached_bytes += size_bytes - (0 if before is None else before.size_bytes)
        now_s = self._clock()
        self._entries[subject] = _Entry(result.metadata, result.failed, now_s, now_s, size_bytes)
        while self._cached_bytes > MAX_CACHED_BYTES:
            _, oldest = self._entries.popitem(last=False)
            self._cached_bytes -= oldest.size_bytes

    def _usable(self, entry: _Entry | None) -> Metadata | None:
        """The metadata of a cached entry that is not too old."""
        return entry.metadata if entry is not None and self._clock() - entry.read_at < USABLE_S else None


def read(answer: bytes, subject: str) -> Metadata | None:
    """The metadata of a CIP-26 entry, None if it has none of our fields. Fields of the wrong type are left out.

    Raises InvalidEntry if the answer is not an entry of `subject`.
    """
    try:
        entry = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidEntry(f"not JSON: {error}") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("subject"), str) or entry["subject"].lower() != subject:
        raise InvalidEntry("not an entry of this subject")
    metadata = Metadata(
        name=_text(entry, "name"),
        ticker=_text(entry, "ticker"),
        description=_text(entry, "description"),
        decimals=_decimals(entry),
        image=_image(entry),
        url=_url(entry),
        logo=_logo(entry),
    )
    return None if metadata == _NOTHING else metadata


_NO_ENTRY, _FAILURE = Result(), Result(failed=True)


@asynccontextmanager
async def opened(url: str | None, clock: Callable[[], float] = time.monotonic) -> AsyncIterator[Registry]:
    """Open the registry at `url`, with its own connections."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False) as session:
        yield Registry(url, session, clock)


def _value(entry: dict[str, Any], field: str) -> object:
    """The value of a property, which CIP-26 wraps with signatures: `{"value": …, "signatures": […]}`."""
    attested = entry.get(field)
    return attested.get("value") if isinstance(attested, dict) else None


def _text(entry: dict[str, Any], field: str) -> str | None:
    value = _value(entry, field)
    return value if isinstance(value, str) and len(value) <= _MAX_TEXT_LENGTH else None


def _decimals(entry: dict[str, Any]) -> int:
    value = _value(entry, "decimals")
    return value if is_decimals(value) else 0


def _url(entry: dict[str, Any]) -> str | None:
    text = _text(entry, "url")
    return text if text is not None and text.startswith(("https://", "http://")) else None


def _image(entry: dict[str, Any]) -> str | None:
    """The image of an entry if it has one (CIP-26 allows any property), else its logo, which is a PNG."""
    own, logo = _text(entry, "image"), _logo(entry)
    if own is not None and own.startswith(IMAGE_SCHEMES):
        return own
    return None if logo is None else f"data:image/png;base64,{logo}"


def _logo(entry: dict[str, Any]) -> str | None:
    value = _value(entry, "logo")
    try:
        return value if isinstance(value, str) and base64.b64decode(value, validate=True) else None
    except ValueError:
        return None
