"""The commands `snapshot` and `restore`: from one database to another, which then follows the chain."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.chain.dump import differences
from tests.chain.fixtures import NewLedgerline
from tests.chain.harness import Json, Ledgerline, Node, Process
from tests.processes.preview import preview


def test_a_snapshot_beside_an_indexer_restores_elsewhere_and_follows_the_chain(
    ledgerline: Ledgerline,
    new_ledgerline: NewLedgerline,
    indexer: Callable[[str], Process],
    blocks: list[Json],
    tmp_path: Path,
) -> None:
    folder, other = tmp_path / "snapshot", new_ledgerline()
    from_folder = ("indexer", "restore", "--network", "preview", "--from", str(folder))
    with Node(preview(150)) as node:
        process = indexer(node.url)
        ledgerline.reaches("preview", blocks[149], process)
        took = ledgerline.run("indexer", "snapshot", "--network", "preview", "--out", str(folder))
        assert (took.returncode, took.stderr.count("\n")) == (0, 1), took.stderr
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["tip"]["block_hash"] == blocks[149]["id"]
        node.do(node.server.grow, 50)
        ledgerline.reaches("preview", blocks[199], process)
        refused = ledgerline.run(*from_folder)
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[1:] == ["an indexer is running for preview: stop it first"]
        assert process.stop() == 0
        took = other.run(*from_folder)
        assert (took.returncode, took.stderr.count("\n")) == (0, 1), took.stderr
        assert blocks[149]["id"] in took.stdout
        with other.indexing("preview", node.url) as process:
            other.reaches("preview", blocks[199], process)
            assert process.stop() == 0
    assert differences(ledgerline.dump("preview"), other.dump("preview")) == []
    verified = other.run("indexer", "verify", "--network", "preview")
    assert verified.returncode == 0, verified.stderr
