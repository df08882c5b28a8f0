"""The encoding of an answer, by the caller's `Accept-Encoding`."""

import gzip

import pytest
from aiohttp import web

from api.http import compression

BEST = compression.KNOWN[0]


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", None),
        ("identity", None),
        ("br", None),
        ("gzip", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("gzip, deflate, br, zstd", BEST),
        ("zstd;q=0.1, gzip;q=0.9", "gzip"),
        ("*", BEST),
        ("*;q=0, gzip", "gzip"),
        ("identity, gzip;q=0.5", None),
        ("gzip;q=nonsense", None),
        ("gzip;q=", "gzip"),
    ],
)
def test_the_encoding_is_one_that_the_caller_prefers(accepted: str, encoding: str | None) -> None:
    assert compression.chosen(accepted) == encoding


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("size", [1_024, 1_025, 100_000])
async def test_a_body_above_a_kilobyte_is_compressed(encoding: str, size: int) -> None:
    if encoding not in compression.KNOWN:
        pytest.skip("needs zstd: this Python has neither its own nor backports.zstd")
    body = b"0123456789abcdef" * (size // 16) + b"x" * (size % 16)
    response = web.Response(body=body)
    await compression.apply(response, encoding)
    assert isinstance(response.body, bytes)
    if size == 1_024:
        assert (response.body, response.headers.get("Vary")) == (body, None)
        return
    assert (response.headers["Content-Encoding"], response.headers["Vary"]) == (encoding, "Accept-Encoding")
    assert response.content_length == len(response.body) < 1_000
    if encoding == "gzip":
        assert gzip.decompress(response.body) == body
    else:
        assert compression._zstd.decompress(response.body) == body


async def test_a_caller_that_requests_no_compression_gets_none_and_caches_vary() -> None:
    response = web.Response(body=b"x" * 5_000)
    await compression.apply(response, None)
    assert (response.body, response.headers["Vary"]) == (b"x" * 5_000, "Accept-Encoding")
    assert "Content-Encoding" not in response.headers
