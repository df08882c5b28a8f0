"""What a pool says of itself: the document that the URL in its registration leads to (CIP-6).

The rules are those of cardano-db-sync (OffChain/Types.hs and OffChain/Http.hs), which Blockfrost shows: at most 512
bytes, which must have the registered hash, and four texts of bounded length, all of them required. Content
types are ignored, since the hash says more: db-sync refuses a document that is sent as an image.
"""

import hashlib
import re
from typing import Annotated, Literal

import msgspec

MOST_BYTES = 512

FailureCode = Literal["connection_error", "http_response_error", "size_exceeded", "hash_mismatch", "decode_error"]


class Document(msgspec.Struct, frozen=True):
    """The texts that a pool publishes, as they are. Others in the document are ignored."""

    name: Annotated[str, msgspec.Meta(max_length=50)]
    ticker: Annotated[str, msgspec.Meta(min_length=3, max_length=5)]
    description: Annotated[str, msgspec.Meta(max_length=255)]
    homepage: str


class Failure(Exception):
    """Why there is no document. `final`: no later attempt can succeed, since the registered bytes are unusable."""

    def __init__(self, code: FailureCode, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.code, self.reason, self.final = code, reason, final


class Shown(msgspec.Struct, frozen=True):
    """A document as callers get it: without characters that act on what surrounds the text."""

    name: str
    ticker: str
    description: str
    homepage: str | None


def checked(content: bytes, registered_hash: bytes) -> Document:
    """The document in these bytes. Raises Failure."""
    actual = hashlib.blake2b(content, digest_size=32).digest()
    if actual != registered_hash:
        raise Failure("hash_mismatch", f"the document has the hash {actual.hex()}, not the registered one")
    return read(content)


def read(content: bytes) -> Document:
    """The document in bytes whose hash is right. Raises Failure."""
    try:
        return _documents.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as cause:
        raise Failure("decode_error", f"the document is not metadata of a pool: {cause}", final=True) from cause


_documents = msgspec.json.Decoder(Document)


def shown(document: Document) -> Shown:
    """A document for callers. A homepage that is a script or data instead of an address is left out."""
    homepage = _clean(document.homepage)
    return Shown(
        name=_clean(document.name),
        ticker=_clean(document.ticker),
        description=_clean(document.description),
        homepage=None if _RUNS.match(homepage) else homepage,
    )


def _clean(text: str) -> str:
    """Text without control characters; white space between words becomes a space."""
    return _UNSEEN.sub("", _SPACE.sub(" ", text)).strip()


_SPACE = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# Control characters, the marks that turn the direction of what follows, and spaces without width. The joiners of emoji
# and of some scripts stay.
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_RUNS = re.compile(r"\s*(javascript|data|vbscript)\s*:", re.IGNORECASE)
