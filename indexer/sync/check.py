"""`python -m indexer check`: try the servers of an indexer."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import asyncpg

from indexer.blocks import effects, eras, genesis, node_warnings, packed_block
from indexer.ogmios import connection as ogmios
from indexer.ogmios.connection import Ogmios, RollForward
from indexer.store import position
from shared import database, trials
from shared.ledger import Point
from shared.network import Network
from shared.servers import Servers
from shared.trials import Trial

_BLOCKS_READ = 300
_READ_WITHIN_S = 3.0


async def servers(running: Servers, nodes: Mapping[Network, Sequence[str]]) -> int:
    """Try Postgres and the Ogmios of each network, and print the results; returns the exit status."""
    tried = [("postgres", partial(trials.postgres, url=running.database_url))]
    tried += [
        (
            trials.node_name(network.name, number, urls),
            partial(_ogmios, network=network, url=url, database_url=running.database_url),
        )
        for network, urls in nodes.items()
        for number, url in enumerate(urls, 1)
    ]
    return await trials.run(tried)


async def _ogmios(trial: Trial, network: Network, url: str, database_url: str) -> None:
    await trials.ogmios(trial, url)
    node = await ogmios.connect(url)
    try:
        _, tip = await node.intersect([])
        await trial.round_trip(lambda: node.call("queryNetwork/startTime", str))
        if tip is not None:
            trial.tip(network, tip.slot)
        await eras.check(node, network)
        await genesis.load(node, network)
        trial.facts["network"] = f"{network.name}, with its genesis and eras"
        await _try_flags(trial, node, network, await _start(database_url, network))
    finally:
        await node.close()


async def _start(database_url: str, network: Network) -> list[Point]:
    """Points of the index to read from, far enough behind the tip to find transactions."""
    try:
        db = await database.connect(database_url, network)
    except (OSError, asyncpg.PostgresError):
        return []
    try:
        points = await position.points(db)
    except asyncpg.UndefinedTableError:
        return []
    finally:
        db.terminate()
    return points[10:]


async def _try_flags(trial: Trial, node: Ogmios, network: Network, points: list[Point]) -> None:
    """Read blocks until their transactions show which flags Ogmios has."""
    await node.intersect(points)
    seen: dict[str, bool | None] = dict.fromkeys(node_warnings.COSTS)
    blocks = 0
    try:
        async with asyncio.timeout(_READ_WITHIN_S):
            async for message in node.messages():
                if isinstance(message, RollForward):
                    blocks += 1
                    of_block = packed_block.pack(effects.of_block(message.block), message.tip, network).observations
                    for flag, is_set in node_warnings.flags_set(of_block).items():
                        seen[flag] = is_set if seen[flag] is None else seen[flag]
                if None not in seen.values() or blocks == _BLOCKS_READ:
                    break
    except TimeoutError:
        pass  # the node is at its tip, or slow: the flags seen so far are reported
    for flag, cost in node_warnings.COSTS.items():
        is_set = seen[flag]
        unknown = f"not seen in {blocks} blocks"
        trial.facts[flag.partition(" ")[0]] = unknown if is_set is None else "yes" if is_set else "no"
        if is_set is False:
            trial.defects.append(f"{flag} is missing: {cost}")
