"""Streaming replicas and failover: answers while a Postgres server is dead, frozen, late or demoted."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from api.blockfrost.shape import ROOT
from api.services import ADMIN_ANSWER_WITHIN_S
from devnet import faucet
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from shared import database, leader, schema
from shared.network import PREVIEW
from tests.api.chains import Chain, Tx
from tests.api.client import Client, serving
from tests.api.payments import ALICE, pays
from tests.api.submitting import SUBMIT, grant
from tests.campaigns import asked_again
from tests.chain.harness import issue_keys
from tests.own_postgres import OwnPostgres, address_of, clusters, made_whole
from tests.patience import PATIENCE_S, OwnTime
from tests.wallet import ADA, Wallet, id_of

BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40
ASKING_S = float(os.environ.get(asked_again.SECONDS, "3"))
POOLS = 2
"""An admin call uses a connection of two pools: one for its key, one for its work."""


class Site:
    """A database on a primary and its two replicas, a chain that is written to the primary, and a key for requests."""

    def __init__(
        self, servers: list[OwnPostgres], database: str, environment: dict[str, str], key: str, chain: Chain
    ) -> None:
        self.primary, self.first, self.second = servers
        self._database = database
        self.environment, self.key, self.chain = environment, key, chain
        self.slot_no = 0

    @asynccontextmanager
    async def api(self, *replicas: OwnPostgres, **settings: str) -> AsyncIterator[Client]:
        """An API that reads from those of these replicas that are running."""
        urls = {"READ_DATABASE_URL": ",".join(in_database(replica.url, self._database) for replica in replicas)}
        async with serving(self.environment | urls | settings) as client:
            await takes_in(client, *(number for number, replica in enumerate(replicas, 1) if replica.runs))
            yield client

    @asynccontextmanager
    async def partners(self, *servers: OwnPostgres) -> AsyncIterator["Partners"]:
        """An API whose primary is one of these servers, with some open connections to it."""
        url = address_of(servers, self._database)
        async with serving(self.environment | {"DATABASE_URL": url}) as client:
            partners = Partners(client)
            assert await partners.made() == 201
            assert set(await asyncio.gather(*(partners.made() for _ in range(8)))) == {201}
            yield partners

    async def block(self) -> None:
        """One more block."""
        self.slot_no += 10
        await self.chain.append(self.slot_no, pays(f"at {self.slot_no}", ALICE))

    async def keys(self) -> list[str]:
        """Some keys."""
        return await issue_keys(self.environment["DATABASE_URL"], "preview", 8)

    async def tip(self, client: Client) -> int:
        """The tip of one answer, which must be a success, long before the time limit of a statement."""
        took = OwnTime()
        reply = await client.get(f"/v1/tx/history/{ALICE}", self.key)
        assert took.seconds < database.CHAIN_ANSWER_WITHIN_S / 2
        assert reply.status == 200, reply.body
        slot_no: int = reply.body["last_updated"]["slot_no"]
        return slot_no


class Partners:
    """A client that creates admin keys."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def made(self) -> int:
        """The status of creating one more."""
        body = {"entity_name": "ACME"}
        return (await self._client.call("POST", "/v1/admin/admin-keys", BOOTSTRAP_KEY, json=body)).status

    async def refusals(self) -> int:
        """The number of refusals before ten successes in a row. Only 503 counts as a refusal."""
        refused = in_a_row = 0
        async with asyncio.timeout(PATIENCE_S):
            while in_a_row < 10:
                status = await self.made()
                assert status in {201, 503}
                in_a_row = in_a_row + 1 if status == 201 else 0
                refused += status == 503
        return refused


def left_out(number: int) -> str:
    """The beginning of the reason for a replica, by its position in READ_DATABASE_URL."""
    return f"replica {number} of READ_DATABASE_URL is left out: "


async def takes_in(client: Client, *numbers: int) -> None:
    """Wait until chain requests go to these replicas."""
    async with asyncio.timeout(PATIENCE_S):
        while any(reason.startswith(left_out(number)) for reason in await reasons(client) for number in numbers):
            await asyncio.sleep(0.05)


async def leaves_out(client: Client, number: int) -> None:
    """Wait until no chain request goes to this replica."""
    async with asyncio.timeout(PATIENCE_S):
        while not any(reason.startswith(left_out(number)) for reason in await reasons(client)):
            await asyncio.sleep(0.05)


async def reasons(client: Client) -> list[str]:
    """The reasons of /ready."""
    reply = await client.get("/ready")
    assert reply.status == 200
    found: list[str] = reply.body["data"]["reasons"]
    return found


def in_database(url: str, name: str) -> str:
    """The address of another database of the same server."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[OwnPostgres]]:
    """A primary and two streaming replicas. A failover changes their order."""
    with clusters("primary", "first", "second") as made:
        yield made


@pytest.fixture
def servers(cluster: list[OwnPostgres]) -> Iterator[list[OwnPostgres]]:
    """The same for one test, which may change them freely."""
    yield cluster
    cluster[:] = made_whole(cluster)


@pytest.fixture
async def site(
    servers: list[OwnPostgres],
    environment: dict[str, str],
    no_aggregator: None,  # noqa: ARG001
) -> AsyncIterator[Site]:
    """A separate database with a chain of one block, replicated to the replicas."""
    name = f"test_{uuid4().hex}"
    await asyncio.to_thread(servers[0].execute, f"CREATE DATABASE {name}")
    url = in_database(servers[0].url, name)
    db = await database.connect(url, PREVIEW)
    await schema.migrate(db)
    (key, *_) = await issue_keys(url, "preview", 1)
    ours = {"DATABASE_URL": url, "BOOTSTRAP_ADMIN_KEY": BOOTSTRAP_KEY}
    made = Site(servers, name, environment | ours, key, Chain(db))
    await made.block()
    for replica in servers[1:]:
        await asyncio.to_thread(replica.catches_up_with, servers[0])
    yield made
    db.terminate()


@pytest.fixture
def no_aggregator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.usage.queue._LAST_LOOKS_S", 0)


async def test_an_api_starts_without_its_replicas_and_uses_them_when_they_run(site: Site) -> None:
    site.first.kill()
    site.second.kill()
    async with site.api(site.first, site.second) as client:
        assert await site.tip(client) == site.slot_no
        await asyncio.to_thread(site.first.start)
        await takes_in(client, 1)
        for _ in range(4):
            await site.tip(client)
        used = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'ledgerline preview%'"
        assert (await asyncio.to_thread(site.first.execute, used))[0][0] > 0


async def test_a_frozen_replica_delays_no_request(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    async with site.api(site.first, site.second) as client:
        for _ in range(8):
            await site.tip(client)
        site.first.freeze()
        tips = await asyncio.gather(*(site.tip(client) for _ in range(16)))
        assert tips == [site.slot_no] * 16
        await leaves_out(client, 1)
        assert left_out(1) + "it does not answer" in await reasons(client), "no address on an open path"
        logged = capsys.readouterr().out
        assert "replica.left_out" in logged
        assert site.first.host in logged
        for _ in range(20):
            assert await site.tip(client) == site.slot_no
        assert "replica.failed" not in capsys.readouterr().out, "no request is given to it"
        site.second.freeze()
        assert await site.tip(client) == site.slot_no, "the primary answers"
        site.first.thaw()
        site.second.thaw()


async def test_what_is_asked_again_is_not_older_while_the_chain_forks(site: Site) -> None:
    writer = asked_again.Writer(site.chain, site.slot_no)

    async def disturb() -> None:
        await (writer.fork() if random.random() < 0.4 else writer.block())

    async with site.api() as first, site.api() as second:
        saw = await asked_again.run((first, second), await site.keys(), writer, disturb, ASKING_S)
    assert saw.answers["200"] > 0
    assert not saw.answers["503"], "nothing fails"


async def test_what_is_asked_again_is_not_older_while_replicas_are_behind(site: Site) -> None:
    writer = asked_again.Writer(site.chain, site.slot_no)

    async def disturb() -> None:
        replica = random.choice((site.first, site.second))
        await asyncio.to_thread(replica.execute, f"SELECT pg_wal_replay_{random.choice(('pause', 'resume'))}()")
        await writer.block()

    async with site.api(site.first, site.second) as client:
        saw = await asked_again.run([client], await site.keys(), writer, disturb, ASKING_S)
    assert saw.answers["200"] > 0
    for replica in (site.first, site.second):
        await asyncio.to_thread(replica.execute, "SELECT pg_wal_replay_resume()")


async def test_what_is_asked_again_is_not_older_while_the_primary_is_killed(site: Site) -> None:
    writer = asked_again.Writer(site.chain, site.slot_no)

    async def disturb() -> None:
        if random.random() < 0.1:
            site.primary.kill()
            await asyncio.to_thread(site.primary.start)
            site.chain._db = await database.connect(site.environment["DATABASE_URL"], PREVIEW)
        await writer.block()

    async with site.api() as first, site.api() as second:
        saw = await asked_again.run((first, second), await site.keys(), writer, disturb, ASKING_S)
    assert saw.answers["200"] > 0


async def test_the_tip_in_answers_never_goes_back(site: Site) -> None:
    async with site.api(site.first, site.second) as client:
        await asyncio.to_thread(site.second.execute, "SELECT pg_wal_replay_pause()")
        newest = 0
        for _ in range(10):
            await site.block()
            await asyncio.to_thread(site.first.catches_up_with, site.primary)
            for tip in [await site.tip(client) for _ in range(6)]:
                assert tip >= newest
                newest = tip
        assert newest == site.slot_no


async def latest(client: Client, site: Site) -> int:
    """The last block's slot, in an answer without its tip, like those of the façade."""
    slot_no: int = (await client.get(f"{ROOT}/blocks/latest", site.key)).body["slot"]
    return slot_no


async def is_looked_at(*servers: OwnPostgres) -> None:
    """Wait until the API has seen the tips that these servers have now."""
    for server in servers:
        await a_look_begins(server)
        await a_look_begins(server)  # so the one before has ended


async def a_look_begins(server: OwnPostgres) -> None:
    """Wait until the API begins another look at a server's tips."""
    (now,) = (await asyncio.to_thread(server.execute, "SELECT clock_timestamp()::text"))[0]
    begun = f"""
        SELECT FROM pg_stat_activity
        WHERE application_name LIKE 'ledgerline%' AND query LIKE '%chain_mainnet.tip%' AND query_start > '{now}'
    """
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(server.execute, begun):
            await asyncio.sleep(0.05)


async def test_an_answer_without_a_tip_does_not_go_back_either(site: Site) -> None:
    async with site.api(site.first, site.second) as client:
        await asyncio.to_thread(site.second.execute, "SELECT pg_wal_replay_pause()")
        for _ in range(5):
            await site.block()
            await asyncio.to_thread(site.first.catches_up_with, site.primary)
            await is_looked_at(site.primary, site.first)
            slots = [await latest(client, site) for _ in range(8)]
            assert slots == sorted(slots), "the other replica may answer until this one does"
            assert slots[-1] == site.slot_no


async def test_replicas_answer_again_after_a_rollback_that_no_answer_showed(site: Site) -> None:
    async with site.api(site.first, site.second) as client:

        async def is_told() -> None:
            for replica in (site.first, site.second):
                await asyncio.to_thread(replica.catches_up_with, site.primary)
            await is_looked_at(site.primary, site.first, site.second)
            assert await latest(client, site) == site.slot_no

        await site.block()
        await is_told()
        site.slot_no -= 15
        await site.chain.append(site.slot_no)
        await is_told()
        site.primary.freeze()
        assert await latest(client, site) == site.slot_no
        site.primary.thaw()


class Sent(Tx, frozen=True, kw_only=True):
    """A transaction with a real hash."""

    tx_hash: str

    @property
    def hash(self) -> bytes:
        return bytes.fromhex(self.tx_hash)


async def test_a_transaction_submitted_a_moment_ago_is_known_before_replicas_have_it(site: Site) -> None:
    db = await database.connect(site.environment["DATABASE_URL"])
    await grant(db, "submit", "transactions")
    await db.close()
    chain = Generated(Options(seed=3, density=1, eras=(("conway", 0),), faucet=True), 5)
    payment = Wallet.of_faucet().payment(
        next(iter(chain.ledger.wallets[faucet.address(0)])), faucet.OUTPUT_LOVELACE, ADA
    )
    async with NodeServer(chain) as node, site.api(site.first, site.second, OGMIOS_URL_PREVIEW=node.url) as client:
        for replica in (site.first, site.second):
            await asyncio.to_thread(replica.execute, "SELECT pg_wal_replay_pause()")
        reply = await client.call("POST", SUBMIT, site.key, json={"cbor": payment.to_cbor_hex()})
        assert reply.status == 200, reply.body
        path = f"/v1/tx/submitted/{reply.body['data']['tx_hash']}"
        assert [(await client.get(path, site.key)).body["data"]["state"] for _ in range(4)] == ["pending"] * 4
        site.slot_no += 10
        await site.chain.append(site.slot_no, Sent(name="sent", tx_hash=id_of(payment)))
        assert [(await client.get(path, site.key)).body["data"]["state"] for _ in range(4)] == ["in_block"] * 4
        assert [await site.tip(client) for _ in range(4)] == [site.slot_no] * 4
        for replica in (site.first, site.second):
            await asyncio.to_thread(replica.execute, "SELECT pg_wal_replay_resume()")


async def test_a_rolled_back_chain_is_shown(site: Site) -> None:
    async with site.api(site.first, site.second) as client:
        await site.block()
        await asyncio.to_thread(site.first.catches_up_with, site.primary)
        assert max([await site.tip(client) for _ in range(6)]) == site.slot_no
        site.slot_no -= 15
        await site.chain.append(site.slot_no)
        for replica in (site.first, site.second):
            await asyncio.to_thread(replica.catches_up_with, site.primary)
        assert [await site.tip(client) for _ in range(6)] == [site.slot_no] * 6


async def test_a_replica_that_lags_is_left_out_and_ready_names_it(site: Site) -> None:
    writer = await database.connect(site.environment["DATABASE_URL"], PREVIEW)
    assert await database.try_to_lead(writer, PREVIEW)
    assert await leader.beat(writer, PREVIEW, writer.get_server_pid(), [], leader.Report(node_connected=True))
    async with site.api(site.second, REPLICA_LAG_S="1", READY_LAG_S="999999999") as client:
        ready = await client.get("/ready")
        assert (ready.status, ready.body["data"]["status"]) == (200, "ready")
        await asyncio.to_thread(site.second.execute, "SELECT pg_wal_replay_pause()")
        await site.block()
        await leaves_out(client, 1)
        (reason,) = await reasons(client)
        assert reason.startswith(f"{left_out(1)}it has lacked blocks for")
        assert await site.tip(client) == site.slot_no
        metric = f'ledgerline_replica_left_out{{replica="{site.second.host}"}} 1.0'
        assert metric in (await client.get("/metrics")).body.decode()
        await asyncio.to_thread(site.second.execute, "SELECT pg_wal_replay_resume()")
        await takes_in(client, 1)
        assert (await client.get("/ready")).body["data"]["status"] == "ready"
    await writer.close()


async def test_admin_calls_find_the_new_primary(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    async with site.partners(site.first, site.primary, site.second) as partners:
        await asyncio.to_thread(site.primary.kill)
        assert await partners.made() == 503
        await asyncio.to_thread(site.first.promote)
        await partners.refusals()
    assert "Traceback" not in caplog.text


async def test_a_frozen_primary_is_replaced_by_the_new_one(site: Site) -> None:
    async with site.partners(site.primary, site.first) as partners:
        await asyncio.to_thread(site.primary.freeze)
        await asyncio.to_thread(site.first.promote)
        looked_at = "SELECT FROM pg_stat_activity WHERE application_name LIKE 'ledgerline%' AND query LIKE '%tip%'"
        async with asyncio.timeout(PATIENCE_S):
            while not await asyncio.to_thread(site.first.execute, looked_at):
                await asyncio.sleep(0.05)
        took = OwnTime()
        assert [await partners.made() for _ in range(10)] == [201] * 10
        assert took.seconds < ADMIN_ANSWER_WITHIN_S / 2, "less than one that waits for the frozen primary"
        site.primary.thaw()


async def test_connections_to_a_demoted_primary_are_dropped(site: Site) -> None:
    async with site.partners(site.primary, site.first) as partners:
        await asyncio.to_thread(site.first.promote)
        await asyncio.to_thread(site.primary.execute, "ALTER SYSTEM SET default_transaction_read_only = on")
        await asyncio.to_thread(site.primary.execute, "SELECT pg_reload_conf()")
        async with asyncio.timeout(PATIENCE_S):
            shown = "SHOW default_transaction_read_only"
            while (await asyncio.to_thread(site.primary.execute, shown))[0][0] != "on":
                await asyncio.sleep(0.05)
        async with asyncio.timeout(PATIENCE_S):
            while not (refused := await partners.refusals()):
                pass  # an existing session reads the setting later than a new one
        assert refused <= POOLS, "one connection of a pool finds out for all of them"
