"""The document that a pool publishes: what is refused, and what is removed from its texts."""

import hashlib
from typing import Any

import msgspec
import pytest

from api.sources import pool_document
from api.sources.pool_document import Document, Failure, Shown

TEXTS = {"name": "Pool", "ticker": "POOL", "description": "A pool", "homepage": "https://pool.example"}


def hash_of(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=32).digest()


def document(**changes: Any) -> bytes:
    return msgspec.json.encode({name: value for name, value in (TEXTS | changes).items() if value is not None})


def test_a_document_has_four_texts_and_any_others() -> None:
    content = document(extended="https://pool.example/more.json")
    assert pool_document.checked(content, hash_of(content)) == Document(**TEXTS)


def test_the_hash_is_that_of_the_bytes_as_received() -> None:
    content = document()
    for other in (content + b"\n", content.replace(b":", b": "), b""):
        with pytest.raises(Failure) as refused:
            pool_document.checked(other, hash_of(content))
        assert (refused.value.code, refused.value.final) == ("hash_mismatch", False)
        assert hash_of(other).hex() in refused.value.reason


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"[" * 512,
        b'{"name":' * 60,
        b"\xff\xfe",
        b"\xef\xbb\xbf" + document(),
        document().replace(b"Pool", b"\xff"),
        document(name=None),
        document(ticker=None),
        document(description=None),
        document(homepage=None),
        document(name=7),
        document(homepage=["https://pool.example"]),
        document(ticker="PO"),
        document(ticker="POOLED"),
        document(name="x" * 51),
        document(description="x" * 256),
        document().replace(b'"Pool"', b'"\\ud800"'),
    ],
)
def test_what_db_sync_refuses_is_refused_for_good(content: bytes) -> None:
    with pytest.raises(Failure) as refused:
        pool_document.checked(content, hash_of(content))
    assert (refused.value.code, refused.value.final) == ("decode_error", True)


def test_lengths_count_characters() -> None:
    widest = document(name="ü" * 50, ticker="プール", description="\U0001d538" * 60)
    assert pool_document.checked(widest, hash_of(widest)).name == "ü" * 50


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Pool", "Pool"),
        ("  Pool\r\nof\tmine \x00", "Pool of mine"),
        ("<b>Pool</b> & 'co'", "<b>Pool</b> & 'co'"),
        ("Pool\x1b[31m\x07", "Pool[31m"),
        ("ab\u202edc\u2066", "abdc"),
        ("a\u200bb\ufeff", "ab"),
        ("line\u2028next", "line next"),
        ("👩\u200d🌾", "👩\u200d🌾"),
        ("\u0646\u200c\u0641", "\u0646\u200c\u0641"),
        ("\u202e", ""),
    ],
)
def test_texts_are_shown_without_characters_that_act(text: str, clean: str) -> None:
    shown = pool_document.shown(Document(text, "POOL", text, "https://pool.example"))
    assert shown == Shown(clean, "POOL", clean, "https://pool.example")


@pytest.mark.parametrize(
    ("homepage", "shown"),
    [
        ("https://pool.example/x?y#z", "https://pool.example/x?y#z"),
        ("www.pool.example", "www.pool.example"),
        ("pool.example:8080", "pool.example:8080"),
        ("", ""),
        ("javascript:alert(1)", None),
        (" JavaScript\u200b:alert(1)", None),
        ("java\nscript:alert(1)", "java script:alert(1)"),
        ("\x01javascript:alert(1)", None),
        ("data:text/html,<script>", None),
        ("vbscript:x", None),
    ],
)
def test_a_homepage_that_runs_is_not_shown(homepage: str, shown: str | None) -> None:
    assert pool_document.shown(Document("Pool", "POOL", "A pool", homepage)).homepage == shown
