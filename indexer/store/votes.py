"""What certificates and the fork to protocol 10 do to the vote delegations of others (Conway's ledger rules).

The ledger keeps the representative of each account and, beside it, the set of delegators of each registered
representative. A retirement ends the delegation of every account in the set (GOVCERT), wherever that account delegates.
Up to protocol 9 the set and the accounts could differ; the fork to protocol 10 made the sets anew (HARDFORK), and they
have agreed since. Here each delegation that ends becomes a row of `vote_delegation`, so that the last row of an account
is its delegation. Everything runs inside a commit of its caller.
"""

import asyncpg
import msgspec

from indexer.rows import tables
from indexer.rows.staking import ProtocolFork, Staking
from shared import sql

FORK = 10
"""The major version whose fork made the sets of delegators of representatives anew (HARDFORK, Conway)."""


async def forked(db: sql.Connection) -> bool:
    """Whether the rules of protocol 10 apply at our tip."""
    return await _forked.one(db) is not None


async def begin(db: asyncpg.Connection, fork: ProtocolFork | None) -> None:
    """Fork to protocol 10, if the batch begins with that: this ends the delegations to unregistered representatives.

    No row of the batch may be written yet.
    """
    if fork is not None:
        await _fork.run(db, fork.epoch_no, fork.major)
        await _end_by_fork.run(db, fork.first_tx_id)


async def retire(db: asyncpg.Connection, staking: Staking) -> None:
    """End the delegations that retirements end, in the order of their certificates, whose rows are all written.

    NOTE: in order, because a delegation that one retirement ends is not another's to end.
    """
    for event in staking.inserts[tables.REPRESENTATIVE_EVENT]:
        if event.kind == "retirement":
            await _end_by_retirement.run(db, event.representative, event.tx_id, event.place)


class _Forked(msgspec.Struct, frozen=True):
    epoch_no: int
    major: int


_sql = sql.beside(__file__)
_forked = _sql.query("forked", _Forked)
_fork = _sql.command("fork")
_end_by_fork = _sql.command("end_by_fork")
_end_by_retirement = _sql.command("end_by_retirement")
