"""Options of all command lines: `--version`, and which database a one-off command uses."""

import sys
from typing import Annotated

import typer

from shared import schema, servers
from shared.settings import Settings
from shared.version import VERSION


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ledgerline {VERSION}, schema version {schema.VERSION}")
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
]
"""An option of every command line."""

EmbeddedOption = Annotated[
    bool, typer.Option("--embedded", help="Create an embedded database in DATA_DIR if there is none.")
]
"""An option of one-off commands: without DATABASE_URL they use an embedded database, but don't create one unasked."""


def name_database(settings: Settings) -> None:
    """Tell the operator on standard error which database a one-off command uses."""
    print(f"database: {servers.database_in_words(settings)}", file=sys.stderr)
