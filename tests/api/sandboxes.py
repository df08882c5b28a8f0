"""A devnet, an index of its whole chain, and an API over both, for clients that build and submit transactions."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from devnet import control, networks
from devnet.blocks import Block, Genesis
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.parameters import genesis_configuration, protocol_parameters
from devnet.server import NodeServer
from shared import database
from shared.network import PREVIEW
from tests.api.client import Client, serving
from tests.chain.harness import Process
from tests.chain.written import Written
from tests.patience import PATIENCE_S

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


class Followed(msgspec.Struct):
    """A devnet with short epochs that an indexer follows, so that the index has what accounts are paid."""

    node: NodeServer
    api: Client
    chain: Generated
    _indexer: Process
    _db: asyncpg.Connection

    async def grow(self) -> None:
        self.node.grow()
        await self._finds("SELECT FROM tip WHERE phase = 'live' AND block_hash = $1", self.node.blocks[-1])

    async def begin_epoch(self) -> int:
        """Grow into the next epoch, and wait until its rewards are read; returns the epoch."""
        before = self.chain.ledger.epoch
        while self.chain.ledger.epoch == before:
            self.node.grow()
        await self.all_read()
        return self.chain.ledger.epoch

    async def all_read(self) -> None:
        """Wait until the index is at the tip and has all rewards of its epoch."""
        await self._finds(
            """
            SELECT FROM tip, ledger_state
            WHERE block_hash = $1 AND complete_epoch_no = $2 AND next_stake_no IS NULL
              AND NOT EXISTS (SELECT FROM reward_due)
            """,
            self.node.blocks[-1],
            self.chain.ledger.epoch,
        )

    async def _finds(self, statement: str, tip: Block, *args: int) -> None:
        """Wait until a statement about the tip finds a row."""
        async with asyncio.timeout(PATIENCE_S):
            while await self._db.fetchrow(statement, bytes.fromhex(tip.id), *args) is None:
                assert self._indexer.popen.poll() is None, self._indexer.output()[-3000:]
                await asyncio.sleep(0.02)


@asynccontextmanager
async def followed(environment: dict[str, str], directory: Path) -> AsyncIterator[Followed]:
    """A devnet with pools whose epochs have about eight blocks, and its indexer, which has read the rewards of one."""
    options = Options(seed=42, density=2, eras=(("conway", 0),), faucet=True, blocks_per_epoch=8)
    generated = await asyncio.to_thread(Generated, options, _BLOCKS)
    assert generated.ledger.pools, "another seed makes a chain with pools"
    db = await database.connect(environment["DATABASE_URL"], PREVIEW)
    async with (
        NodeServer(generated, dialect=Dialect(VERSION)) as node,
        serving({**environment, "OGMIOS_URL_PREVIEW": node.url}) as api,
    ):
        arguments = ["indexer", "run", "--network", "preview", "--ogmios-url", node.url]
        indexer = Process(arguments, environment, directory / "indexer.log")
        try:
            sandbox = Followed(node, api, generated, indexer, db)
            await sandbox.all_read()
            yield sandbox
        finally:
            indexer.kill()
    await db.close()


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
