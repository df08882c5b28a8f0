"""The content of a chain's tables, in a form that is equal for two databases with the same chain."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import asyncpg

from shared import packed
from shared.ledger import LOVELACE_NO

Row = dict[str, Any]
Dump = dict[str, list[Row]]

# Tables that number byte strings. The numbers depend on the order of arrival and survive rollbacks, so a dump shows
# the byte strings instead. The columns named here have no other content.
NATURAL_KEYS = {
    "stake": ("raw",),
    "address": ("stake_no", "raw"),
    "pool": ("pool_id",),
    "policy": ("policy_id",),
    "asset": ("policy_no", "fingerprint", "name"),
}
# Data that the node reported about its ledger, and the number of its rollbacks, which are not part of the chain, and
# stake snapshots, which only a live index takes.
NOT_OF_THE_CHAIN = {
    "rollback_depth", "ledger_state", "epoch_parameters", "genesis_configuration",
    "stake_snapshot", "pool_earning", "reward", "reward_due", "reward_round", "reward_epoch", "pool_reward",
    "node_comparison",
}  # fmt: skip
# The way in which rows were written, directly or in the steps of bulk, and the session.
NOT_OF_THE_CHAIN_COLUMNS = {("tip", "finalize_step"), ("tip", "numbering")}


async def dump(connection: asyncpg.Connection, schema: str) -> Dump:
    """All rows of a chain, table by table, sorted, with byte strings in place of their numbers.

    A column of 32 bits whose name ends in `_no`, except epochs, must refer to a table in NATURAL_KEYS. So a new table
    is covered without being named here, or fails the test.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1", schema)
        names = [table["tablename"] for table in tables if table["tablename"] not in NOT_OF_THE_CHAIN]
        numbered = await connection.fetch(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = $1 AND column_name ~ '_nos?$' AND column_name !~ 'epoch_no$'"
            " AND data_type IN ('integer', 'ARRAY')",
            schema,
        )
        keyed = await connection.fetch(
            "SELECT table_name, column_name FROM information_schema.key_column_usage WHERE table_schema = $1", schema
        )
        content = {name: await connection.fetch(f'SELECT * FROM "{schema}"."{name}"') for name in names}  # noqa: S608
    owners = {(each["table_name"], each["column_name"]): owner_of(each["column_name"]) for each in numbered}
    keys: dict[str, dict[int, Any]] = {}
    for name, columns in NATURAL_KEYS.items():
        if name in content:
            keys[name] = {
                row[f"{name}_no"]: tuple(resolved(name, c, row[c], owners, keys) for c in columns)
                for row in content[name]
            }
    content["tx"] = [unpacked(row, keys) for row in content["tx"]]
    in_key = {(each["table_name"], each["column_name"]) for each in keyed}
    for name in content.keys() - NATURAL_KEYS.keys():
        content[name] = [row for row in content[name] if not says_nothing(name, row, in_key)]
    referenced = references(content, owners)
    return {name: table_dump(name, rows, owners, keys, referenced) for name, rows in content.items()}


def unpacked(row: Any, keys: dict[str, dict[int, Any]]) -> Row:
    """A row of `tx` with its bytes unpacked, and numbers replaced by the byte strings that they stand for."""

    def named(quantities: packed.Quantities) -> dict[Any, int]:
        return {keys["asset"][asset_no]: quantity for asset_no, quantity in quantities.items()}

    def output(one: packed.Output | None) -> Any:
        return None if one is None else (keys["address"][one.address_no], one.lovelace, named(one.quantities))

    first_index, paid = packed.unpack_outputs(row["outputs"])
    return dict(row) | {
        "outputs": (first_index, [output(one) for one in paid]),
        "inputs": [
            (spent.tx_hash, spent.output_index, output(spent.source)) for spent in packed.unpack_inputs(row["inputs"])
        ],
        "mint": named(packed.unpack_mint(row["mint"])),
    }


def owner_of(column: str) -> str:
    stem = column.removesuffix("s").removesuffix("_no")
    for name in NATURAL_KEYS:
        if stem == name or stem.endswith(f"_{name}"):
            return name
    if stem == "credential":
        return "address"
    if stem.endswith("account"):
        return "account"
    raise AssertionError(f"column {column} numbers rows of no table in NATURAL_KEYS")


def resolved(
    table: str, column: str, value: Any, owners: dict[tuple[str, str], str], keys: dict[str, dict[int, Any]]
) -> Any:
    owner = owners.get((table, column))
    if owner is None or value is None:
        return value
    if isinstance(value, list):  # sorted by number
        return tuple(sorted((keys[owner][each] for each in value), key=repr))
    if owner == "account":
        return None if value == 0 else keys["stake"][value] if value > 0 else keys["address"][-value]
    if value == 0 and column == "lowest_address_no":  # the first bucket begins before all holders
        return None
    if value == LOVELACE_NO and column == "asset_no":  # as in address_sent
        return "lovelace"
    return keys[owner][value]


def says_nothing(table: str, row: Any, in_key: set[tuple[str, str]]) -> bool:
    """Whether a row is equivalent to a missing one: its counts are 0."""
    values = [value for column, value in row.items() if (table, column) not in in_key]
    return bool(values) and not any(values)


def references(content: dict[str, Iterable[Any]], owners: dict[tuple[str, str], str]) -> dict[str, set[int]]:
    """The rows of numbering tables to which rows of other tables refer."""
    used: dict[str, set[int]] = defaultdict(set)
    for (table, column), owner in owners.items():
        if table not in NATURAL_KEYS:
            for row in content.get(table, ()):
                value = row[column]
                if owner == "account" and value:
                    used["stake" if value > 0 else "address"].add(abs(value))
                    continue
                used[owner].update(value if isinstance(value, list) else [] if value is None else [value])
    return used


def table_dump(
    name: str,
    rows: Iterable[Any],
    owners: dict[tuple[str, str], str],
    keys: dict[str, dict[int, Any]],
    referenced: dict[str, set[int]],
) -> list[Row]:
    dumped = []
    for row in rows:
        natural = NATURAL_KEYS.get(name, ())
        says = [value for column, value in row.items() if column not in (f"{name}_no", *natural)]
        if natural and row[f"{name}_no"] not in referenced[name] and not any(says):
            continue
        dumped.append(
            {
                column: resolved(name, column, value, owners, keys)
                for column, value in row.items()
                if not (natural and column == f"{name}_no") and (name, column) not in NOT_OF_THE_CHAIN_COLUMNS
            }
        )
    return sorted(dumped, key=lambda row: tuple(sortable(value) for value in row.values()))


def sortable(value: Any) -> tuple[bool, str]:
    return (value is None, repr(value) if not isinstance(value, int) else f"{value:+041d}")


def differences(left: Dump, right: Dump, most: int = 5) -> list[str]:
    """The first rows of each table that are in one dump only, as lines to read in a failed test."""
    found = [f"{name}: in one dump only" for name in left.keys() ^ right.keys()]
    for name in left.keys() & right.keys():
        if left[name] != right[name]:
            ours, theirs = ({repr(row) for row in rows} for rows in (left[name], right[name]))
            found += [f"{name} - {row}" for row in sorted(ours - theirs)[:most]]
            found += [f"{name} + {row}" for row in sorted(theirs - ours)[:most]]
    return found
