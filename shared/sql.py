"""Named statements from the `.sql` file next door, each bound to the Struct of its rows."""

import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import asyncpg
import msgspec

Row = TypeVar("Row", bound=msgspec.Struct)
Connection: TypeAlias = "asyncpg.Connection | asyncpg.pool.PoolConnectionProxy"

# Every statement of the program, for the test that prepares each and compares its columns with its Struct.
statements: list["Query[Any] | Command"] = []


class Command:
    """A statement that returns no rows."""

    def __init__(self, name: str, source: Path) -> None:
        self.name, self.source = name, source
        self.text = _texts(source)[name]
        statements.append(self)

    async def run(self, db: Connection, *arguments: object) -> str:
        """Execute it; returns Postgres' command tag."""
        tag: str = await db.execute(self.text, *arguments)
        return tag

    async def run_many(self, db: Connection, rows: Sequence[tuple[object, ...]]) -> None:
        """Execute it once for each row of arguments."""
        await db.executemany(self.text, rows)


class Query(Generic[Row]):
    """A statement whose columns are, in order, the fields of a Struct."""

    def __init__(self, name: str, row: type[Row], source: Path) -> None:
        self.name, self.row, self.source = name, row, source
        self.text = _texts(source)[name]
        statements.append(self)

    async def all(self, db: Connection, *arguments: object) -> list[Row]:
        """Every row."""
        return [self.row(*record) for record in await db.fetch(self.text, *arguments)]

    async def one(self, db: Connection, *arguments: object) -> Row | None:
        """The first row, None where there is none."""
        record = await db.fetchrow(self.text, *arguments)
        return None if record is None else self.row(*record)


def query(name: str, row: type[Row]) -> Query[Row]:
    """The statement `-- name: <name>` of the calling module's `.sql`, with the Struct of its rows."""
    return Query(name, row, _beside_caller())


def command(name: str) -> Command:
    """The statement `-- name: <name>` of the calling module's `.sql`, which returns no rows."""
    return Command(name, _beside_caller())


def _beside_caller() -> Path:
    return Path(sys._getframe(2).f_code.co_filename).with_suffix(".sql")


@cache
def _texts(source: Path) -> dict[str, str]:
    parts = re.split(r"^-- name: (\w+)\n", source.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
