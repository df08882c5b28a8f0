"""Compare the schema of a database with schema.sql: a part of verify, and the first.

The other parts use the functions and views of the schema, and look rows up through its indexes. So they run only if
nothing differs here.
"""

import asyncpg
import msgspec

from indexer.ledger.comparisons import excerpts
from indexer.verify.results import MAX_SHOWN, Difference
from shared import schema, sql
from shared.network import Network


async def differences(db: asyncpg.Connection, network: Network) -> list[Difference]:
    """The first differences of the schemas of a network and of partners from those of a new database.

    The role must be allowed to create schemas, as the indexer must.
    """
    return compared(await described(db, network), await expected(db, network))


async def described(db: asyncpg.Connection, network: Network) -> dict[str, str]:
    """What both schemas consist of: definitions by name."""
    return {row.name: row.definition for row in await _described.all(db, _schemas(network))}


async def expected(db: asyncpg.Connection, network: Network) -> dict[str, str]:
    """The same of a new database.

    Its schemas need the names of the present ones, which are renamed meanwhile. All of it is undone, and no other
    connection sees it.
    """
    undone = db.transaction()
    await undone.start()
    try:
        for name in _schemas(network):
            await db.execute(f"ALTER SCHEMA {name} RENAME TO {name}_verified")
        await schema.create(db, [network])
        return await described(db, network)
    finally:
        await undone.rollback()


def compared(present: dict[str, str], expected: dict[str, str]) -> list[Difference]:
    """The first differences of two descriptions, those of whole tables first.

    Additional indexes that are valid and not unique change no answer.
    """
    found = [
        Difference(name, None, *_shown(present.get(name), expected.get(name)))
        for name in sorted(present.keys() | expected.keys(), key=lambda name: (not name.startswith("table "), name))
        if present.get(name) != expected.get(name) and not (name not in expected and _is_harmless(name, present[name]))
    ]
    return found[:MAX_SHOWN]


def _schemas(network: Network) -> list[str]:
    return ["partner", network.schema]


def _is_harmless(name: str, definition: str) -> bool:
    """Whether a thing that schema.sql does not have is an index of the operator."""
    return definition.startswith("CREATE INDEX ") and not definition.endswith(", invalid") and name.startswith("index ")


def _shown(present: str | None, expected: str | None) -> tuple[str | None, str | None]:
    """Both definitions in a line each; of long ones an excerpt around the first difference."""
    one, other = (None if each is None else " ".join(each.split()) for each in (present, expected))
    return (one, other) if one is None or other is None else excerpts(one, other)


class _Definition(msgspec.Struct, frozen=True):
    name: str
    definition: str


_sql = sql.beside(__file__)
_described = _sql.query("described", _Definition)
