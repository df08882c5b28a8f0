"""A devnet, an index of its whole chain, and an API over both, for clients that build and submit transactions."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from devnet import control, networks
from devnet.blocks import Genesis
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.parameters import genesis_configuration, protocol_parameters
from devnet.server import NodeServer
from shared import database
from shared.network import PREVIEW
from tests.api.client import Client, serving
from tests.chain.written import Written

VERSION = (7, 0)
NONCE = b"\1" * 32
_BLOCKS = 30


class Sandbox(msgspec.Struct):
    """A devnet whose every block is indexed as soon as it grows."""

    node: NodeServer
    api: Client
    written: Written

    @property
    def blockfrost(self) -> str:
        """The base URL for clients of Blockfrost, without the version."""
        return f"http://127.0.0.1:{self.api.port}/blockfrost/api"

    async def grow(self) -> None:
        self.node.grow()
        await self.written.index(self.node.blocks[-1].decoded())

    async def fork(self) -> None:
        """Replace the last block with two others. Submitted transactions return to the mempool."""
        control.fork(self.node, 1)
        *_, before, first, second = self.node.blocks
        await self.written.back_to(before.slot)
        for block in (first, second):
            await self.written.index(block.decoded())


@asynccontextmanager
async def opened(environment: dict[str, str]) -> AsyncIterator[Sandbox]:
    """A sandbox with pools, whose faucet has ada in the indexed outputs of a transaction."""
    options = Options(seed=46, density=2, eras=(("conway", 0),), faucet=True, blocks_per_epoch=1_000)
    generated = await asyncio.to_thread(Generated, options, _BLOCKS)
    assert generated.ledger.pools, "another seed makes a chain with pools"
    chain = await database.connect(environment["DATABASE_URL"], PREVIEW)
    written = Written(chain)
    async with (
        NodeServer(generated, dialect=Dialect(VERSION)) as node,
        serving({**environment, "OGMIOS_URL_PREVIEW": node.url}) as api,
    ):
        for block in node.blocks:
            await written.index(block.decoded())
        await _read_ledger(chain)
        yield Sandbox(node, api, written)
    await chain.close()


async def _read_ledger(chain: Any) -> None:
    """Write the data that the indexer reads from the node's ledger."""
    parameters = json.dumps(protocol_parameters("conway", VERSION))
    shelley = json.dumps(genesis_configuration("shelley", networks.PREVIEW, Genesis(), VERSION))
    epoch_no = await chain.fetchval("SELECT max(epoch_no) FROM epoch")
    await chain.execute("INSERT INTO epoch_parameters VALUES ($1, $2::text::json, $3)", epoch_no, parameters, NONCE)
    await chain.execute("INSERT INTO genesis_configuration VALUES ('shelley', $1::text::json)", shelley)
