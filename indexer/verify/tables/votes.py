"""Recompute which vote delegations ended through others, by playing Conway's rules in order: a part of verify.

`certificates` compares the rows of certificates. Here, the ledger's own state is kept beside them, as it is in
cardano-ledger: the representative of each account (DELEG), and the set of delegators of each registered representative
(GOVCERT, HARDFORK). store/votes.py finds the same without sets. Memory grows with the accounts that delegate their
vote, and with the events of an epoch.
"""

import asyncpg
import msgspec

from indexer.ledger import protocol
from indexer.ledger.reader import NotThere
from indexer.ogmios.connection import Ogmios, Refused
from indexer.store import position
from indexer.store.votes import FORK
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference
from shared import sql
from shared.ledger import Point, tx_id_of
from shared.network import Network

_CREDENTIAL_BYTES = 29


class _Event(msgspec.Struct, frozen=True):
    """A row of vote_delegation, or of representative_event, which has no stake_no."""

    tx_id: int
    place: int
    kind: str
    stake_no: int | None
    representative: bytes | None


class _Fork(msgspec.Struct, frozen=True):
    epoch_no: int
    major: int


class _Span(msgspec.Struct, frozen=True):
    first_tx_id: int
    last_tx_id: int


class _Around(msgspec.Struct, frozen=True):
    """The first block of an epoch, and the last block before it."""

    first_slot_no: int | None
    first_hash: bytes | None
    last_slot_no: int | None
    last_hash: bytes | None


class _Votes:
    """The votes after some events; `ended` has the rows that the index must have for them, and has not shown yet."""

    def __init__(self, *, from_origin: bool, fork_tx_id: int | None) -> None:
        self._from_origin, self._fork_tx_id, self._forked = from_origin, fork_tx_id, False
        self._representatives: dict[int, bytes] = {}
        self._sets: dict[bytes, set[int]] = {}
        self._heard_of: set[bytes] = set()
        self.ended: set[tuple[int, int, str, int]] = set()

    def reach(self, tx_id: int | None) -> None:
        """Apply the fork if it is not after the next event, at `tx_id`; None: there is no next one."""
        if self._fork_tx_id is not None and not self._forked and (tx_id is None or tx_id >= self._fork_tx_id):
            self._forked = True
            self._fork(self._fork_tx_id)

    def apply(self, event: _Event) -> None:
        """Apply the next event, except the end of a delegation."""
        match event:
            case _Event(kind="delegation", stake_no=int(stake_no), representative=bytes(representative)):
                self._delegate(stake_no, representative)
            case _Event(kind="deregistration", stake_no=int(stake_no)):
                self._members(self._representatives.pop(stake_no, b"")).discard(stake_no)
            case _Event(kind="registration", representative=bytes(representative)):
                self._heard_of.add(representative)
                self._sets[representative] = set()
            case _Event(kind="retirement", stake_no=None, representative=bytes(representative)):
                for stake_no in self._members(representative) & self._representatives.keys():
                    del self._representatives[stake_no]
                    self.ended.add((event.tx_id, event.place, "retirement", stake_no))
                self._heard_of.add(representative)
                self._sets.pop(representative, None)

    def _delegate(self, stake_no: int, representative: bytes) -> None:
        before = self._representatives.get(stake_no, b"")
        self._representatives[stake_no] = representative
        # Until the fork, who moves on to another representative stays in the set of the first.
        if before != representative and (self._forked or len(representative) < _CREDENTIAL_BYTES):
            self._members(before).discard(stake_no)
        self._members(representative).add(stake_no)

    def _fork(self, first_tx_id: int) -> None:
        for members in self._sets.values():
            members.clear()
        for stake_no, representative in list(self._representatives.items()):
            if len(representative) < _CREDENTIAL_BYTES:
                continue
            if representative in self._sets:
                self._sets[representative].add(stake_no)
            elif self._from_origin or representative in self._heard_of:
                del self._representatives[stake_no]
                self.ended.add((first_tx_id, -1, "fork", stake_no))

    def _members(self, representative: bytes) -> set[int]:
        """The set of a representative; an empty one that is not kept if it is not registered.

        In an index that does not begin at the origin, one of which nothing is known may be registered.
        """
        known = self._sets.get(representative)
        if known is not None:
            return known
        members = set[int]()
        if not self._from_origin and len(representative) == _CREDENTIAL_BYTES and representative not in self._heard_of:
            self._sets[representative] = members
        return members


async def check(db: asyncpg.Connection, network: Network, *, from_origin: bool) -> CheckResult:
    """Compare the ends of delegations, in the open snapshot."""
    fork = await _fork.one(db)
    fork_tx_id = None if fork is None else tx_id_of(network.epoch_start(fork.epoch_no), 0)
    votes, found = _Votes(from_origin=from_origin, fork_tx_id=fork_tx_id), list[Difference]()
    span = await _span.one(db)
    assert span is not None, "a row even without votes"
    epochs = range(network.epoch_of(max(span.first_tx_id >> 16, 0)), network.epoch_of(span.last_tx_id >> 16) + 1)
    for epoch_no in epochs:
        first, following = (tx_id_of(network.epoch_start(each), 0) for each in (epoch_no, epoch_no + 1))
        for event in await _events.all(db, first, following):
            votes.reach(event.tx_id)
            votes.apply(event)
            if event.stake_no is not None and event.kind in ("retirement", "fork"):
                end = (event.tx_id, event.place, event.kind, event.stake_no)
                if end in votes.ended:
                    votes.ended.remove(end)
                else:
                    found.append(Difference(_what(end), None, "a row", "none"))
    votes.reach(None)
    found += [Difference(_what(end), None, "none", "a row") for end in sorted(votes.ended)]
    return CheckResult("vote_delegation", found[:MAX_SHOWN])


async def check_fork(db: asyncpg.Connection, node: Ogmios, network: Network) -> CheckResult:
    """Compare the fork to protocol 10 with the node's versions at our tip, after the fork's first block and before it,
    as far as the node has these ledger states.
    """
    index, fork = await position.read(db), await _fork.one(db)
    assert index is not None, "verify has looked"
    found = []
    now = await _version_or_none(node, *msgspec.structs.astuple(index.point))
    if now is not None and (now >= FORK) != (fork is not None):
        found.append(Difference("protocol_fork", None, str(fork and fork.major), str(now)))
    if fork is not None:
        around = await _around.one(db, network.epoch_start(fork.epoch_no), network.epoch_start(fork.epoch_no + 1))
        assert around is not None, "a row even without blocks"
        first = await _version_or_none(node, around.first_slot_no, around.first_hash)
        before = await _version_or_none(node, around.last_slot_no, around.last_hash)
        if around.first_slot_no is None or (first is not None and first != fork.major):
            found.append(Difference(f"major of protocol_fork {fork.epoch_no}", None, str(fork.major), str(first)))
        if before is not None and before >= FORK:
            found.append(Difference(f"version before protocol_fork {fork.epoch_no}", None, "9 or less", str(before)))
    return CheckResult("protocol_fork", found)


async def _version_or_none(node: Ogmios, slot_no: int | None, block_hash: bytes | None) -> int | None:
    if slot_no is None or block_hash is None:
        return None
    try:
        return await protocol.version_at(node, Point(slot_no, block_hash))
    except (NotThere, Refused):  # it is too old, or in Byron, which has no such parameters
        return None


def _what(end: tuple[int, int, str, int]) -> str:
    tx_id, place, kind, stake_no = end
    return f"end by {kind} of the vote_delegation of stake_no {stake_no} at place {place} of tx_id {tx_id}"


_sql = sql.beside(__file__)
_around = _sql.query("around", _Around)
_fork = _sql.query("fork", _Fork)
_span = _sql.query("span", _Span)
_events = _sql.query("events", _Event)
