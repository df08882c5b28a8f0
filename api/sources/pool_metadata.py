"""Fetch the metadata of pools (CIP-6) in the background of the usage aggregator, if POOL_METADATA is on.

Every minute one of the aggregator's processes takes a turn: it reads the latest registration of each pool, and adds
those with a URL and a hash that are not in the table yet. All processes fetch what is due, a few documents at a time. A
document is fetched once for each pair of URL and hash. After a failure the next attempt follows after a pause that
doubles up to a day, as in cardano-db-sync (OffChain/FetchQueue.hs).

The table is not part of a chain, so a rollback or a resync leaves it as it is: rows of registrations that are gone are
kept for a while, and found again by their keys. docs/decisions/0071-pool-metadata-are-fetched-apart.md has the reasons.
"""

import asyncio
import random
from collections.abc import Collection, Sequence
from pathlib import Path

import aiohttp
import asyncpg
import msgspec
import structlog

from api.sources import egress, pool_document
from api.sources.egress import Egress
from api.sources.pool_document import Failure, FailureCode
from shared import database, packed, pool_list, schema, sql
from shared.network import NETWORKS, Network, by_id

log = structlog.get_logger()

TURN_EVERY_S, LOOK_EVERY_S = 60.0, 15.0
MOST_ROWS = 20_000
"""For each network: rows of registered metadata, and as many of replaced ones. Mainnet has a few thousand pools."""

AT_ONCE = 8
WITHIN_S = 10.0
REDIRECTS = 5
FIRST_PAUSE_S, MAX_PAUSE_S = 120.0, 86_400.0
_CLAIMED_S = 300.0  # after which others try what a process that was killed has not finished
_READ_WITHIN_S = 10.0
_MAX_SOURCE, _MAX_REASON = 2_048, 300
_MOST_URL_BYTES = 128  # the ledger's limit
_JITTER = 0.1


class _Registration(msgspec.Struct, frozen=True):
    pool_id: bytes
    parameters: bytes


class Claim(msgspec.Struct, frozen=True):
    """A document to fetch: `attempts` have failed so far."""

    network_id: int
    hash: bytes
    url: bytes
    attempts: int


_sql = sql.beside(__file__)
_registrations = _sql.query("registrations", _Registration)
_take_turn = _sql.values("take_turn", bool)
_relist = _sql.command("relist")
_delist = _sql.command("delist")
_delisted = _sql.values("delisted", bytes)
_add = _sql.command("add")
_return = _sql.command("return")
_replace = _sql.command("replace")
_drop_replaced = _sql.command("drop_replaced")
_claim = _sql.query("claim", Claim)
_keep_content = _sql.command("keep_content")
_keep_failure = _sql.command("keep_failure")


async def run(database_url: str, *, fetches: bool, delisted: Path | None) -> None:
    """Keep the table up to date, until cancelled. Unless it `fetches`, only the operator's list is applied."""
    async with await database.create_pool(database_url, None, max_size=1) as pool, egress.opened() as out:
        while True:
            if await take_turn(pool, TURN_EVERY_S):
                await apply_list(pool, delisted)
                if fetches:
                    await register_all(pool, database_url)
            if fetches:
                await fetch_due(pool, out)
            await asyncio.sleep(LOOK_EVERY_S)


async def take_turn(pool: asyncpg.Pool, every_s: float) -> bool:
    """Whether it is this process' turn: one of all processes gets it, in each period."""
    async with pool.acquire() as db, schema.commit(db):
        return await _take_turn.one(db, every_s) is not None


async def apply_list(pool: asyncpg.Pool, path: Path | None) -> None:
    """Delist the pools of the operator's file, and no others. A file that can't be used now changes nothing."""
    try:
        pools = sorted(pool_list.read(path)) if path is not None else []
    except (OSError, pool_list.Unusable) as cause:
        log.warning("pool_metadata.list_unusable", path=str(path), cause=f"{type(cause).__name__}: {cause}")
        return
    async with pool.acquire() as db, schema.commit(db):
        await _relist.run(db, pools)
        await _delist.run(db, pools)


async def register_all(pool: asyncpg.Pool, database_url: str) -> None:
    """Bring the table's rows in line with the registrations of each network that is served from this database.

    Those of delisted pools are left out.
    """
    async with pool.acquire() as db:
        delisted = set(await _delisted.all(db))
    for network in NETWORKS:
        await register(pool, network, await registered(database_url, network, delisted))


async def registered(database_url: str, network: Network, delisted: Collection[bytes]) -> list[tuple[bytes, bytes]]:
    """Hash and URL of each pool's latest registration; empty if the network is not served."""
    async with (
        await database.create_pool(database_url, network, max_size=1, within_s=_READ_WITHIN_S) as chain,
        chain.acquire() as db,
    ):
        rows = await _registrations.all(db, MOST_ROWS)
    if len(rows) == MOST_ROWS:
        log.warning("pool_metadata.too_many", network=network.name, pools=MOST_ROWS)
    found: dict[tuple[bytes, bytes], None] = {}
    for row in rows:
        parameters = packed.unpack_pool_parameters(row.parameters)
        if row.pool_id in delisted or parameters.metadata_url is None or parameters.metadata_hash is None:
            continue
        url = parameters.metadata_url.encode()
        if len(url) <= _MOST_URL_BYTES:
            found[parameters.metadata_hash, url] = None
    return list(found)


async def register(pool: asyncpg.Pool, network: Network, found: Sequence[tuple[bytes, bytes]]) -> None:
    """Add the rows of new registrations, and mark those of registrations that are gone, to be dropped later."""
    if not found:  # perhaps only because the index begins again
        return
    columns = sql.columns(found)
    async with pool.acquire() as db, schema.commit(db):
        await _add.run(db, network.network_id, *columns)
        await _return.run(db, network.network_id, *columns)
        await _replace.run(db, network.network_id, *columns)
        await _drop_replaced.run(db, network.network_id, MOST_ROWS)


async def fetch_due(pool: asyncpg.Pool, out: Egress) -> int:
    """Fetch what is due now, until nothing is; returns how many documents were tried."""
    tried = 0
    while True:
        async with pool.acquire() as db, schema.commit(db):
            claims = await _claim.all(db, AT_ONCE, _CLAIMED_S)
        if not claims:
            return tried
        results = await asyncio.gather(*(fetch(out, claim.url, claim.hash) for claim in claims))
        async with pool.acquire() as db, schema.commit(db):
            for claim, result in zip(claims, results, strict=True):
                await _keep(db, claim, result)
        tried += len(claims)


async def fetch(out: Egress, url: bytes, registered_hash: bytes) -> egress.Reply | Failure:
    """The answer with the registered document, or why there is none."""
    try:
        reply = await _requested(out, url.decode())
        pool_document.checked(reply.body, registered_hash)
    except Failure as failure:
        return failure
    return reply


async def _requested(out: Egress, url: str) -> egress.Reply:
    """An answer with a document. Raises Failure."""
    try:
        reply = await out.send(
            "GET",
            url,
            within_s=WITHIN_S,
            most_bytes=pool_document.MOST_BYTES,
            redirects=REDIRECTS,
            headers={"Accept": "application/json"},
        )
    except egress.TooLong as cause:
        raise Failure("size_exceeded", f"the document has {cause}") from cause
    except TimeoutError as cause:
        raise Failure("connection_error", f"no answer within {WITHIN_S:.0f} s") from cause
    except (OSError, ValueError, aiohttp.ClientError) as cause:
        raise Failure("connection_error", f"{type(cause).__name__}: {cause}") from cause
    if reply.status != 200:
        raise Failure("http_response_error", f"the server answers with status {reply.status}")
    return reply


async def _keep(db: sql.Connection, claim: Claim, result: egress.Reply | Failure) -> None:
    key = claim.network_id, claim.hash, claim.url
    if isinstance(result, egress.Reply):
        await _keep_content.run(db, *key, result.body, _stored(result.url, _MAX_SOURCE))
        return
    pause_s = None if result.final else pause_after(claim.attempts)
    code: FailureCode = result.code
    await _keep_failure.run(db, *key, code, _stored(result.reason, _MAX_REASON), pause_s)
    log.info(
        "pool_metadata.not_fetched",
        network=by_id[claim.network_id].name,
        url=ascii(claim.url.decode()),  # a stranger wrote it: it may hold codes for the terminal
        code=code,
        cause=result.reason,
        again_in_s=pause_s,
    )


def pause_after(attempts: int) -> float:
    """Seconds until the next attempt, after that many failures and one more."""
    pause_s = FIRST_PAUSE_S
    for _ in range(attempts):
        pause_s = min(pause_s * 2, MAX_PAUSE_S)
        if pause_s == MAX_PAUSE_S:
            break
    return pause_s * random.uniform(1 - _JITTER, 1 + _JITTER)


def _stored(text: str, most: int) -> str:
    """Text that a column can hold."""
    return text.replace("\0", "").encode(errors="replace").decode()[:most]
