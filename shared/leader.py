"""The leader of a network: the indexer whose session holds the network's lock, and the heartbeats that it sends.

A process that hangs keeps its session and its lock, but its heartbeats stop. A heartbeat also reports the state of the
leader's node.
"""

from datetime import datetime

import msgspec

from shared import database, schema, sql, version
from shared.network import NETWORKS, Network

BEAT_EVERY_S = 5.0
SILENT_AFTER_S = 20.0
"""The heartbeat age after which a leader counts as hung, and a standby takes over."""


class Leader(msgspec.Struct, frozen=True):
    """The session that holds a network's lock.

    `beat_age_s` is None until the session's first heartbeat. `now_s` is the database's clock when this was read, in
    seconds since 1970.
    """

    network_id: int
    backend_pid: int
    application: str
    beat_age_s: float | None
    now_s: float


async def leaders(db: sql.Connection) -> dict[int, Leader]:
    """The leader of each network that has one, by network_id."""
    return {row.network_id: row for row in await _leaders.all(db, database.LEADER_LOCK)}


class Report(msgspec.Struct, frozen=True):
    """The content of a heartbeat. The defaults are those of a leader without a node, like `resync`.

    `node_since_s` is how long the node has been connected or lost. `node_slot_no` and `node_block_no` are its tip as
    last heard, which has not changed for `node_unmoved_s`. `sync_left_s` is the time until the index reaches that tip
    at the present rate, None at the tip or if unknown. `finishing` is true while the end of bulk is under way.
    `nodes` is the JSON of the watched nodes. All times are in seconds.
    """

    node_connected: bool = False
    node_since_s: float = 0.0
    node_slot_no: int | None = None
    node_block_no: int | None = None
    node_unmoved_s: float | None = None
    sync_left_s: float | None = None
    finishing: bool = False
    nodes: str = "[]"


class LastHeartbeat(msgspec.Struct, frozen=True):
    """The last heartbeat of a network's leader; without any, most fields are None.

    `leading` is true while the session that sent it leads. `node_since` is when the node was connected or lost.
    `refused` says why the leader stopped by itself. `lock_wait_s` is how long its commit has waited for a lock that
    another session holds, None if it does not. `retired` is true if the network has no indexer on purpose.
    `nodes` and `splits` are the JSON of watched nodes, and of the splits that last. `now` is the database's clock when
    this was read.
    """

    network_id: int
    retired: bool
    leading: bool
    beat_age_s: float | None
    failing: list[str]
    version: str | None
    node_connected: bool
    node_since: datetime | None
    node_slot_no: int | None
    node_block_no: int | None
    node_unmoved_s: float | None
    sync_left_s: float | None
    finishing: bool
    refused: str | None
    lock_wait_s: float | None
    nodes: str
    splits: str
    now: datetime

    @property
    def alive(self) -> bool:
        """Whether the leader is running: its session leads, and its last heartbeat is recent."""
        return self.leading and self.beat_age_s is not None and self.beat_age_s < SILENT_AFTER_S


async def last_heartbeats(db: sql.Connection) -> dict[int, LastHeartbeat]:
    """The last heartbeat of each network's leader, by network_id. Locks are not replicated: query the primary."""
    return {row.network_id: row for row in await _last_heartbeats.all(db, database.LEADER_LOCK)}


async def beat(
    db: sql.Connection, network: Network, backend_pid: int, failing: list[str], report: Report | None = None
) -> bool:
    """Record a heartbeat of that session; False if it no longer holds the lock.

    Raises WrongSchema.
    """
    written = await _beat.run(
        db,
        database.LEADER_LOCK,
        network.network_id,
        backend_pid,
        failing,
        schema.VERSION,
        version.VERSION,
        *msgspec.structs.astuple(report or Report()),
    )
    if written != "INSERT 0 1":
        await schema.check(db)
        return False
    return True


async def record_fatal(db: sql.Connection, network: Network, backend_pid: int, why: str) -> None:
    """Note why the leader with that session stops by itself. `why` is shown to everybody. Raises WrongSchema."""
    async with schema.commit(db):
        await _record_fatal.run(db, network.network_id, backend_pid, why)


async def retire(db: sql.Connection, network: Network) -> None:
    """Note that a network has no indexer on purpose. Raises WrongSchema."""
    async with schema.commit(db):
        await _retire.run(db, network.network_id)


async def unretire(db: sql.Connection, network: Network) -> bool:
    """Note that a network has an indexer; False if it was not retired. Raises WrongSchema."""
    async with schema.commit(db):
        return await _unretire.run(db, network.network_id) == "DELETE 1"


async def terminate(db: sql.Connection, leader: Leader) -> None:
    """End the session of a leader, if it still leads. Its uncommitted work is lost."""
    await _terminate.run(db, database.LEADER_LOCK, leader.network_id, leader.backend_pid)


_sql = sql.beside(__file__)
_leaders = _sql.query("leaders", Leader)
_last_heartbeats = _sql.query(
    "last_heartbeats", LastHeartbeat, network_ids=", ".join(f"({network.network_id}::bigint)" for network in NETWORKS)
)
_beat = _sql.command("beat")
_record_fatal = _sql.command("record_fatal")
_retire = _sql.command("retire")
_unretire = _sql.command("unretire")
_terminate = _sql.command("terminate")
