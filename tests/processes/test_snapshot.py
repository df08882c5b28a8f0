"""The commands `snapshot` and `restore`: from one database to another, which then follows the chain."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.chain.dump import differences
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Json, Ledgerline, Node, Process
from tests.processes.preview import preview


@contextmanager
def published(folder: Path) -> Iterator[str]:
    """A web server with a folder; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def key_files(folder: Path) -> tuple[str, str]:
    """The files of a new private key and of its public key."""
    key, pem = Ed25519PrivateKey.generate(), serialization.Encoding.PEM
    private, public = folder / "private.pem", folder / "public.pem"
    bare = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, bare))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return str(private), str(public)


def test_a_snapshot_beside_an_indexer_restores_elsewhere_from_its_url_and_follows_the_chain(
    ledgerline: Ledgerline,
    new_ledgerline: NewLedgerline,
    indexer: Callable[[str], Process],
    blocks: list[Json],
    tmp_path: Path,
) -> None:
    folder, downloaded, other = tmp_path / "snapshot", tmp_path / "downloaded", new_ledgerline()
    private, public = key_files(tmp_path)
    restore = ("indexer", "restore", "--network", "preview", "--from")
    with Node(preview(150)) as node, published(folder) as url:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[149], process)
        to = ("--network", "preview", "--out", str(folder), "--sign-with", private)
        took = ledgerline.run("indexer", "snapshot", *to)
        assert (took.returncode, took.stderr.count("\n")) == (0, 1), took.stderr
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["tip"]["block_hash"] == blocks[149]["id"]
        node.do(node.server.grow, 50)
        ledgerline.reaches("preview", blocks[199], process)
        refused = ledgerline.run(*restore, str(folder))
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[1:] == ["an indexer is running for preview: stop it first"]
        assert process.stop() == 0
        unsigned = other.run(*restore, url)
        expected = "--from with a URL requires --download and --signed-by\n"
        assert (unsigned.returncode, unsigned.stderr) == (2, expected), unsigned.stderr
        took = other.run(*restore, url, "--download", str(downloaded), "--signed-by", public)
        assert (took.returncode, took.stderr.count("\n")) == (0, 1), took.stderr
        assert blocks[149]["id"] in took.stdout
        assert (downloaded / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()
        with other.indexing("preview", node.url) as process:
            other.reaches("preview", blocks[199], process)
            assert process.stop() == 0
    assert differences(ledgerline.dump("preview"), other.dump("preview")) == []
    verified = other.run("indexer", "verify", "--network", "preview")
    assert verified.returncode == 0, verified.stderr
