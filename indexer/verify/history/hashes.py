"""Compare datums and scripts with their hashes, and find their transactions: a part of verify.

Postgres can't compute the hashes, so processes do.
"""

from collections.abc import Sequence
from itertools import compress

import asyncpg
import msgspec

from indexer.verify.keys import Ints, ints, places_in
from indexer.verify.results import Difference
from shared import sql
from shared.ledger import datum_hash_of, script_hash_of


class Shown(msgspec.Struct, frozen=True):
    """The datums and scripts that transactions of a range showed first.

    `datums` and `scripts` have the tx_id by hash; the other fields have those that do not match their hashes, or whose
    transaction does not exist.
    """

    datums: dict[bytes, int]
    scripts: dict[bytes, int]
    wrong_datums: list[Difference]
    wrong_scripts: list[Difference]


async def shown(db: asyncpg.Connection, tx_id: Ints, first_tx_id: int, next_tx_id: int) -> Shown:
    """The datums and scripts of a range of transactions, which have these tx_ids; `next_tx_id` is not in it."""
    datums = await _datums.all(db, first_tx_id, next_tx_id)
    scripts = await _scripts.all(db, first_tx_id, next_tx_id)
    wrong_datums = _differing("datum", [(row.hash, datum_hash_of(row.body)) for row in datums])
    wrong_scripts = _differing("script", [(row.hash, script_hash_of(row.language, row.body)) for row in scripts])
    return Shown(
        {row.hash: row.tx_id for row in datums},
        {row.hash: row.tx_id for row in scripts},
        wrong_datums + _without_transaction("datum", datums, tx_id),
        wrong_scripts + _without_transaction("script", scripts, tx_id),
    )


def _differing(kind: str, compared: list[tuple[bytes, bytes]]) -> list[Difference]:
    return [
        Difference(f"hash of {kind}", None, given.hex(), expected.hex())
        for given, expected in compared
        if given != expected
    ]


def _without_transaction(kind: str, rows: "Sequence[_Datum | _Script]", tx_id: Ints) -> list[Difference]:
    _, known = places_in(tx_id, ints([row.tx_id for row in rows]))
    return [
        Difference(f"tx_id of {kind} {row.hash.hex()}", None, str(row.tx_id), "an existing one")
        for row in compress(rows, ~known)
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
