"""Compare the index with its node: read blocks again, rebuild their rows, and compare these with the stored ones.

Only this can verify that blocks, transactions, sizes, metadata and certificates are those of the chain. The rest of
verify compares history with itself, and with the tables that are derived from it (histories, holders, balances).

Blocks are compared in windows of consecutive blocks, each in a separate snapshot, which bounds memory and lets Postgres
vacuum in between. Meanwhile an indexer may write and the node's chain may fork. So a difference counts only up to a
block that both have before and after the window is read, and only if the node still has the last block of the window as
it was read (docs/decisions/0019).
"""

import random
from collections import Counter, defaultdict
from contextlib import aclosing
from enum import Enum
from typing import Any, TypeVar

import asyncpg
import msgspec

from indexer.blocks import effects, genesis, packed_block
from indexer.blocks.packed_block import PackedBlock
from indexer.ogmios.connection import Connect, Ogmios, RollBackward
from indexer.rows import rows, tables, value_check
from indexer.rows.resolver import new_resolver
from indexer.rows.staking import of_genesis
from indexer.rows.tables import FromBlocks, Inserts, Row, Table
from indexer.store import position
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference, Progress
from shared import packed, sql
from shared.ledger import Point, tx_id_of
from shared.network import POOL_DEPOSIT, STAKE_DEPOSIT, Network

WINDOW_BLOCKS = 500
_MAX_TRIES = 5
_MAX_SHOWN_BYTES = 40
_RULES = value_check.Rules(value_check.Deposits(STAKE_DEPOSIT, POOL_DEPOSIT), from_origin=False)

_Hashed = TypeVar("_Hashed", tables.Datum, tables.Script)


class NothingCommon(Exception):
    """None of the blocks could be compared with the node."""


class LeftOut(Enum):
    """Why a window of blocks was not compared."""

    FORKED = "on another fork"
    UNSTEADY = "whose blocks changed during every attempt"


class Compared(msgspec.Struct, frozen=True):
    """The outcome of a comparison with the node.

    `transactions` are those of the compared `blocks`; `left_out` counts the windows that were not compared.
    """

    blocks: int
    indexed_blocks: int
    transactions: int
    left_out: "Counter[LeftOut]"
    results: list[CheckResult]


class Window(msgspec.Struct, frozen=True):
    """A range of slots; `next_slot` is not in it."""

    first_slot: int
    next_slot: int


async def compare(
    db: asyncpg.Connection,
    connect: Connect,
    network: Network,
    progress: Progress,
    *,
    sample: float = 100.0,
    from_slot: int = 0,
) -> Compared:
    """Compare about `sample` percent of the blocks from a slot on, in whole windows, with the blocks of a node.

    `db` is a connection with no other user. Raises NothingCommon and the errors of Ogmios.
    """
    index = await position.read(db)
    assert index is not None, "verify has looked"
    begins = await _window_begins.all(db, from_slot, WINDOW_BLOCKS)
    windows = list(map(Window, begins, [*begins[1:], index.slot_no + 1]))
    if sample < 100:
        wanted = max(1, round(len(windows) * sample / 100))
        windows = sorted(random.sample(windows, min(wanted, len(windows))), key=lambda window: window.first_slot)
    found: defaultdict[str, list[Difference]] = defaultdict(list)
    blocks = transactions = 0
    left_out = Counter[LeftOut]()
    if from_slot == 0 and index.first_block_no == 0:
        _add(found, await _genesis_differences(db, connect, network))
    for done, window in enumerate(windows):
        progress("windows of blocks, compared with the node", done, len(windows))
        compared = await _window(db, connect, network, window)
        if isinstance(compared, LeftOut):
            left_out[compared] += 1
            continue
        blocks += compared.blocks
        transactions += compared.transactions
        _add(found, compared.differences)
    progress("windows of blocks, compared with the node", len(windows), len(windows))
    if windows and not blocks:
        raise NothingCommon(f"no block of {network.name} was compared with the node: {in_words(left_out)}")
    indexed_blocks = index.block_no - index.first_block_no + 1
    return Compared(
        blocks,
        indexed_blocks,
        transactions,
        left_out,
        [CheckResult(check, differences) for check, differences in found.items()],
    )


def in_words(left_out: "Counter[LeftOut]") -> str:
    """The ranges that were left out, and why, for the operator."""
    return "; ".join(f"{count} ranges {why.value} were left out" for why, count in left_out.items())


def _add(found: defaultdict[str, list[Difference]], more: list[tuple[str, Difference]]) -> None:
    for table, difference in more:
        if len(found[table]) < MAX_SHOWN:
            found[table].append(difference)


class _Differences(msgspec.Struct, frozen=True):
    blocks: int
    transactions: int
    differences: list[tuple[str, Difference]]


async def _window(db: asyncpg.Connection, connect: Connect, network: Network, window: Window) -> _Differences | LeftOut:
    """The differences in a window, up to the last common block."""
    for _ in range(_MAX_TRIES):
        async with db.transaction(isolation="repeatable_read", readonly=True):
            node = await connect()
            try:
                ahead = await _points_ahead.all(db, window.first_slot, window.next_slot)
                common, _ = await node.intersect(ahead)
                if common is None or common.slot_no < window.first_slot:
                    return LeftOut.FORKED
                read = await _read(node, network, await _points_before.all(db, window.first_slot), window, common)
            finally:
                await node.close()
            if read is None:
                continue
            last_slot = min(window.next_slot - 1, common.slot_no)
            found = await _differences(db, network, read, window.first_slot, last_slot)
            compared = _Differences(len(read), sum(block.host_count for block in read), found)
            # NOTE: in this order. The node must be back on the common chain before it is queried for the last block
            # that was read, which only a fork may have had.
            if not found or await _has_all(connect, [common, read[-1].point]):
                return compared
    return LeftOut.UNSTEADY


async def _has_all(connect: Connect, points: list[Point]) -> bool:
    """Whether the node's chain still has these points."""
    node = await connect()
    try:
        for point in points:
            intersection, _ = await node.intersect([point])
            if intersection != point:
                return False
    finally:
        await node.close()
    return True


async def _read(
    node: Ogmios, network: Network, before: list[Point], window: Window, common: Point
) -> list[PackedBlock] | None:
    """The node's blocks in a window, up to a common one; None if the node rolls back meanwhile."""
    at, _ = await node.intersect(before)
    read: list[PackedBlock] = []
    begun = False
    async with aclosing(node.messages()) as messages:
        async for message in messages:
            if isinstance(message, RollBackward):
                if begun:
                    return None
                begun = True  # NOTE: Ogmios' first answer after an intersection goes back to that very point
                continue
            unplaced = packed_block.pack(effects.of_block(message.block), message.tip, network)
            block = packed_block.placed(unplaced, at, network)
            at = block.point
            if at.slot_no >= window.next_slot:
                break
            if at.slot_no >= window.first_slot:
                read.append(block)
            if at.slot_no >= common.slot_no and not block.ebb:
                break
    return read


async def _differences(
    db: asyncpg.Connection, network: Network, read: list[PackedBlock], first_slot: int, last_slot: int
) -> list[tuple[str, Difference]]:
    """The differences between the rows of a window and the rebuilt ones."""
    if not read:
        return []
    resolver = await new_resolver(db, network)
    try:
        first_seen = await resolver.look_up(db, [block.lookups for block in read])
        before = await _era_before.one(db, first_slot)
        era = "byron" if before is None else before.era
        rebuilt = (await rows.build(read, first_seen, [], era, resolver, _RULES)).rows
    except (value_check.Unbalanced, *packed.UNREADABLE) as failure:
        # The rows of older transactions, from which these are built, are wrong.
        what = f"rows of slots {first_slot} to {last_slot}, rebuilt from the outputs that they spend"
        return [("tx", Difference(what, None, None, str(failure)))]
    ids = tx_id_of(first_slot, 0), tx_id_of(last_slot + 1, 0)
    made = rebuilt.inserts
    made[tables.DATUM].extend(rebuilt.datums.values())
    made[tables.SCRIPT].extend(rebuilt.scripts.values())
    found = []
    for table in tables.FROM_BLOCKS:
        if table in (tables.DATUM, tables.SCRIPT):
            hashes = [row.hash for row in made[table]]
            indexed = await _stored(db, table, "(tx_id >= $1 AND tx_id < $2) OR hash = ANY ($3)", *ids, hashes)
            found += _differing(table, *_first_seen(indexed, made[table], ids[0]))
        elif table is tables.TX:
            found += _differing(table, *_with_same_flags(await _stored_between(db, table, *ids), made[table]))
        elif "tx_id" in table.columns:
            found += _differing(table, await _stored_between(db, table, *ids), made[table])
        else:
            indexed = await _stored(db, table, "slot_no BETWEEN $1 AND $2", first_slot, last_slot)
            found += _differing(table, indexed, made[table])
    return found


async def _stored_between(db: asyncpg.Connection, table: Table[Row], first_tx_id: int, next_tx_id: int) -> list[Row]:
    """The rows of transactions, without those that follow from the rows of others."""
    chosen = "tx_id >= $1 AND tx_id < $2"
    if table is tables.VOTE_DELEGATION:
        chosen += " AND kind IN ('delegation', 'deregistration')"
    return await _stored(db, table, chosen, first_tx_id, next_tx_id)


async def _stored(db: asyncpg.Connection, table: Table[Row], chosen: str, *arguments: object) -> list[Row]:
    """The rows of a table for which a condition holds."""
    text = f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {chosen}"  # noqa: S608 - ours
    return [table.row(*record) for record in await db.fetch(text, *arguments)]


async def _genesis_differences(
    db: asyncpg.Connection, connect: Connect, network: Network
) -> list[tuple[str, Difference]]:
    """The differences of genesis outputs, pools and delegations from the node's genesis."""
    node = await connect()
    try:
        configured = await genesis.load(node, network)
    finally:
        await node.close()
    async with db.transaction(isolation="repeatable_read", readonly=True):
        resolver = await new_resolver(db, network)
        pool_ids = configured.pools.keys() | set(configured.delegations.values())
        await resolver.look_up_numbers(db, set(), set(), configured.accounts, pool_ids)
        made = Inserts()
        of_genesis(configured, resolver, made)
        outputs = [
            tables.GenesisOutput(tx_hash, tx_id_of(-1 - place, 0), raw, lovelace)
            for place, (tx_hash, raw, lovelace) in enumerate(configured.outputs)
        ]
        found = _differing(tables.GENESIS_OUTPUT, await _stored(db, tables.GENESIS_OUTPUT, "true"), outputs)
        for table in tables.FROM_BLOCKS:
            if "tx_id" in table.columns:
                found += _differing(table, await _stored_between(db, table, -1, 0), made[table])
        return found


def _differing(table: FromBlocks[Row], indexed: list[Row], made: list[Row]) -> list[tuple[str, Difference]]:
    """Each column that differs, and rows on one side only."""
    ours, theirs = ({row[: table.key]: row for row in side} for side in (indexed, made))
    found = []
    for key in ours.keys() | theirs.keys() if ours != theirs else ():
        where = f"{table.name} {_show_all(key)}"
        stored, new = ours.get(key), theirs.get(key)
        if stored is None or new is None:
            sides = ("none", "a row") if stored is None else ("a row", "none")
            found.append((table.name, Difference(f"row of {where}", None, *sides)))
            continue
        found += [
            (table.name, Difference(f"{column} of {where}", None, *_shown(old, value)))
            for column, old, value in zip(table.columns, stored, new, strict=True)
            if old != value
        ]
    return sorted(found, key=lambda each: each[1].what)


def _shown(stored: Any, new: Any) -> tuple[str, str]:
    """Both values; of long bytes an excerpt around the first difference."""
    if not isinstance(stored, bytes) or not isinstance(new, bytes):
        return _show(stored), _show(new)
    pairs = zip(stored, new, strict=False)
    place = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(stored), len(new)))
    begin = max(0, place - _MAX_SHOWN_BYTES // 2) if max(len(stored), len(new)) > _MAX_SHOWN_BYTES else 0
    end = begin + _MAX_SHOWN_BYTES
    where = f" from byte {begin}" if begin else ""
    return _show(stored[begin:end]) + where, _show(new[begin:end]) + where


def _show(value: Any) -> str:
    return value[:_MAX_SHOWN_BYTES].hex() if isinstance(value, bytes) else str(value)


def _show_all(key: tuple[Any, ...]) -> str:
    return ", ".join(map(_show, key))


def _with_same_flags(indexed: list[tables.Tx], made: list[tables.Tx]) -> tuple[list[tables.Tx], list[tables.Tx]]:
    """Transactions without the parts that depend on the node's flags, if those flags have changed since indexing."""
    if all(tx.size is None for tx in indexed) or all(tx.size is None for tx in made):
        indexed, made = ([tx._replace(size=None) for tx in side] for side in (indexed, made))
    stored = {tx.tx_id: tx for tx in indexed}
    alike = []
    for new in made:
        old = stored.get(new.tx_id)
        if old is not None and old.extra != new.extra and _same_but_for_form(old.extra, new.extra):
            new = new._replace(extra=old.extra)
        alike.append(new)
    return indexed, alike


def _same_but_for_form(one: bytes | None, other: bytes | None) -> bool:
    """Whether extras differ only in the form of their metadata: one has CBOR, the other JSON with the same labels."""
    try:
        first, second = packed.unpack_extra(one), packed.unpack_extra(other)
    except packed.UNREADABLE:
        return False
    forms = {(bool(each.metadata_cbor), bool(each.metadata_json)) for each in (first, second)}
    labels = [each.metadata_cbor.keys() | each.metadata_json.keys() for each in (first, second)]
    bare = [msgspec.structs.replace(each, metadata_cbor={}, metadata_json={}) for each in (first, second)]
    return len(forms) == 2 and labels[0] == labels[1] and bare[0] == bare[1]


def _first_seen(indexed: list[_Hashed], made: list[_Hashed], first_tx_id: int) -> tuple[list[_Hashed], list[_Hashed]]:
    """Datums or scripts with the tx_id of the transaction that showed each of them first."""
    earlier = {each.hash: each.tx_id for each in indexed if each.tx_id < first_tx_id}
    return indexed, [new._replace(tx_id=earlier.get(new.hash, new.tx_id)) for new in made]


class _EraStart(msgspec.Struct, frozen=True):
    slot_no: int
    era: str


_sql = sql.beside(__file__)
_window_begins = _sql.values("window_begins", int)
_points_ahead = _sql.query("points_ahead", Point)
_points_before = _sql.query("points_before", Point)
_era_before = _sql.query("era_before", _EraStart)
