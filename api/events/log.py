"""The log of each subscription, as its only writer appends to it: the follower of the network.

Each function is part of one commit, which also moves the mark.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from uuid import UUID

import msgspec

from api.events import digits, subjects
from api.events.happenings import BlockPoint, Happening, Make
from api.events.subjects import RESET, Direction, EventKind
from shared import sql
from shared.ledger import SECURITY_PARAMETER
from shared.network import Network
from shared.sql import Connection

KEPT_BLOCKS = 2 * SECURITY_PARAMETER
"""How many blocks before the mark are remembered: twice as many as a node rolls back."""

_LOCK = 0x4C454556  # arbitrary; the first half of the advisory lock's key, the network is the second
_MARK_LOCK = 0x4C45454D  # likewise, of the lock that keeps the mark where it is


class Mark(msgspec.Struct, frozen=True):
    """Up to which block the live subscriptions of a network have been told."""

    step: int
    slot_no: int
    block_no: int
    block_hash: bytes  # empty before the first remembered block


class Moved(Exception):
    """Another follower has moved the mark: read it again."""


class Held(msgspec.Struct, frozen=True):
    """What a commit with the mark has to do: `has_submitters` says whether anybody wants to be told of submitted
    transactions, `has_waiting` whether events wait for confirmations.
    """

    is_watched: bool
    has_submitters: bool
    has_waiting: bool


class _Match(msgspec.Struct, frozen=True):
    key: bytes
    subscription_no: int
    direction: Direction
    least: str
    confirmations: int
    at_slot_no: int


class CatchingUp(msgspec.Struct, frozen=True):
    """A subscription that is not live yet."""

    subscription_no: int
    at_slot_no: int


class _Notice(msgspec.Struct, frozen=True):
    """Something to tell of that is in no block."""

    notice_no: int
    kind: EventKind
    owner: UUID | None
    body: str


class Matched(msgspec.Struct, frozen=True):
    """A happening of which a subscription is told."""

    block: BlockPoint
    happening: Happening
    match: _Match


class Reset(msgspec.Struct, frozen=True):
    """The last block that is left. Blocks after it were undone, some of them from before the log begins."""

    slot_no: int
    block_no: int
    block_hash: str


class _Step(msgspec.Struct, frozen=True):
    block_hash: bytes
    step: int


_sql = sql.beside(__file__)
_numbered = _sql.text("numbered")
_is_followed = _sql.values("is_followed", bool)
_try_to_follow = _sql.values("try_to_follow", bool)
_mark = _sql.query("mark", Mark)
_lock_mark = _sql.command("lock_mark")
_share_mark = _sql.command("share_mark")
_held = _sql.query("held", Held)
_begin = _sql.command("begin")
_move_mark = _sql.command("move_mark")
_remember_blocks = _sql.command("remember")
_blocks_down = _sql.query("blocks_down", BlockPoint)
_steps = _sql.query("steps", _Step)
_live = _sql.query("matching", _Match, those="state = 'live' AND $3::bigint[] IS NULL")
_catching = _sql.query("matching", _Match, those="state = 'catching_up' AND subscription_no = ANY ($3::bigint[])")
_all_begun = _sql.query("matching", _Match, those="state IN ('live', 'catching_up') AND $3::bigint[] IS NULL")
_has_notices = _sql.values("has_notices", bool)
_take_notices = _sql.query("take_notices", _Notice)
_notify = _sql.command("notify", numbered=_numbered)
_number_objects = _sql.values("number_objects", int)
_add_objects = _sql.command("add_objects")
_append = _sql.command("append", numbered=_numbered)
_tell_due = _sql.command("tell_due", numbered=_numbered)
_undo = _sql.command("undo", numbered=_numbered)
_begins_after = _sql.values("begins_after", bool)
_reset = _sql.command("reset")
_forget_waiting = _sql.command("forget_waiting")
_undo_blocks = _sql.command("undo_blocks")
_set_back = _sql.command("set_back")
_catching_up = _sql.query("catching_up", CatchingUp)
_caught_up = _sql.command("caught_up")


class Block(msgspec.Struct, frozen=True):
    """A block, and what happens in it."""

    point: BlockPoint
    happenings: Sequence[Happening]


async def is_followed(db: Connection, network: Network) -> bool:
    """Whether a session follows the network."""
    return await _is_followed.only(db, _LOCK, network.network_id)


async def try_to_follow(db: Connection, network: Network) -> bool:
    """Follow the network in this session; False if another one does."""
    return await _try_to_follow.only(db, _LOCK, network.network_id)


async def mark_of(db: Connection, network: Network) -> Mark | None:
    """The mark of a network; None before it is followed."""
    return await _mark.one(db, network.network_id)


async def hold(db: Connection, network: Network, mark: Mark) -> Held:
    """Keep the mark, alone, until the end of the commit: call it first. Raises Moved if it has moved."""
    await _lock_mark.run(db, _MARK_LOCK, network.network_id)
    held = await _held.one(db, network.network_id, mark.step, subjects.own_prefix("submitted"))
    if held is None:
        raise Moved
    return held


async def share(db: Connection, network: Network) -> Mark | None:
    """The mark of a network, which stays there until the end of the commit; None before it is followed.

    Any number of requests share it. The follower waits for those before it, and they wait for a follower before them.
    """
    await _share_mark.run(db, _MARK_LOCK, network.network_id)
    return await mark_of(db, network)


async def begin(db: Connection, network: Network, blocks: Sequence[BlockPoint]) -> None:
    """Set the first mark to the last of these blocks, and remember all of them."""
    last = blocks[-1]
    await _begin.run(db, network.network_id, len(blocks), last.slot_no, last.block_no, last.block_hash)
    await _remember(db, network, 0, blocks)


async def steps(db: Connection, network: Network, first: BlockPoint, last: BlockPoint) -> dict[bytes, int]:
    """The steps of the remembered blocks from one to another, by hash."""
    rows = await _steps.all(db, network.network_id, first.block_no, last.block_no)
    return {row.block_hash: row.step for row in rows}


async def blocks_down(db: Connection, network: Network, from_block_no: int, most: int) -> list[BlockPoint]:
    """The last remembered blocks up to a number, the last one first."""
    return await _blocks_down.all(db, network.network_id, from_block_no, most)


async def matches(
    db: Connection, network: Network, blocks: Sequence[Block], of: Sequence[CatchingUp] | None = None
) -> list[Matched]:
    """What subscriptions are told of some blocks, in order: the live ones or, of those that catch up, these."""
    keys = {happening.key for block in blocks for happening in block.happenings}
    query, those = (_live, None) if of is None else (_catching, [each.subscription_no for each in of])
    by_key: dict[bytes, list[_Match]] = {}
    for match in await query.all(db, network.network_id, list(keys), those):
        by_key.setdefault(match.key, []).append(match)
    for some in by_key.values():
        some.sort(key=lambda match: match.subscription_no)
    return [
        Matched(block.point, happening, match)
        for block in blocks
        for happening in block.happenings
        for match in by_key.get(happening.key, ())
        if _is_told(happening, match) and (of is None or block.point.slot_no > match.at_slot_no)
    ]


def _is_told(happening: Happening, match: _Match) -> bool:
    received, spent = happening.received, happening.spent
    if received is None and spent is None:
        return True
    least = int(match.least)
    receives = match.direction != "out" and received is not None and received >= least
    return receives or (match.direction != "in" and spent is not None and spent >= least)


async def made(matched: Sequence[Matched]) -> list[str]:
    """The objects of matches, each once, in the order of their first use."""
    makes: dict[int, Make] = {id(each.happening.make): each.happening.make for each in matched}
    return [digits.json_of(await make()) for make in makes.values()]


async def append(
    db: Connection, network: Network, steps: Mapping[bytes, int], matched: Sequence[Matched], objects: Sequence[str]
) -> None:
    """Append events to logs, or keep them until they have their confirmations.

    `objects` are those of `made`, `steps` those of the blocks by hash: 0 for one that is not remembered.
    """
    if not matched:
        return
    place_of = {make: nth for nth, make in enumerate(dict.fromkeys(id(each.happening.make) for each in matched), 1)}
    columns = sql.columns(
        (
            each.match.subscription_no,
            each.happening.key,
            each.block.slot_no,
            each.block.block_no,
            each.block.block_hash,
            _decimal(each.happening.received),
            _decimal(each.happening.spent),
            place_of[id(each.happening.make)],
            steps.get(each.block.block_hash, 0),
            each.match.confirmations,
        )
        for each in matched
    )
    await _append.run(db, network.network_id, list(objects), *columns)


async def has_notices(db: Connection, network: Network) -> bool:
    """Whether anything is to be told that is in no block."""
    return await _has_notices.only(db, network.network_id, list(subjects.KIND_LETTERS))


async def tell_notices(db: Connection, network: Network, mark: Mark, most: int) -> None:
    """Append so many notices to the logs that ask for them, those that catch up included, as there is no other time.

    They are never undone, so they wait for no confirmations. Those of kinds that only a later version knows are left.
    """
    taken = await _take_notices.all(db, network.network_id, list(subjects.KIND_LETTERS), most)
    notices = sorted(taken, key=lambda each: each.notice_no)
    keys = {each.notice_no: subjects.notice_key(each.kind, each.owner) for each in notices}
    those = defaultdict[bytes, list[int]](list)
    for match in await _all_begun.all(db, network.network_id, list(set(keys.values())), None):
        those[match.key].append(match.subscription_no)
    asked_for = [each for each in notices if keys[each.notice_no] in those]
    if not asked_for:
        return
    numbers = await _number_objects.all(db, len(asked_for))
    await _add_objects.run(db, numbers, [each.body for each in asked_for])
    told = [
        (subscription_no, subjects.NOTICE + key, object_no)
        for each, object_no in zip(asked_for, numbers, strict=True)
        for key in (keys[each.notice_no],)
        for subscription_no in those[key]
    ]
    place = mark.step + 1, mark.slot_no, mark.block_no, mark.block_hash
    await _notify.run(db, network.network_id, *place, *sql.columns(told))


async def tell_due(db: Connection, network: Network, mark: Mark) -> None:
    """Append the events that have their confirmations at the mark."""
    await _tell_due.run(db, network.network_id, mark.step, mark.block_no)


async def move(db: Connection, network: Network, mark: Mark, blocks: Sequence[BlockPoint]) -> Mark:
    """Move the mark over the blocks that follow it; returns the new one."""
    last = blocks[-1]
    moved = Mark(mark.step + len(blocks), last.slot_no, last.block_no, last.block_hash)
    await _move_mark.run(db, network.network_id, moved.step, moved.slot_no, moved.block_no, moved.block_hash)
    await _remember(db, network, mark.step, blocks)
    return moved


async def undo(db: Connection, network: Network, mark: Mark, last: BlockPoint) -> Mark:
    """Undo what was told of blocks after `last`, which becomes the mark; returns the new one."""
    moved = Mark(mark.step + 1, last.slot_no, last.block_no, last.block_hash)
    await _move_mark.run(db, network.network_id, moved.step, moved.slot_no, moved.block_no, moved.block_hash)
    await _undo.run(db, network.network_id, moved.step, last.slot_no)
    if await _begins_after.only(db, network.network_id, last.slot_no):
        object_no = await _number_objects.only(db, 1)
        body = digits.json_of(Reset(last.slot_no, last.block_no, last.block_hash.hex()))
        await _add_objects.run(db, [object_no], [body])
        place = last.slot_no, last.block_no, last.block_hash
        await _reset.run(db, network.network_id, moved.step, *place, object_no, RESET)
    await _forget_waiting.run(db, network.network_id, last.slot_no)
    await _undo_blocks.run(db, network.network_id, last.block_no)
    await _set_back.run(db, network.network_id, last.slot_no)
    return moved


async def catching_up(db: Connection, network: Network, most: int) -> list[CatchingUp]:
    """So many subscriptions that are furthest behind, and as many that are nearest to the mark."""
    return await _catching_up.all(db, network.network_id, most)


async def caught_up(db: Connection, of: Sequence[CatchingUp], slot_no: int, live_step: int | None) -> None:
    """Note that subscriptions were told of the blocks up to a slot; with `live_step`, that they are live now."""
    await _caught_up.run(db, [each.subscription_no for each in of], slot_no, live_step)


async def _remember(db: Connection, network: Network, step: int, blocks: Sequence[BlockPoint]) -> None:
    rows = [(step + nth, block.slot_no, block.block_no, block.block_hash) for nth, block in enumerate(blocks, 1)]
    lowest = blocks[-1].block_no - KEPT_BLOCKS
    await _remember_blocks.run(db, network.network_id, lowest, *sql.columns(rows))


def _decimal(quantity: int | None) -> Decimal | None:
    return None if quantity is None else Decimal(quantity)
