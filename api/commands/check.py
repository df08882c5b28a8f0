"""`python -m api check`: try the servers of the API and of the usage aggregator, and its nodes."""

import asyncio
import importlib
from functools import partial

import aiohttp
from redis.asyncio import Redis

from api.sources.node_addresses import NodeAddresses
from api.sources.nodes import NodeConnection
from api.sources.registry import NO_ENTRY_STATUSES
from shared import redis_url, trials
from shared.network import Network, by_name
from shared.servers import Servers
from shared.setting_forms import masked
from shared.settings import Settings
from shared.trials import Trial

_NO_SUBJECT = "00" * 28
"""An asset that no registry knows."""


async def servers(settings: Settings, running: Servers) -> int:
    """Try each server, and print the findings; returns the exit status."""
    named = [("postgres", partial(trials.postgres, url=running.database_url))]
    named += [
        (f"replica {number}", partial(trials.postgres, url=url, replica=True))
        for number, url in enumerate(settings.read_database_urls, 1)
    ]
    named.append(("valkey", partial(_valkey, url=running.redis_url)))
    if settings.ogmios_urls:
        importlib.import_module("ogmios.client")  # takes seconds, which are not the node's
    named += [
        (trials.node_name(name, number, urls), partial(_ogmios, network=by_name[name], url=url))
        for name, urls in settings.ogmios_urls.items()
        for number, url in enumerate(urls, 1)
    ]
    if settings.token_registry_url is not None:
        named.append(("token registry", partial(_registry, url=settings.token_registry_url)))
    return await trials.run(named)


async def _valkey(trial: Trial, url: str) -> None:
    trial.facts["address"] = masked(url).strip("'")
    async with Redis(connection_pool=redis_url.async_pool(url)) as client:
        info = await client.info("server")
        name = "valkey" if "valkey_version" in info else "redis"
        trial.facts["version"] = f"{name} {info.get(f'{name}_version', 'unknown')}"
        await trial.round_trip(client.ping)

        async def now_s() -> float:
            seconds, microseconds = await client.time()
            return float(seconds) + float(microseconds) / 1e6

        await trial.clock(now_s)
        await client.eval("return 1", 0)
        trial.facts["rights"] = "may run scripts"
        for option, expected in (("maxmemory-policy", "noeviction"), ("appendonly", "yes")):
            value = (await client.config_get(option)).get(option)
            trial.facts[option] = str(value)
            if value != expected:
                trial.defects.append(f"{option} is {value}, expected {expected}")


async def _ogmios(trial: Trial, network: Network, url: str) -> None:
    await trials.ogmios(trial, url)
    node = NodeConnection(NodeAddresses([url]))
    try:
        await trial.round_trip(lambda: asyncio.to_thread(node.tip_slot_no))
        began = await asyncio.to_thread(node.start_time)
        if began != network.start_time:
            trial.defects.append(f"its network began {began}, {network.name} began {network.start_time}")
            return
        trial.facts["network"] = f"{network.name}, by the time at which it began"
        slot_no = await asyncio.to_thread(node.tip_slot_no)
        if slot_no >= 0:
            trial.tip(network, slot_no)
    finally:
        node.close()


async def _registry(trial: Trial, url: str) -> None:
    trial.facts["address"] = masked(url).strip("'")

    async def ask() -> None:
        async with session.get(url.replace("{subject}", _NO_SUBJECT), allow_redirects=False) as response:
            trial.facts["status"] = str(response.status)

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        await trial.round_trip(ask)
    if trial.facts["status"] not in ("200", *map(str, NO_ENTRY_STATUSES)):
        expected = " or ".join(map(str, NO_ENTRY_STATUSES))
        trial.defects.append(f"status {trial.facts['status']} for an unknown subject, expected {expected}")
