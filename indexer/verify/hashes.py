"""Compare datums and scripts with their hashes: a part of verify.

Postgres can't compute the hashes, so processes do.
"""

import asyncpg
import msgspec

from indexer.verify.results import Difference
from shared import sql
from shared.ledger import datum_hash_of, script_hash_of


class Shown(msgspec.Struct, frozen=True):
    """The datums and scripts that transactions of a range showed first.

    `datums` and `scripts` have the tx_id by hash; the other fields have those that do not match their hashes.
    """

    datums: dict[bytes, int]
    scripts: dict[bytes, int]
    wrong_datums: list[Difference]
    wrong_scripts: list[Difference]


async def shown(db: asyncpg.Connection, first_tx_id: int, next_tx_id: int) -> Shown:
    """The datums and scripts of a range of transactions; `next_tx_id` is not in it."""
    datums = await _datums.all(db, first_tx_id, next_tx_id)
    scripts = await _scripts.all(db, first_tx_id, next_tx_id)
    return Shown(
        {row.hash: row.tx_id for row in datums},
        {row.hash: row.tx_id for row in scripts},
        _differing("datum", [(row.hash, datum_hash_of(row.body)) for row in datums]),
        _differing("script", [(row.hash, script_hash_of(row.language, row.body)) for row in scripts]),
    )


def _differing(kind: str, compared: list[tuple[bytes, bytes]]) -> list[Difference]:
    return [
        Difference(f"hash of {kind}", None, given.hex(), expected.hex())
        for given, expected in compared
        if given != expected
    ]


class _Datum(msgspec.Struct, frozen=True):
    tx_id: int
    hash: bytes
    body: bytes


class _Script(msgspec.Struct, frozen=True):
    tx_id: int
    hash: bytes
    language: int
    body: bytes


_sql = sql.beside(__file__)
_datums = _sql.query("datums", _Datum)
_scripts = _sql.query("scripts", _Script)
