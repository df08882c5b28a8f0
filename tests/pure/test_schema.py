"""The files of the schema and of the statements."""

from itertools import chain
from pathlib import Path

from indexer.rows import tables
from shared import schema, sql
from tests.statements import every_statement

ROOT = Path(__file__).parents[2]
PROGRAM = ("api", "indexer", "shared")
# The text of `schema.sql` in each version; those of released versions never change.
_FROZEN = {int(path.stem): path for path in sorted((ROOT / "tests" / "schemas").glob("*.sql"))}


def test_each_module_of_a_derived_table_exists() -> None:
    for derived in tables.DERIVED:
        assert (ROOT / "indexer" / f"{derived.module}.py").exists(), derived


def test_every_statement_of_a_file_is_used() -> None:
    assert every_statement(), "all modules are imported"
    for source in (*ROOT.glob("indexer/**/*.sql"), *ROOT.glob("api/**/*.sql")):
        for line in source.read_text().splitlines():
            if line.startswith("-- name: "):
                assert (source, line.removeprefix("-- name: ")) in sql.used, f"{line} of {source.name} has no caller"


def test_no_line_of_sql_is_longer_than_120_columns() -> None:
    long = []
    for source in (ROOT / "schema.sql", *chain.from_iterable((ROOT / name).rglob("*.sql") for name in PROGRAM)):
        is_schema = source.name == "schema.sql" or source.parent.name == "migrations"
        in_function = False  # of the schema, whose text only a migration may change
        for number, line in enumerate(source.read_text().splitlines(), 1):
            in_function ^= is_schema and line.count("$$") % 2 == 1
            if len(line) > 120 and not in_function:
                long.append(f"{source.name}:{number}")
    assert long == []


def test_a_change_of_the_schema_requires_a_new_version() -> None:
    newest = max(_FROZEN)
    assert newest == schema.VERSION, f"tests/schemas/{schema.VERSION:04}.sql is missing: a copy of schema.sql"
    assert (ROOT / "schema.sql").read_text() == _FROZEN[newest].read_text(), (
        f"schema.sql is not that of version {newest} any more: a new version and a migration are missing"
    )


def test_each_version_after_the_first_has_one_migration() -> None:
    first, *later = sorted(_FROZEN)
    assert first == schema._OLDEST_VERSION
    assert [int(path.name[:4]) for path in sorted(schema._MIGRATIONS.glob("*.sql"))] == later


def test_every_writing_transaction_checks_the_schema_version() -> None:
    for source in (*ROOT.glob("indexer/**/*.py"), *ROOT.glob("api/**/*.py")):
        for line in source.read_text().splitlines():
            # verify/tables/catalog.py undoes what it writes.
            if ".transaction(" in line and source != ROOT / "indexer/verify/tables/catalog.py":
                assert "readonly=True" in line, f"{source.name}: {line.strip()}"
