"""Named statements from the `.sql` file beside a module, each bound to the Struct or the type of its rows.

A module declares them at import: `_sql = sql.beside(__file__)`, then `_sql.query("tip", Tip)` for each.

Statements that differ in a table or a direction share one text with placeholders, such as `FROM {holder}`. The module
that declares them fills each placeholder: `_sql.query("holders", Row, holder="policy_holder")`. The values are part of
the program, never input from a caller.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import asyncpg
import msgspec

Row = TypeVar("Row")
StructT = TypeVar("StructT", bound=msgspec.Struct)
Connection: TypeAlias = "asyncpg.Connection | asyncpg.pool.PoolConnectionProxy"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")

# Every statement of the program, for the test that prepares each and compares its columns with its Struct.
statements: list["Query[Any] | Command"] = []

# The file and name of every text that is a statement, or a part of one.
used: set[tuple[Path, str]] = set()


class Command:
    """A statement that returns no rows."""

    def __init__(self, name: str, source: Path, parts: Mapping[str, str]) -> None:
        self.name, self.source = name, source
        self.text = _filled(name, source, parts)
        statements.append(self)

    async def run(self, db: Connection, *arguments: object) -> str:
        """Execute it; returns Postgres' command tag."""
        tag: str = await db.execute(self.text, *arguments)
        return tag


class Query(Generic[Row]):
    """A statement that returns rows: Structs of its columns in order or, if it has one column, values of a type."""

    def __init__(self, name: str, row: type[Row], source: Path, parts: Mapping[str, str]) -> None:
        self.name, self.row, self.source = name, row, source
        self.text = _filled(name, source, parts)
        self._read: Callable[..., Row] = row if isinstance(row, type) and issubclass(row, msgspec.Struct) else _value
        statements.append(self)

    async def all(self, db: Connection, *arguments: object) -> list[Row]:
        """Every row."""
        return list(starmap(self._read, await db.fetch(self.text, *arguments)))

    async def parts(self, db: Connection, *arguments: object, rows: int) -> AsyncIterator[list[Row]]:
        """Every row, `rows` at a time, through a cursor. The connection must be in a transaction."""
        cursor = await db.cursor(self.text, *arguments)
        while records := await cursor.fetch(rows):
            yield list(starmap(self._read, records))

    async def one(self, db: Connection, *arguments: object) -> Row | None:
        """The first row, or None."""
        record = await db.fetchrow(self.text, *arguments)
        return None if record is None else self._read(*record)

    async def only(self, db: Connection, *arguments: object) -> Row:
        """The row of a statement that always has one, such as a count or an insert."""
        record = await db.fetchrow(self.text, *arguments)
        assert record is not None, f"{self.name} of {self.source.name} returned no row"
        return self._read(*record)


def _value(value: Any) -> Any:
    return value


class StatementFile:
    """The statements of one `.sql` file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def text(self, name: str, /, **parts: str) -> str:
        """The text `-- name: <name>`, which is a part of a statement; `parts` fill its placeholders."""
        return _filled(name, self._path, parts)

    def query(self, name: str, row: type[StructT], /, **parts: str) -> Query[StructT]:
        """The statement `-- name: <name>`, with the Struct of its rows.

        `parts` fill its placeholders. Raises ValueError if one is missing or has no placeholder.
        """
        return Query(name, row, self._path, parts)

    def values(self, name: str, kind: type[Row], /, **parts: str) -> Query[Row]:
        """The statement `-- name: <name>` with one column, which is never null; `parts` as in `query`."""
        return Query(name, kind, self._path, parts)

    def command(self, name: str, /, **parts: str) -> Command:
        """The statement `-- name: <name>`, which returns no rows; `parts` as in `query`."""
        return Command(name, self._path, parts)


def beside(module: str) -> StatementFile:
    """The `.sql` file next to a module and of the same name; `module` is its `__file__`."""
    return StatementFile(Path(module).with_suffix(".sql"))


def columns(rows: Iterable[tuple[Any, ...]], *, empty: int = 0) -> list[list[Any]]:
    """The columns of rows, as arrays for `unnest`. Without rows, there are `empty` empty columns."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(empty)]


@cache
def _texts(source: Path) -> dict[str, str]:
    pieces = re.split(r"^-- name: (\w+)\n", source.read_text(), flags=re.MULTILINE)
    return dict(zip(pieces[1::2], (text.strip() for text in pieces[2::2]), strict=True))


def _filled(name: str, source: Path, parts: Mapping[str, str]) -> str:
    text = _texts(source)[name]
    placeholders = set(_PLACEHOLDER.findall(text))
    if placeholders != parts.keys():
        raise ValueError(
            f"{name} of {source.name} has the placeholders {sorted(placeholders)}, but got {sorted(parts)}"
        )
    used.add((source, name))
    return _PLACEHOLDER.sub(lambda placeholder: parts[placeholder[1]], text)
