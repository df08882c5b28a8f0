"""Conditional requests: ETag, Cache-Control, and 304 if nothing has changed (RFC 9110, 13.1.2).

A settled answer is tagged by its block. Any other ChainAnswer or ChainPage is tagged by the tip and its URL, so a
repeated request only reads the tip. All other answers, a LedgerAnswer too, are tagged by their body.
"""

from hashlib import sha256
from typing import Any
from zlib import crc32

import msgspec
from aiohttp import web

from api import answers
from api.answers import ChainAnswer, ChainPage, Unchanged
from api.ask import Notes
from api.http import compression, links
from api.http.bodies import Encoded, has_parts
from shared.version import VERSION

PRIVATE, NOT_STORED = "private, no-cache", "no-store"
IMMUTABLE = "private, max-age=31536000, immutable"

METADATA_WARNING = "Metadata-Warning"
KNOWN_EPOCHS = "Known-Epochs"
SNAPSHOT_BLOCK = "Snapshot-Block"
"""The hash of the last block in the snapshot of a list without `last_updated`: a position in a log of events."""

NOT_MODIFIED = 304

_TIP = f'"{VERSION}-t'
_TAGGED_BY_TIP = (ChainPage, ChainAnswer)


def respond(request: web.BaseRequest, status: int, answer: Any, notes: Notes) -> web.Response:
    """The response with an answer; 304 if the caller has it."""
    if isinstance(answer, Encoded):
        return _reply(request, answer)
    if notes.metadata_warning is not None:
        # Without a tag and not stored, so that the caller asks again instead of keeping a possibly incomplete answer.
        headers = {"Cache-Control": NOT_STORED, METADATA_WARNING: notes.metadata_warning}
        headers["Content-Type"] = answers.CONTENT_TYPE
        return web.Response(status=status, body=answers.encode(answer), headers=headers)
    if request.method not in ("GET", "HEAD"):
        return _with_body(notes, unstored(status, b"" if notes.body else answers.encode(answer)))
    response = _reply(request, encode(request, status, answer, notes))
    return response if response.status == NOT_MODIFIED else _with_body(notes, response)


def encode(request: web.BaseRequest, status: int, answer: Any, notes: Notes) -> Encoded:
    """An answer to GET or HEAD. The body of a long one stays in the notes."""
    validators = {"Cache-Control": IMMUTABLE if notes.settled_by else PRIVATE}
    if notes.known_epochs is not None:
        validators[KNOWN_EPOCHS] = notes.known_epochs
    if notes.snapshot_block is not None:
        validators[SNAPSHOT_BLOCK] = notes.snapshot_block
    # NOTE: HEAD does not make the body of a long answer, and omits the length and the tag that follow from it.
    is_short = notes.body is None and not isinstance(answer, Unchanged) and not has_parts(answer)
    body = answers.encode(answer) if is_short else b""
    if notes.settled_by is not None:
        validators["ETag"] = of_block(notes.settled_by)
    elif isinstance(answer, _TAGGED_BY_TIP):
        validators["ETag"] = of_tip(answer.last_updated.block_hash, request.raw_path)
    elif is_short or notes.body is not None:
        validators["ETag"] = _of_digest(sha256(body).digest() if notes.body is None else notes.body.digest)
    headers = {"Content-Type": answers.CONTENT_TYPE}
    page = getattr(answer, "pagination", None)
    if page is not None:
        next_page = links.to_next_page(request.rel_url.raw_path, request.rel_url.raw_query_string, page)
        if next_page is not None:
            headers["Link"] = next_page
    return Encoded(status, validators, headers, body, getattr(answer, "last_updated", None))


async def encode_whole(request: web.BaseRequest, status: int, answer: Any, notes: Notes) -> Any:
    """An answer to GET: Encoded as its caller accepts it if it may be kept (api/repeats/kept.py), else as it is."""
    if notes.metadata_warning is not None or notes.may_change or isinstance(answer, Unchanged | web.Response):
        return answer
    encoded = encode(request, status, answer, notes)
    body, encoding = encoded.body, None if notes.accepted is None else compression.chosen(notes.accepted)
    if notes.body is not None:
        if not isinstance(notes.body.content, bytes):
            return answer
        body, encoding = notes.body.content, notes.body.encoding
    elif encoding is not None and len(body) > compression.SMALLEST:
        body = await compression.compressed(body, encoding)
    else:
        encoding = None
    if encoding is not None:
        encoded = msgspec.structs.replace(encoded, headers={**encoded.headers, "Content-Encoding": encoding})
    return msgspec.structs.replace(encoded, body=body)


def is_anew(request: web.BaseRequest) -> bool:
    """Whether a request asks for an answer that was not kept."""
    return "no-cache" in request.headers.get("Cache-Control", "")


def _reply(request: web.BaseRequest, answer: Encoded) -> web.Response:
    """The response with an answer, without its body if that is in notes; 304 if the caller has it."""
    known = request.headers.get("If-None-Match")
    if known and matches(known, answer.validators.get("ETag", "")):
        return web.Response(status=NOT_MODIFIED, headers=answer.validators)
    return web.Response(status=answer.status, body=answer.body, headers={**answer.validators, **answer.headers})


def _with_body(notes: Notes, response: web.Response) -> web.Response:
    """The response, with the body that was written already, if one was."""
    if notes.body is not None:
        if notes.body.encoding is not None:
            response.headers["Content-Encoding"] = notes.body.encoding
        response.body, notes.body = notes.body.content, None
    return response


def unstored(status: int, body: bytes) -> web.Response:
    """The response to a change, which no cache may store."""
    headers = {"Content-Type": answers.CONTENT_TYPE, "Cache-Control": NOT_STORED}
    return web.Response(status=status, body=body, headers=headers)


def of_tip(block_hash: str, url: str) -> str:
    """The tag of an answer that is valid until the tip changes.

    NOTE: the URL is part of the tag. Otherwise a tag from another URL would turn a request that the handler refuses
    into a 304.
    """
    return f'W/{_TIP}{block_hash[:32]}-{crc32(url.encode(errors="surrogateescape")):x}"'


def _of_digest(digest: bytes) -> str:
    """The tag of an answer that only its body identifies, by the body's SHA-256.

    NOTE: SHA-256, for which processors have instructions: for a page of 100 holders it takes half as long as BLAKE2.
    """
    return f'W/"{VERSION}-b{digest.hex()[:24]}"'


def of_block(block_hash: str) -> str:
    """The tag of an answer that is valid as long as a block is on the chain."""
    return f'W/"{VERSION}-k{block_hash[:32]}"'


def has_tip_tag(if_none_match: str) -> bool:
    """Whether a caller has an answer that is valid until the tip changes."""
    return _TIP in if_none_match


def matches(if_none_match: str, tag: str) -> bool:
    """Whether a caller has the answer with this tag, by weak comparison."""
    opaque = tag.removeprefix("W/")
    sent = (tag.strip() for tag in if_none_match.split(","))
    return any(tag == "*" or tag.removeprefix("W/") == opaque for tag in sent)
