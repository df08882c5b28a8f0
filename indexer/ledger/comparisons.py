"""How the index is compared with its node: what both know of the ledger, kind by kind. `subjects.py` has the table.

Both sides are those of one block: ours are read in a snapshot of the database, and the node has acquired the ledger
state of its tip. Things that may be many are compared in batches; each batch may have its own snapshot and block.
"""

import operator
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import msgspec
from msgspec import UNSET

from indexer.ledger import deposits
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios
from indexer.store import position
from indexer.store.position import IndexPosition
from shared import sql
from shared.ledger import StakeNo
from shared.network import Network
from shared.network_state import Comparison, Difference
from shared.phase import Phase

MAX_NAMED = 5
"""The most differences of one kind that are named."""

MAX_LETTERS = 200
"""The most letters that are shown of a value that differs: protocol parameters have lists of thousands."""


class At(msgspec.Struct, frozen=True):
    """A database snapshot, which stays open while it is used.

    `read` is true once the rewards of the tip's epoch are read, except those of accounts that have changed since;
    `all_read` includes these. About `sample` percent of the accounts are compared.
    """

    db: asyncpg.Connection
    network: Network
    position: IndexPosition
    epoch_no: int
    current: bool
    read: bool
    all_read: bool
    deposits_changed: bool
    sample: float = 100.0

    @property
    def from_origin(self) -> bool:
        return self.position.first_block_no == 0


class Batch(msgspec.Struct, frozen=True):
    """Some things of the index by key, and where the next batch begins; None after the last one."""

    things: dict[Any, Any]
    then: int | None = None


class Kind(msgspec.Struct, frozen=True):
    """One value of a thing, UNSET if it is unknown or means nothing; how two are compared, and shown if they differ."""

    name: str
    value: Callable[[Any], Any]
    show: Callable[[Any, Any], tuple[str, str]] = lambda ours, node: (text(ours), text(node))
    same: Callable[[Any, Any], bool] = operator.eq


class Subject(msgspec.Struct, frozen=True):
    """One sort of thing.

    `ours` reads a batch in a database snapshot; None if the index does not know it yet. `node` asks for the same
    things and returns those that it has by key; None if it refuses the question. Ask by `ask_node`. A thing that one
    side lacks is `absent`.
    """

    kinds: tuple[Kind, ...]
    ours: Callable[[At, int], Awaitable[Batch | None]]
    node: Callable[[Ogmios, At, list[Any]], Awaitable[dict[Any, Any] | None]]
    name: Callable[[Any], str]
    absent: Any = UNSET


class Tally:
    """Adds up the comparisons of batches by kind."""

    def __init__(self) -> None:
        self._compared: dict[str, int] = {}
        self._differing: dict[str, int] = {}
        self._named: dict[str, list[Difference]] = {}

    def compare(self, subject: Subject, at: At, ours: dict[Any, Any], node: dict[Any, Any]) -> None:
        """Compare things by key. An index that does not begin at the origin lacks things, so only its own count."""
        keys = ours.keys() | node.keys() if at.from_origin else ours.keys()
        for kind in subject.kinds:
            compared = 0
            for key in keys:
                left = _value(kind, ours.get(key, subject.absent))
                right = _value(kind, node.get(key, subject.absent))
                if left is UNSET or right is UNSET:
                    continue
                compared += 1
                if not kind.same(left, right):
                    self._add(kind.name, Difference(subject.name(key), *excerpts(*kind.show(left, right))))
            self._compared[kind.name] = self._compared.get(kind.name, 0) + compared

    def comparisons(self, epoch_no: int) -> list[Comparison]:
        """One for each kind that was compared."""
        return [
            Comparison(name, epoch_no, compared, self._differing.get(name, 0), self._named.get(name, []))
            for name, compared in self._compared.items()
        ]

    def _add(self, kind: str, difference: Difference) -> None:
        self._differing[kind] = self._differing.get(kind, 0) + 1
        named = self._named.setdefault(kind, [])
        named.append(difference)
        named.sort(key=operator.attrgetter("name"))  # the order of a set changes
        del named[MAX_NAMED:]


async def ask_node(subject: Subject, node: Ogmios, at: At, keys: list[Any]) -> dict[Any, Any] | None:
    """What the node has of these things. Raises frames.Unreadable, also for values that no ledger has."""
    try:
        return await subject.node(node, at, keys)
    except (ValueError, LookupError, ArithmeticError) as error:
        raise frames.Unreadable(f"{subject.kinds[0].name}: {type(error).__name__}: {error}") from error


async def at_tip(db: asyncpg.Connection, network: Network, sample: float = 100.0) -> At | None:
    """The open database snapshot at the tip of the index; None unless the index is live."""
    index, state = await position.read(db), await _state.one(db)
    if index is None or index.phase != Phase.LIVE:
        return None
    assert state is not None, "always one row"
    epoch_no = network.epoch_of(index.slot_no)
    current = state.epoch_no == epoch_no
    read = current and state.complete_epoch_no == epoch_no and state.next_stake_no is None
    changed = await deposits.changed(db)
    return At(db, network, index, epoch_no, current, read, read and not state.due, changed, sample)


def excerpts(ours: str, node: str) -> tuple[str, str]:
    """Both values; of long ones what begins shortly before the first difference."""
    pairs = enumerate(zip(ours, node, strict=False))
    place = next((place for place, (left, right) in pairs if left != right), min(len(ours), len(node)))
    begin = max(0, place - MAX_LETTERS // 4) if max(len(ours), len(node)) > MAX_LETTERS else 0
    return _excerpt(ours, begin), _excerpt(node, begin)


def _excerpt(shown: str, begin: int) -> str:
    end = begin + MAX_LETTERS
    return f"{'…' if begin else ''}{shown[begin:end]}{'…' if len(shown) > end else ''}"


def whole(thing: Any) -> Any:
    """The value of a thing that is one value."""
    return thing


def _value(kind: Kind, thing: Any) -> Any:
    return UNSET if thing is UNSET else kind.value(thing)


def text(value: Any) -> str:
    """Any value in words."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case bytes():
            return value.hex()
    return msgspec.json.encode(value).decode()


class _State(msgspec.Struct, frozen=True):
    epoch_no: int | None
    next_stake_no: StakeNo | None
    complete_epoch_no: int | None
    due: bool


_sql = sql.beside(__file__)
_state = _sql.query("state", _State)
