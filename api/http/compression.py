"""Bodies compressed with zstd or gzip, for callers that accept it (RFC 9110, 12.5.3).

A small body is compressed immediately, a larger one in a thread, so that other requests need not wait for it. Long ones
are compressed while they are built (`api/http/bodies.py`), and downloads not at all.
"""

import asyncio
import zlib
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from aiohttp import web

from api.http.sending import SentFile

SMALLEST = 1_024
"""Bodies of at most this many bytes are not compressed: they fit into one packet with their headers anyway."""

_AT_ONCE = 16_384  # compressing this many bytes takes about as long as the hop to a thread
_GZIP_LEVEL, _ZSTD_LEVEL = 4, 3


def _zstd_module() -> Any:
    """Python's own from 3.14 on, otherwise a package; None if that is not installed."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return import_module(name)
        except ModuleNotFoundError:
            continue
    return None


_zstd = _zstd_module()
KNOWN = ("gzip",) if _zstd is None else ("zstd", "gzip")
"""The encodings of this process, the best first."""


async def apply(response: web.Response, accepted: str | None) -> None:
    """Compress the body of an answer if it is worth it and the caller accepts it (`Accept-Encoding`)."""
    body, is_compressed = response.body, "Content-Encoding" in response.headers
    is_negotiated = (
        len(body) > SMALLEST if isinstance(body, bytes) else isinstance(body, SentFile) and body.is_negotiated
    )
    if not is_negotiated and not is_compressed:
        return
    varies = response.headers.get("Vary")
    response.headers["Vary"] = "Accept-Encoding" if varies is None else f"{varies}, Accept-Encoding"
    encoding = None if accepted is None else chosen(accepted)
    if encoding is None or is_compressed or not isinstance(body, bytes):
        return
    # A public body, such as a file of a page, is the same for everybody and is compressed once.
    is_public = response.headers.get("Cache-Control", "").startswith("public")
    response.body = await compressed(body, encoding, once=is_public)
    response.headers["Content-Encoding"] = encoding


async def compressed(body: bytes, encoding: str, *, once: bool = False) -> bytes:
    """A compressed body; `once` remembers it."""
    compress = _compressed_once if once else _compressed
    if len(body) <= _AT_ONCE:
        return compress(body, encoding)
    return await asyncio.get_running_loop().run_in_executor(None, compress, body, encoding)


@lru_cache(256)
def chosen(accepted: str) -> str | None:
    """The encoding for an `Accept-Encoding` header; None if the caller accepts none of ours or refuses it."""
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, _, parameter = part.partition(";")
        try:
            weights[name.strip()] = float(parameter.strip().removeprefix("q=") or 1)
        except ValueError:
            return None
    ours = {name: weights.get(name, weights.get("*", 0.0)) for name in KNOWN}
    best = max(ours, key=ours.__getitem__)
    return best if ours[best] > 0 and ours[best] >= weights.get("identity", 0.0) else None


def in_pieces(encoding: str | None) -> Callable[[bytes, bool], bytes]:
    """A function that compresses one piece of a body after the other, and is told which is the last."""
    if encoding is None:
        return lambda piece, _: piece
    is_gzip = encoding == "gzip"
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31) if is_gzip else _zstd.ZstdCompressor(_ZSTD_LEVEL)

    def compress(piece: bytes, ends: bool) -> bytes:
        return bytes(packer.compress(piece) + (packer.flush() if ends else b""))

    return compress


def _compressed(body: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        return bytes(_zstd.compress(body, _ZSTD_LEVEL))
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, 31)
    return packer.compress(body) + packer.flush()


_compressed_once = lru_cache(16)(_compressed)
