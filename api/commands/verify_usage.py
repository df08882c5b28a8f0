"""`python -m api verify-usage`: compare minutes, hours, days and totals of usage with each other.

Each statement has its own snapshot, and an API and an aggregator may run.
"""

import datetime
from uuid import UUID

import asyncpg
import msgspec
import typer

from api.commands.database import on_database
from shared import sql
from shared.command import EmbeddedOption

_MAX_CREDENTIALS = 200  # in one statement
_MAX_SHOWN = 100
_NO_ID = UUID(int=0)


class Difference(msgspec.Struct, frozen=True):
    """Figures of a credential, on a day (UTC) or since its creation, that contradict each other."""

    credential_id: UUID
    day: datetime.date | None
    compared: str
    has: str
    with_those: str
    expected: str

    def __str__(self) -> str:
        when = "" if self.day is None else f" on {self.day}"
        return (
            f"credential {self.credential_id}{when}: {self.compared} {self.has or 'missing'},"
            f" {self.with_those} {self.expected or 'missing'}"
        )


_sql = sql.beside(__file__)
_next_credentials = _sql.values("next_credentials", UUID)
_differences = _sql.query("differences", Difference)


async def differences(db: asyncpg.Connection) -> tuple[int, list[Difference]]:
    """The number of credentials that were compared, and the first differences."""
    compared, shown, last_id = 0, list[Difference](), _NO_ID
    while len(shown) < _MAX_SHOWN and (ids := await _next_credentials.all(db, last_id, _MAX_CREDENTIALS)):
        shown += await _differences.all(db, ids, _MAX_SHOWN - len(shown))
        compared, last_id = compared + len(ids), ids[-1]
    return compared, shown


def verify_usage(embedded: EmbeddedOption = False) -> None:
    """Compare minutes, hours, days and totals of usage with each other. The exit status is 1 if some differ."""
    compared, shown = on_database(differences, create=embedded)
    for difference in shown:
        typer.echo(str(difference))
    if shown:
        more = " or more" if len(shown) == _MAX_SHOWN else ""
        typer.echo(f"{len(shown)}{more} differences", err=True)
        raise typer.Exit(1)
    typer.echo(f"minutes, hours, days and totals of {compared} credentials agree")
