"""All command lines: how they run, `--version`, and which database a one-off command uses."""

import sys
from typing import Annotated, Any, NoReturn

import typer
from typer.exceptions import TyperException

from shared import lifecycle, schema, servers
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


def run(commands: typer.Typer) -> NoReturn:
    """Run a command line and end the process. A wrong argument gets one line, as a wrong setting does, and status 2."""
    try:
        status = commands(standalone_mode=False)
    except TyperException as wrong:
        print(_in_one_line(wrong), end="", file=sys.stderr)
        sys.exit(lifecycle.WRONG)
    except typer.Abort:
        print("aborted", file=sys.stderr)
        sys.exit(1)
    sys.exit(status)


def _in_one_line(wrong: TyperException) -> str:
    """The refusal of an argument, which names its value; nothing after help, which has been printed.

    The message of a BadParameter of ours begins with the value. Typer leaves it out.
    """
    text = wrong.format_message()
    if isinstance(wrong, typer.BadParameter) and wrong.message:
        name = wrong.param_hint or (wrong.param.get_error_hint().strip("'") if wrong.param else "an argument")
        errors: Any = getattr(wrong.__cause__, "errors", list)()  # of Typer's own check
        value = f"{errors[0]['input']!r}: " if errors else ""
        text = f"{name} is {value}{wrong.message}"
    return f"{' '.join(text.split())}\n" if text else ""


def name_database(settings: Settings) -> None:
    """Tell the operator on standard error which database a one-off command uses."""
    print(f"database: {servers.database_in_words(settings)}", file=sys.stderr)
