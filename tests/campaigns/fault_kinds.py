"""The kinds of fault. Each returns when its cause is over, usually before the service has recovered."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec
import psutil
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff

from shared.servers.embedded import Postgres, Valkey
from tests.campaigns import world as worlds
from tests.campaigns.campaign import READY_WITHIN_S, Campaign
from tests.campaigns.world import Host, ServiceProcess, World, until

HUNG_WITHIN_S = 30.0  # a leader counts as hung 20 s after its last heartbeat
LEAST_RECORD_BYTES = 24  # no record of a spool is smaller: an upper bound for the number of lost records
MAX_HEADER_BYTES = 64  # offsets may count from the end of a header


async def kill_leader(campaign: Campaign) -> None:
    """The standby takes over, the signals recover, and the killed indexer becomes the standby."""
    leader = await _leader(campaign)
    leader.process.kill()
    await campaign.signals("an indexer runs again", lambda: _indexer_runs(campaign, True))
    leader.start()


async def stop_leader_for_long(campaign: Campaign) -> None:
    """It is reported as not running, or replaced before; a standby takes over although the old connection is open."""
    leader = await _leader(campaign)
    leader.signal(signal.SIGSTOP)
    await asyncio.sleep(2 * worlds.NEW_BLOCK_EVERY_S)  # for blocks that were still on their way
    slot = campaign.world.chain.blocks[-1].slot

    async def replaced() -> bool:
        return await _indexer_runs(campaign, True) and await _index_is_beyond(campaign, slot)

    async def reported() -> bool:
        return await _indexer_runs(campaign, False) or await replaced()

    try:
        await campaign.signals("the stopped leader is reported as not running, or replaced", reported, HUNG_WITHIN_S)
        await campaign.signals("a standby has taken over", replaced, HUNG_WITHIN_S)
    finally:
        leader.signal(signal.SIGCONT)


async def stop_indexer(campaign: Campaign) -> None:
    """Stop an indexer for less time than a standby waits."""
    await _stop(campaign, campaign.random.choice(campaign.world.indexers), 3)


async def restart_indexer(campaign: Campaign) -> None:
    """With SIGTERM."""
    await campaign.random.choice(campaign.world.indexers).restart()


async def kill_api(campaign: Campaign) -> None:
    """Kill a host, which is restarted immediately."""
    part = campaign.random.choice(campaign.world.hosts).part
    part.process.kill()
    part.start()
    campaign.api_ended()


async def stop_api(campaign: Campaign) -> None:
    """Stop a host, so that it does not answer for a while."""
    await _stop(campaign, campaign.random.choice(campaign.world.hosts).part, 3)


async def restart_api(campaign: Campaign) -> None:
    """With SIGTERM."""
    await campaign.random.choice(campaign.world.hosts).part.restart()
    campaign.api_ended()


async def kill_aggregator(campaign: Campaign) -> None:
    """Kill the aggregator and all its processes."""
    campaign.world.aggregator.process.kill()
    campaign.world.aggregator.start()


async def stop_aggregator(campaign: Campaign) -> None:
    """Stop the aggregator long enough for the signals to report the age of the waiting usage."""
    part = campaign.world.aggregator
    part.signal(signal.SIGSTOP)
    try:
        for host in campaign.world.hosts:
            what = f"the usage lag of {host.part.name} grows"
            await campaign.signals(what, lambda host=host: _lags(campaign, host))  # type: ignore[misc]
    finally:
        part.signal(signal.SIGCONT)


async def restart_aggregator(campaign: Campaign) -> None:
    """With SIGTERM."""
    await campaign.world.aggregator.restart()


async def kill_postgres(campaign: Campaign) -> None:
    """Its supervisor restarts it."""
    _kill_server(campaign, Postgres, signal.SIGKILL)


async def restart_postgres(campaign: Campaign) -> None:
    """Fast shutdown: every session is ended."""
    _kill_server(campaign, Postgres, signal.SIGINT)


async def freeze_postgres(campaign: Campaign) -> None:
    """Stop all its processes: connections stay open without an answer."""
    stopped = campaign.world.server_processes(Postgres)
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    try:
        await _everywhere(campaign, 503)
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()


async def terminate_sessions(campaign: Campaign) -> None:
    """Terminate some or all of our sessions."""
    part = campaign.random.choice((0.2, 0.5, 1.0))
    await campaign.world.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name LIKE 'ledgerline%' AND random() < $1",
        part,
    )


async def kill_valkey(campaign: Campaign) -> None:
    """Its supervisor restarts it, possibly without its last second."""
    campaign.valkey_is_away()
    _kill_server(campaign, Valkey, signal.SIGKILL)
    campaign.valkey_forgot()


async def freeze_valkey(campaign: Campaign) -> None:
    """Each process limits rates itself, usage waits on disk, and /ready reports both."""
    stopped = campaign.world.server_processes(Valkey)
    campaign.valkey_is_away()
    for process in stopped:
        process.suspend()
    try:
        await _everywhere(campaign, 200, "degraded", "queue")
    finally:
        for process in stopped:
            process.resume()
        campaign.valkey_is_away()


async def flush_valkey(campaign: Campaign) -> None:
    """Empty Valkey, as after a failover to an empty server."""
    # NOTE: after a kill it refuses commands until it has loaded its data.
    patient = Retry(ConstantBackoff(0.1), 100)
    async with redis.asyncio.Redis.from_url(campaign.world.redis_url, retry=patient) as client:
        await client.flushall()
    campaign.valkey_forgot()


async def freeze_sockets_to_postgres(campaign: Campaign) -> None:
    """Freeze the sockets of one host; the other continues."""
    frozen, other = campaign.random.sample(campaign.world.hosts, 2)
    frozen.postgres.freeze()
    try:
        await campaign.signals(f"/ready of {frozen.part.name} is 503", _says(campaign, frozen, 503))
        await campaign.signals(f"/ready of {other.part.name} stays", _says(campaign, other, 200, '"ready"'))
    finally:
        frozen.postgres.thaw()


async def freeze_sockets_to_valkey(campaign: Campaign) -> None:
    """Freeze the sockets of one host."""
    host = campaign.random.choice(campaign.world.hosts)
    campaign.valkey_is_away()
    host.valkey.freeze()
    try:
        what = f"/ready of {host.part.name} is degraded by its queue"
        await campaign.signals(what, _says(campaign, host, 200, "degraded", "queue"))
    finally:
        host.valkey.thaw()
        campaign.valkey_is_away()


async def cut_sockets(campaign: Campaign) -> None:
    """Break the connections of one host, and refuse new ones for a moment."""
    host = campaign.random.choice(campaign.world.hosts)
    relay = campaign.random.choice((host.postgres, host.valkey))
    if relay is host.valkey:
        campaign.valkey_is_away()
    await asyncio.to_thread(relay.close)
    await asyncio.sleep(campaign.random.uniform(0, 1))
    await asyncio.to_thread(relay.open)


async def drop_node(campaign: Campaign) -> None:
    """Ogmios breaks its connections, and a fork follows."""
    campaign.world.node.do(campaign.world.node.server.drop_connections)
    await asyncio.to_thread(campaign.world.fork, campaign.random)


async def fill_disk(campaign: Campaign) -> None:
    """Fill the small file system that has the spools of the second host: requests that can't be counted are refused.

    Confirmed spools are deleted meanwhile, so the freed space is filled too.
    """
    host = campaign.world.hosts[1]
    path = host.data_dir / "ballast"
    says = _says(campaign, host, 503, "recorded")
    try:
        with path.open("ab", buffering=0) as ballast:

            async def filled() -> bool:
                with suppress(OSError):
                    while True:
                        ballast.write(bytes(4096))
                return await says()

            await campaign.signals("/ready says that usage can't be recorded", filled)
    finally:
        path.unlink()


async def lose_power(campaign: Campaign) -> None:
    """A host ends, and a part of its spools that is in no batch is cut off or zeroed.

    The records in a batch were synced before it, so a power loss can't lose them. The aggregator is stopped during
    the fault: some batches are in the queue, and none moves from there to the table unseen.
    """
    host, aggregator = campaign.random.choice(campaign.world.hosts), campaign.world.aggregator
    aggregator.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(campaign.random.uniform(0, 2))
        host.part.process.kill()
        named = await _named_bytes(campaign.world)
        for spool in (host.data_dir / "usage").glob("*.spool"):
            size = spool.stat().st_size
            lost = campaign.random.randint(0, max(0, size - MAX_HEADER_BYTES - named.get(spool.stem, 0)))
            if lost:
                campaign.lost_at_most += lost // LEAST_RECORD_BYTES + 1
                with spool.open("r+b") as file:
                    file.truncate(size - lost)
                    if campaign.random.random() < 0.5:
                        file.truncate(size)
    finally:
        aggregator.signal(signal.SIGCONT)
    host.part.start()
    campaign.api_ended()


async def _named_bytes(world: World) -> dict[str, int]:
    """The offset of each spool up to which there are batches, in the table or in the queue."""
    rows = await world.rows("SELECT spool, next_offset FROM partner.usage_batch")
    named = {row["spool"]: int(row["next_offset"]) for row in rows}
    async with redis.asyncio.Redis.from_url(world.redis_url) as client:
        async for key in client.scan_iter("*usage.msgs"):
            for message in (await client.hgetall(key)).values():
                batch = msgspec.json.decode(message)["args"][0]
                named[batch["spool"]] = max(named.get(batch["spool"], 0), batch["end"])
    return named


FAULTS: dict[Callable[[Campaign], Awaitable[None]], int] = {
    kill_leader: 6,
    stop_leader_for_long: 1,
    stop_indexer: 3,
    restart_indexer: 3,
    kill_api: 6,
    stop_api: 3,
    restart_api: 3,
    kill_aggregator: 6,
    stop_aggregator: 2,
    restart_aggregator: 2,
    kill_postgres: 5,
    restart_postgres: 4,
    freeze_postgres: 2,
    terminate_sessions: 8,
    kill_valkey: 5,
    freeze_valkey: 2,
    flush_valkey: 5,
    freeze_sockets_to_postgres: 2,
    freeze_sockets_to_valkey: 2,
    cut_sockets: 5,
    drop_node: 8,
    fill_disk: 3,
    lose_power: 5,
}


async def _leader(campaign: Campaign) -> ServiceProcess:
    await until("an indexer leads", lambda: _found(campaign.world.leader), READY_WITHIN_S)
    leader = campaign.world.leader()
    return campaign.world.indexers[0] if leader is None else leader


async def _found(look: Callable[[], Any]) -> bool:
    return look() is not None


async def _indexer_runs(campaign: Campaign, runs: bool) -> bool:
    """Whether the metrics of every host report that an indexer runs (or none, if not `runs`)."""
    name = f'ledgerline_indexer_running{{network="{worlds.NETWORK}"}}'
    shown = [await campaign.world.metrics(host) for host in campaign.world.hosts]
    return all(metrics is not None and metrics.get(name) == float(runs) for metrics in shown)


async def _index_is_beyond(campaign: Campaign, slot: int) -> bool:
    name = f'ledgerline_chain_slot{{network="{worlds.NETWORK}"}}'
    shown = [await campaign.world.metrics(host) for host in campaign.world.hosts]
    return all(metrics is not None and metrics.get(name, 0) > slot for metrics in shown)


async def _lags(campaign: Campaign, host: Host) -> bool:
    metrics = await campaign.world.metrics(host)
    return metrics is not None and metrics.get("ledgerline_usage_lag_seconds", 0) > 3


async def _stop(campaign: Campaign, part: ServiceProcess, longest_s: float) -> None:
    part.signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(campaign.random.uniform(0.2, longest_s))
    finally:
        part.signal(signal.SIGCONT)


def _kill_server(campaign: Campaign, kind: type[Postgres] | type[Valkey], number: signal.Signals) -> None:
    pid = kind(campaign.world.servers_dir).pid()
    if pid is not None:
        os.kill(pid, number)


def _says(campaign: Campaign, host: Host, status: int, *words: str) -> Callable[[], Awaitable[bool]]:
    async def said() -> bool:
        found, body = await campaign.world.ready(host)
        text = msgspec.json.encode(body).decode()
        return found == status and all(word in text for word in words)

    return said


async def _everywhere(campaign: Campaign, status: int, *words: str) -> None:
    """Expect this status and these words from /ready of both hosts."""
    for host in campaign.world.hosts:
        what = f"/ready of {host.part.name} says {status} {' '.join(words)}"
        await campaign.signals(what, _says(campaign, host, status, *words))
