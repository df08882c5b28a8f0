"""Compare the datums and reference scripts that outputs carry with the rows that name them: a part of verify."""

from collections.abc import Mapping, Sequence
from itertools import compress

import msgspec

from indexer.verify.history.flows import Flows
from indexer.verify.history.hashes import Shown
from indexer.verify.history.rows import Row
from indexer.verify.history.spenders import output_no
from indexer.verify.keys import ints, places_in
from indexer.verify.results import Difference
from shared import packed, sql
from shared.sql import Connection


async def wrong(
    db: Connection, rows: Sequence[Row], flows: Flows, first_tx_id: int, next_tx_id: int, shown: Shown
) -> list[Difference]:
    """Datums and scripts of a range without their output or their row, and reference outputs with another datum.

    `shown` are the rows of datums and scripts that this range showed first.
    """
    datums, scripts = dict[bytes, int](), dict[bytes, int]()
    carriers = list[tuple[Row, int]]()
    for row in rows:
        if row.attached is None:
            continue
        for index, each in packed.unpack_attached(row.attached).items():
            carriers.append((row, index))
            if each.inline and each.datum_hash is not None:
                datums.setdefault(each.datum_hash, row.tx_id)
            if each.script_hash is not None:
                scripts.setdefault(each.script_hash, row.tx_id)
    found = _without_output(carriers, flows)
    found += await _wrong_references(db, rows, first_tx_id, next_tx_id)
    found += await _wrong_script_outputs(db, rows, first_tx_id, next_tx_id)
    found += await _missing(db, "datum", _missing_datums, datums, shown.datums)
    found += await _missing(db, "script", _missing_scripts, scripts, shown.scripts)
    return found


def _without_output(carriers: Sequence[tuple[Row, int]], flows: Flows) -> list[Difference]:
    """Those of some transactions and indexes that name no output."""
    wanted = output_no(ints([row.tx_id for row, _ in carriers]), ints([index for _, index in carriers]))
    _, known = places_in(output_no(flows.tx_id[flows.made.row], flows.made.index), wanted)
    return [
        Difference(f"output {row.hash.hex()}#{index} of attached", None, None, "an output")
        for row, index in compress(carriers, ~known)
    ]


async def _wrong_references(db: Connection, rows: Sequence[Row], first_tx_id: int, next_tx_id: int) -> list[Difference]:
    """The reference outputs whose datum is not that of their output."""
    outputs = await _reference_outputs.all(db, first_tx_id, next_tx_id)
    attached = {row.tx_id: row.attached for row in rows} if outputs else {}
    found = list[Difference]()
    for output in outputs:
        carried = packed.unpack_attached(attached.get(output.tx_id)).get(output.output_index)
        expected = None if carried is None else carried.datum_hash
        if output.datum_hash != expected:
            what = f"datum_hash of reference_output {output.output_index} of tx_id {output.tx_id}"
            found.append(Difference(what, None, _hex(output.datum_hash), _hex(expected)))
    return found


async def _wrong_script_outputs(
    db: Connection, rows: Sequence[Row], first_tx_id: int, next_tx_id: int
) -> list[Difference]:
    """The rows whose script is not that of their output. Digests compare which outputs have a row."""
    outputs = await _script_outputs.all(db, first_tx_id, next_tx_id)
    attached = {row.tx_id: row.attached for row in rows} if outputs else {}
    found = list[Difference]()
    for output in outputs:
        carried = packed.unpack_attached(attached.get(output.tx_id)).get(output.output_index)
        expected = None if carried is None else carried.script_hash
        if output.script_hash != expected:
            what = f"script_hash of script_output {output.output_index} of tx_id {output.tx_id}"
            found.append(Difference(what, None, output.script_hash.hex(), _hex(expected)))
    return found


async def _missing(
    db: Connection, kind: str, query: "sql.Query[_Hash]", wanted: Mapping[bytes, int], shown: Mapping[bytes, int]
) -> list[Difference]:
    """The datums or scripts that no transaction up to that of their output has shown.

    `wanted` has the tx_id of the output by hash.
    """
    elsewhere = {each: tx_id for each, tx_id in wanted.items() if shown.get(each, tx_id + 1) > tx_id}
    missing = await query.all(db, list(elsewhere), list(elsewhere.values())) if elsewhere else []
    return [
        Difference(f"{kind} {each.hash.hex()}", None, "no row, or a later one", f"a row by tx_id {wanted[each.hash]}")
        for each in missing
    ]


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


class _ReferenceOutput(msgspec.Struct, frozen=True):
    tx_id: int
    output_index: int
    datum_hash: bytes | None


class _ScriptOutput(msgspec.Struct, frozen=True):
    tx_id: int
    output_index: int
    script_hash: bytes


class _Hash(msgspec.Struct, frozen=True):
    hash: bytes


_sql = sql.beside(__file__)
_reference_outputs = _sql.query("reference_outputs", _ReferenceOutput)
_script_outputs = _sql.query("script_outputs", _ScriptOutput)
_missing_datums = _sql.query("missing", _Hash, kind="datum")
_missing_scripts = _sql.query("missing", _Hash, kind="script")
