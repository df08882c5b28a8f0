"""Snapshots from a URL: what is there already, what is new, and servers that fail or lie."""

import hashlib
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from indexer.snapshot import download, manifest, signing
from indexer.snapshot.manifest import Manifest, Part, Tip
from shared import copies, schema
from shared.copies import CopyRefused, TableFile
from shared.network import MAINNET, PREVIEW, Network

KEY = Ed25519PrivateKey.generate()
NOW = datetime(2026, 11, 22, tzinfo=UTC)


class Site:
    """A web server with one snapshot. `dies_after` and `failures` count down with each part that it sends."""

    def __init__(self) -> None:
        self.parts = dict[str, bytes]()
        self.text = b""
        self.sent = list[tuple[str, str]]()
        self.dies_after: int | None = None
        self.failures, self.knows_ranges = 0, True
        self.server = TestServer(self._app())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/snapshots/mainnet"

    def publish(self, contents: dict[str, bytes], key: Ed25519PrivateKey = KEY) -> Manifest:
        """A snapshot with a part for each table."""
        files = {}
        for table, content in contents.items():
            sha256 = hashlib.sha256(content).hexdigest()
            name = manifest.name_of(table, sha256)
            self.parts[name] = content
            files[name] = Part(len(content), sha256, TableFile(table, ["x"]), "", None)
        published = signing.sign(
            Manifest(
                format=manifest.FORMAT,
                network="mainnet",
                made_at=NOW,
                program_version="1",
                schema_version=schema.VERSION,
                postgres_version="18.6",
                tip=Tip(1, 1, "00" * 32, NOW),
                first_block_no=0,
                tx_count=0,
                files=files,
            ),
            key,
        ).sealed()
        self.text = published.text()
        return published

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/snapshots/mainnet/manifest.json", self._manifest)
        app.router.add_get("/snapshots/mainnet/parts/{name}", self._part)
        return app

    async def _manifest(self, _: web.Request) -> web.Response:
        return web.Response(body=self.text)

    async def _part(self, request: web.Request) -> web.StreamResponse:
        name, wanted = request.match_info["name"], request.headers.get("Range", "")
        self.sent.append((name.partition("-")[0], wanted))
        if name not in self.parts:
            raise web.HTTPNotFound
        if self.failures:
            self.failures -= 1
            raise web.HTTPServiceUnavailable
        content, headers, status = self.parts[name], {}, 200
        first = re.fullmatch(r"bytes=(\d+)-", wanted)
        if first is not None and self.knows_ranges:
            headers["Content-Range"] = f"bytes {first[1]}-{len(content) - 1}/{len(content)}"
            content, status = content[int(first[1]) :], 206
        answer = web.StreamResponse(status=status, headers=headers | {"Content-Length": str(len(content))})
        await answer.prepare(request)
        if self.dies_after is not None and len(content) > self.dies_after:
            await answer.write(content[: self.dies_after])
            assert request.transport is not None
            request.transport.close()
            return answer
        await answer.write(content)
        return answer


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(download, "_FIRST_PAUSE_S", 0.001)
    published = Site()
    async with published.server:
        yield published


async def downloaded(site: Site, folder: Path, network: Network = MAINNET) -> Manifest:
    return await download.download(site.url, folder, KEY.public_key(), network, 2, lambda *_: None)


def held(folder: Path) -> dict[str, bytes]:
    """The parts in a folder, by table."""
    return {path.name.partition("-")[0]: path.read_bytes() for path in (folder / manifest.PARTS).iterdir()}


async def test_only_new_parts_are_downloaded_and_old_ones_deleted(site: Site, tmp_path: Path) -> None:
    site.publish({"tx": b"old blocks" * 9, "tip": b"1"})
    await downloaded(site, tmp_path)
    site.sent.clear()
    newer = site.publish({"tx": b"old blocks" * 9, "tip": b"2", "block": b"new"})
    assert await downloaded(site, tmp_path) == newer == manifest.read(tmp_path / copies.MANIFEST)
    assert sorted(site.sent) == [("block", ""), ("tip", "")]
    assert held(tmp_path) == {"tx": b"old blocks" * 9, "tip": b"2", "block": b"new"}


@pytest.mark.parametrize("knows_ranges", [True, False])
async def test_a_server_that_dies_midway_is_asked_for_the_rest(site: Site, tmp_path: Path, knows_ranges: bool) -> None:
    content = bytes(range(256)) * 64
    site.publish({"tx": content, "tip": b"1"})
    site.dies_after, site.knows_ranges = 5_000, knows_ranges
    if knows_ranges:
        await downloaded(site, tmp_path)
        assert [wanted for table, wanted in site.sent if table == "tx"] == [
            "", "bytes=5000-", "bytes=10000-", "bytes=15000-",
        ]  # fmt: skip
    else:
        with pytest.raises(CopyRefused, match=r"/parts/tx-\w+.zst can't be read: .*; repeat the command to continue$"):
            await downloaded(site, tmp_path)
        assert not (tmp_path / copies.MANIFEST).exists()
        site.dies_after = None
        await downloaded(site, tmp_path)
    assert held(tmp_path) == {"tx": content, "tip": b"1"}


async def test_what_an_interrupted_download_left_is_continued_or_begun_again_if_it_is_of_something_else(
    site: Site, tmp_path: Path
) -> None:
    published = site.publish({"tx": b"0123456789", "block": b"abcdefghij", "tip": b"123"})
    parts = tmp_path / manifest.PARTS
    parts.mkdir()
    left = {"tx": b"0123", "block": b"other", "tip": b"more than all"}
    for name, part in published.files.items():
        (parts / f"{name}.unfinished").write_bytes(left[part.table.name])
    await downloaded(site, tmp_path)
    assert held(tmp_path) == {"tx": b"0123456789", "block": b"abcdefghij", "tip": b"123"}
    assert ("tx", "bytes=4-") in site.sent
    assert [wanted for table, wanted in site.sent if table == "block"] == ["bytes=5-", ""]


async def test_a_server_that_is_busy_is_asked_again_within_bounds(site: Site, tmp_path: Path) -> None:
    site.publish({"tx": b"0123456789"})
    site.failures = 3
    await downloaded(site, tmp_path)
    site.publish({"tx": b"9876543210"})
    site.failures, before = 1_000, len(site.sent)
    with pytest.raises(CopyRefused, match=r"tx-\w+.zst can't be read: the server answers 503; repeat the command"):
        await downloaded(site, tmp_path)
    assert len(site.sent) - before < 10


@pytest.mark.parametrize("change", [b"012345678X", b"0123456789 and more", b"01234"])
async def test_a_part_that_is_not_what_the_manifest_says_is_refused_by_its_name(
    site: Site, tmp_path: Path, change: bytes
) -> None:
    published = site.publish({"tx": b"0123456789"})
    (name,) = published.files
    site.parts[name] = change
    with pytest.raises(CopyRefused, match=f"/parts/{name} (is not what the manifest says|can't be read): "):
        await downloaded(site, tmp_path)
    assert held(tmp_path).get("tx") in (None, b"01234"), "nothing has the name of a complete part"
    assert not (tmp_path / manifest.PARTS / name).exists()
    assert len(site.sent) < 10
    del site.parts[name]
    with pytest.raises(CopyRefused, match=f"/parts/{name} can't be read: the server answers 404$"):
        await downloaded(site, tmp_path)


async def test_a_manifest_that_is_not_signed_by_the_key_or_does_not_fit_is_refused_before_anything_is_downloaded(
    site: Site, tmp_path: Path
) -> None:
    site.publish({"tx": b"0123456789"}, Ed25519PrivateKey.generate())
    with pytest.raises(CopyRefused, match=r"/snapshots/mainnet/manifest.json is not signed by the given key$"):
        await downloaded(site, tmp_path)
    site.publish({"tx": b"0123456789"})
    with pytest.raises(CopyRefused, match=r"^the snapshot is for mainnet, expected preview$"):
        await downloaded(site, tmp_path, PREVIEW)
    site.text = site.text.replace(b"parts", b"", 1)[:-20]
    with pytest.raises(CopyRefused, match=r"/manifest.json is damaged: "):
        await downloaded(site, tmp_path)
    site.text = b" " * (manifest.MOST_BYTES + 1)
    with pytest.raises(CopyRefused, match=r"/manifest.json has more than \d+ bytes$"):
        await downloaded(site, tmp_path)
    assert (site.sent, list(tmp_path.iterdir())) == ([], [])


async def test_a_manifest_can_not_name_files_elsewhere(site: Site, tmp_path: Path) -> None:
    part = Part(1, "0" * 64, TableFile("tx", ["x"]), "", None)
    for name in ("../tx", f"tx-{'1' * 64}.zst", f"block-{'0' * 64}.zst"):
        published = site.publish({})
        copied = {**{key: getattr(published, key) for key in published.__struct_fields__}, "files": {name: part}}
        site.text = signing.sign(Manifest(**copied), KEY).sealed().text()
        with pytest.raises(CopyRefused, match=r"is damaged: '.*' is not the name of a part$"):
            await downloaded(site, tmp_path)


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "http:///x", "http://host/x?y=1", "https://host/x#y", "http://host:x/", "http://h/a b"]
)
def test_a_url_that_no_snapshot_can_have_is_refused(url: str) -> None:
    with pytest.raises(CopyRefused, match=r"^--from is '.*', expected a folder or http\[s\]://host\[:port\]/folder$"):
        download.check_url(url)


def test_passwords_in_urls_are_not_shown() -> None:
    with pytest.raises(CopyRefused) as refused:
        download.check_url("ftp://user:secret@host/x")
    assert "secret" not in str(refused.value)
