"""Where the indexer learns of the fork to protocol 10: from the node, or from the network's constant."""

from functools import partial
from typing import Any

import msgspec
import pytest

from devnet.generator import Generated, Options
from devnet.refusal import Refusal
from devnet.server import NodeServer
from devnet.session import Session
from indexer.ledger import protocol
from indexer.ogmios import connection as ogmios
from shared.ledger import Point
from shared.network import PREVIEW

FORK = 3
NETWORK = msgspec.structs.replace(PREVIEW, protocol_10_epoch=FORK + 1)


class Forgetful(NodeServer):
    """A node that has only the ledger states from a slot on."""

    oldest = 0

    def query(self, session: Session, method: str, params: Any) -> Any:
        if method == "acquireLedgerState" and msgspec.json.decode(bytes(params))["point"]["slot"] < self.oldest:
            raise Refusal(2000, "Failed to acquire requested point.", "Point too old.")
        return super().query(session, method, params)


@pytest.fixture(scope="module")
def chain() -> Generated:
    eras = (("babbage", 0), ("conway", 1), ("dijkstra", 6))
    return Generated(Options(seed=2, blocks_per_epoch=4, density=1, eras=eras, era_epochs=5, forks=((10, FORK),)), 30)


async def told(chain: Generated, oldest: int) -> dict[int, int | None]:
    """What the indexer takes for the version of each epoch, by the epoch's first block; None: before protocol 10."""
    found: dict[int, int | None] = {}
    async with Forgetful(chain) as node:
        node.oldest = oldest
        for block in chain.blocks:
            if (epoch := PREVIEW.epoch_of(block.slot)) not in found:
                point = Point(block.slot, bytes.fromhex(block.id))
                found[epoch] = await protocol.forked_to(NETWORK, block.era, point, partial(ogmios.connect, node.url))
    return found


async def test_the_node_tells_the_version_of_each_epoch(chain: Generated) -> None:
    assert await told(chain, oldest=0) == {0: None, 1: None, 2: None, 3: 10, 4: 10, 5: 10, 6: 12}


async def test_the_constant_of_the_network_decides_where_the_node_has_no_ledger_state(chain: Generated) -> None:
    assert await told(chain, oldest=1 << 40) == {0: None, 1: None, 2: None, 3: None, 4: 10, 5: 10, 6: 10}


async def test_the_node_prevails_over_the_constant(chain: Generated, capsys: pytest.CaptureFixture[str]) -> None:
    assert (await told(chain, oldest=PREVIEW.epoch_start(FORK)))[FORK] == 10
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "protocol.unexpected" in line]
    assert "epoch_no" in line


async def test_a_header_does_not_have_the_version_of_the_ledger(chain: Generated) -> None:
    majors = {block.decoded()["protocol"]["version"]["major"] for block in chain.blocks if block.era == "conway"}
    assert majors == {10}
    assert {chain.ledger.major_in(epoch) for epoch in range(1, 6)} == {9, 10}
