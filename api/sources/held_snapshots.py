"""The oldest snapshot that a session of the database holds, such as `verify`, `pg_dump` or a forgotten BEGIN.

Until it ends, Postgres keeps every version of every row (docs/decisions/0061-usage-in-parts.md).
"""

from shared import sql

OLD_S = 5.0
"""While a session holds an older snapshot, usage is added to further parts of its tables, and nothing is folded."""

TOLD_AFTER_S = 60.0
"""`/ready` reports an older snapshot."""


_oldest = sql.beside(__file__).values("oldest", float)


async def oldest_s(db: sql.Connection) -> float:
    """For how long the oldest snapshot has been held; 0 without any."""
    return await _oldest.only(db)
