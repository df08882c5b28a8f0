"""Compare datums and scripts with their hashes: a part of verify.

Postgres can't compute them, so processes do.
"""

import asyncpg
import msgspec

from indexer.verify.results import MOST_SHOWN, Difference
from shared import sql
from shared.ledger import datum_hash_of, script_hash_of


class Wrong(msgspec.Struct, frozen=True):
    """The first datums and scripts that do not match their hashes."""

    datums: list[Difference]
    scripts: list[Difference]


async def wrong(db: asyncpg.Connection, first_tx_id: int, next_tx_id: int) -> Wrong:
    """The wrong ones among those that transactions of a range showed first; `next_tx_id` is not in it."""
    datums = [("datum", row.hash, datum_hash_of(row.body)) for row in await _datums.all(db, first_tx_id, next_tx_id)]
    scripts = [
        ("script", row.hash, script_hash_of(row.language, row.body))
        for row in await _scripts.all(db, first_tx_id, next_tx_id)
    ]
    return Wrong(_differing(datums), _differing(scripts))


def _differing(compared: list[tuple[str, bytes, bytes]]) -> list[Difference]:
    found = [
        Difference(f"hash of {kind}", None, given.hex(), expected.hex())
        for kind, given, expected in compared
        if given != expected
    ]
    return found[:MOST_SHOWN]


class _Datum(msgspec.Struct, frozen=True):
    hash: bytes
    body: bytes


class _Script(msgspec.Struct, frozen=True):
    hash: bytes
    language: int
    body: bytes


_sql = sql.beside(__file__)
_datums = _sql.query("datums", _Datum)
_scripts = _sql.query("scripts", _Script)
