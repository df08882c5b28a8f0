"""The end of bulk: rollbacks between its steps, and the tables that it builds."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from devnet.generator import Generated, Options
from devnet.server import NodeServer
from indexer.blocks.genesis import Genesis, GenesisOutput
from indexer.store import backward, beginning, finish_bulk, position
from shared import address, database, packed
from shared.network import PREVIEW
from tests.chain.followers import following
from tests.chain.harness import Ledgerline
from tests.chain.planted import verified
from tests.chain.written import ADA, Written, hash_of, mints, pays, person, tx
from tests.patience import PATIENCE_S

EPOCH = 86_400


class Interrupted(Exception):
    """The process ends here."""


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


async def end_until(db: asyncpg.Connection, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run only the first steps of the end of bulk."""
    rebuild = finish_bulk._rebuild

    async def interrupted(*arguments: object) -> None:
        index = await position.read(db)
        assert index is not None
        if index.finalize_step == steps:
            raise Interrupted
        await rebuild(*arguments)  # type: ignore[arg-type]  # any arguments

    with monkeypatch.context() as patched:
        patched.setattr(finish_bulk, "_rebuild", interrupted)
        with pytest.raises(Interrupted):
            await finish_bulk.finalize(db, 0)


@pytest.mark.parametrize("steps", range(1, len(finish_bulk._STEPS)))
def test_a_resync_between_the_steps_ends_bulk_first(
    ledgerline: Ledgerline, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    async def prepare() -> None:
        db = await database.connect(ledgerline.database_url, PREVIEW)
        chain = Written(db, bulk=True)
        ann, bob = person("ann", staked=True), person("bob", staked=True)
        await chain.append(100, tx("a", pays(ann, ("aa", 10)), mint=mints(("aa", 10))))
        made = pays(bob, ("aa", 10), ("bb", 5))
        await chain.append(200, tx("b", made, spends=(("a", 0),), mint=mints(("bb", 5))))
        await end_until(db, steps, monkeypatch)
        point = await position.last_at_or_before(db, 100)
        assert point is not None
        with pytest.raises(AssertionError, match="end of bulk"):
            await backward.rollback(db, PREVIEW, point)
        await db.close()

    asyncio.run(prepare())
    told = ledgerline.run("indexer", "resync", "--network", "preview", "--from-slot", "100")
    assert told.returncode == 0, told.stderr
    assert asyncio.run(verified(ledgerline.database_url, PREVIEW)) == {}


async def test_a_long_list_of_genesis_outputs_is_recounted(db: asyncpg.Connection) -> None:
    raw = address.of_node(person("ann", staked=True))
    outputs = [GenesisOutput(number.to_bytes(32), raw, ADA) for number in range(5_000)]
    await beginning.begin(db, PREVIEW, Genesis(outputs=outputs))
    chain = Written(db, bulk=True)
    await chain.append(100, tx("a", pays(person("ann", staked=True))))
    await chain.finalize()
    for bucket in ("utxo_bucket", "account_utxo_bucket"):
        assert await db.fetchval(f"SELECT sum(outputs) FROM {bucket}") == 5_001  # noqa: S608


async def test_an_index_goes_live_with_statistics(db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(_: object) -> None:
        raise Interrupted

    chain = Written(db, bulk=True)
    await chain.append(100, tx("a", pays(person("ann"))))
    with monkeypatch.context() as patched:
        patched.setattr(finish_bulk, "analyze", interrupted)
        with pytest.raises(Interrupted):
            await chain.finalize()
    index = await position.read(db)
    assert index is not None and index.is_bulk
    await finish_bulk.finalize(db, index.finalize_step)
    assert await db.fetchval("SELECT reltuples FROM pg_class WHERE oid = 'address_tx'::regclass") == 1


@pytest.mark.parametrize("in_bulk", [False, True])
async def test_spending_by_genesis_delegators_is_not_a_reward(db: asyncpg.Connection, in_bulk: bool) -> None:
    raw = address.of_node(person("ann", staked=True))
    account, pool = address.stake_of(raw), bytes(27) + b"\1"
    assert account is not None
    genesis = Genesis(
        outputs=[GenesisOutput(bytes.fromhex(hash_of("genesis")), raw, 1_000 * ADA)],
        pools={pool: packed.PoolParameters(vrf_key_hash=bytes(32), pledge=0, fixed_cost=0, margin="1/100")},
        delegations={account: pool},
    )
    await beginning.begin(db, PREVIEW, genesis)
    chain = Written(db, bulk=in_bulk)
    await chain.append(
        100, tx("spends", pays(person("ann", staked=True)), pays(person("bob")), spends=(("genesis", 0),))
    )
    for epoch_no in (1, 2):
        await chain.append(EPOCH * epoch_no)
    assert await db.fetchval("SELECT active_stake FROM pool_epoch WHERE epoch_no = 3") == 2 * ADA
    assert await db.fetch("SELECT FROM pool_reward") == []


async def test_an_end_of_bulk_that_is_resumed_is_reported(
    db: asyncpg.Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: object) -> None:
        await asyncio.Event().wait()

    chain = Written(db, bulk=True)
    await chain.append(100, tx("a", pays(person("ann"), ("aa", 10)), mint=mints(("aa", 10))))
    await end_until(db, 1, monkeypatch)
    async with NodeServer(Generated(Options(seed=3), 10)) as node:
        monkeypatch.setattr(finish_bulk, "finalize", endless)
        async with following(database_url, node) as task:
            async with asyncio.timeout(PATIENCE_S):
                while not await db.fetchval("SELECT finishing FROM partner.leader"):
                    assert not task.done()
                    await asyncio.sleep(0.02)
