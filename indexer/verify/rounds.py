"""Rounds of verify: each runs the requested checks and records the result."""

import asyncio
import re

import aiohttp
import asyncpg
import msgspec
import structlog

from indexer.blocks import eras, genesis
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.verify import readers, record
from indexer.verify.node import against_node, ledger_state
from indexer.verify.record import Verification
from indexer.verify.results import CheckResult, NotComplete, Progress
from indexer.verify.tables import votes
from shared import database, lifecycle, schema
from shared.network import Network

log = structlog.get_logger()

_AGAIN_AFTER_S = 60.0
"""The pause after a round that failed."""

INCOMPLETE = (NotComplete, readers.HelperEnded, against_node.NothingCommon)
"""Errors after which a round proves nothing; their message is one line for the operator."""

_PLAIN = (
    *INCOMPLETE,
    *lifecycle.WAITED_FOR,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    aiohttp.ClientError,
    ogmios.Refused,
    frames.Unreadable,
)
"""Errors that are logged without a traceback."""


class VerifyOptions(msgspec.Struct, frozen=True):
    """What to verify. With `connect`, `sample` percent of the blocks from `from_slot` on are compared with a node."""

    network: Network
    connect: ogmios.Connect | None
    sample: float
    from_slot: int


class Round(msgspec.Struct, frozen=True):
    """The checks that found differences, and lines that say what was compared."""

    verification: Verification
    results: list[CheckResult]
    said: list[str]


def parse_duration(text: str) -> float:
    """The seconds of a duration like 24h. Raises ValueError, with what was expected."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text)
    if found is None:
        raise ValueError(f"{text!r}, expected a number and s, m, h or d, like 24h")
    return int(found[1]) * {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}[found[2]]


async def once(db: asyncpg.Connection, database_url: str, options: VerifyOptions, tell: Progress) -> Round:
    """Run and record one round. Raises INCOMPLETE, WrongNetwork, WrongSchema and the errors of the servers."""
    # NOTE: not at the top, since only this needs numpy, which takes 0.1 s of CPU and 11 MB.
    from indexer.verify import run

    network, node_blocks, said = options.network, None, list[str]()
    began_at = await record.now(db)
    if options.connect is not None:
        await _try_node(options.connect, network)
    tip, results = await run.verify(db, database_url, network, tell)
    if options.connect is not None and any(result.check == "schema" for result in results):
        said = [f"{network.name}: not compared with the node, since the schema differs"]
    elif options.connect is not None:
        node_blocks, of_node, said = await _compare_with_node(db, options.connect, options, tell)
        results = results + of_node
    differing = [result.check for result in results]
    verification = Verification(began_at, tip.slot_no, tip.block_no, node_blocks, differing)
    await record.keep(db, network, verification)
    return Round(verification, results, said)


async def repeat(database_url: str, options: VerifyOptions, every_s: float, stop: asyncio.Event) -> None:
    """Run a round every `every_s` seconds, from start to start, until `stop` is set.

    A round that fails is repeated after a pause. The record of the last round survives restarts. Raises WrongSchema and
    WrongNetwork.
    """
    while not stop.is_set():
        try:
            pause_s = await _round(database_url, options, every_s, stop)
        except lifecycle.Stopped:
            return
        except (schema.WrongSchema, genesis.WrongNetwork):
            raise
        except Exception as fault:
            pause_s = min(every_s, _AGAIN_AFTER_S)
            log.warning(
                "verify.failed",
                network=options.network.name,
                cause=f"{type(fault).__name__}: {fault}",
                again_in_s=pause_s,
                exc_info=None if isinstance(fault, _PLAIN) else fault,
            )
        await lifecycle.sleep(pause_s, stop)


async def _round(database_url: str, options: VerifyOptions, every_s: float, stop: asyncio.Event) -> float:
    """Run a round if it is due. Returns the seconds until the next one is due."""
    db = await lifecycle.wait_for(
        "postgres", lambda: database.connect(database_url, options.network), stop, lifecycle.WAITED_FOR
    )

    async def work() -> float:
        await schema.migrate(db)
        due_s = await record.due_in_s(db, options.network, every_s)
        if due_s:
            return due_s
        _log(options.network, await once(db, database_url, options, lambda *_: None))
        return await record.due_in_s(db, options.network, every_s)

    try:
        # NOTE: terminate, then cancel: a cancelled transaction waits for Postgres, which may hang.
        return await lifecycle.unless_stopped(work(), stop, on_stop=db.terminate)
    finally:
        db.terminate()


def _log(network: Network, outcome: Round) -> None:
    done = outcome.verification
    fields = {
        "network": network.name,
        "slot_no": done.slot_no,
        "block_no": done.block_no,
        "node_blocks": done.node_blocks,
        "differing": done.differing,
        "compared": outcome.said,
    }
    if not outcome.results:
        log.info("verify.matched", **fields)
        return
    differences = [f"{result.check}: {each}" for result in outcome.results for each in result.differences]
    log.error("verify.differs", **fields, differences=differences)


async def _try_node(connect: ogmios.Connect, network: Network) -> None:
    """Raise the errors of an unsuitable node now, before hours of other checks."""
    node = await connect()
    try:
        await eras.check(node, network)
        await genesis.load(node, network)
    finally:
        await node.close()


async def _compare_with_node(
    db: asyncpg.Connection, connect: ogmios.Connect, options: VerifyOptions, tell: Progress
) -> tuple[int, list[CheckResult], list[str]]:
    """The number of compared blocks, the checks that found differences, and what was compared, in words."""
    name = options.network.name
    compared = await against_node.compare(
        db, connect, options.network, tell, sample=options.sample, from_slot=options.from_slot
    )
    left_out = f"; {against_node.in_words(compared.left_out)}" if compared.left_out else ""
    node = await connect()
    try:
        of_ledger = await ledger_state.compare(db, node, options.network, options.sample)
        of_fork = await votes.check_fork(db, node, options.network)
    finally:
        await node.close()
    said = [
        f"{name}: {compared.blocks} of {compared.indexed_blocks} blocks, with {compared.transactions} "
        f"transactions, compared with the node{left_out}",
        f"{name}: the node's ledger {ledger_state.in_words(of_ledger)}",
    ]
    results = [*ledger_state.results(of_ledger or []), of_fork]
    differing = [result for result in results if result.differences]
    return compared.blocks, compared.results + differing, said
