"""Compare the datums and reference scripts that outputs carry with the rows that name them: a part of verify."""

from collections.abc import Sequence

import msgspec

from indexer.verify.results import Difference
from indexer.verify.spending import Row
from shared import packed, sql
from shared.sql import Connection


async def wrong(db: Connection, rows: Sequence[Row], first_tx_id: int, next_tx_id: int) -> list[Difference]:
    """Datums and scripts of a range without their output or their row, and reference outputs with another datum."""
    carried, found = dict[tuple[int, int], packed.Attached](), list[Difference]()
    datums, scripts = dict[bytes, int](), dict[bytes, int]()
    for row in rows:
        if row.attached is None:
            continue
        first_index, outputs = packed.unpack_outputs(row.outputs)
        for index, each in packed.unpack_attached(row.attached).items():
            if not first_index <= index < first_index + len(outputs):
                found.append(Difference(f"output {row.hash.hex()}#{index} of attached", None, None, "an output"))
            carried[row.tx_id, index] = each
            if each.inline and each.datum_hash is not None:
                datums.setdefault(each.datum_hash, row.tx_id)
            if each.script_hash is not None:
                scripts.setdefault(each.script_hash, row.tx_id)
    for output in await _reference_outputs.all(db, first_tx_id, next_tx_id):
        attached = carried.get((output.tx_id, output.output_index))
        expected = None if attached is None else attached.datum_hash
        if output.datum_hash != expected:
            what = f"datum_hash of reference_output {output.output_index} of tx_id {output.tx_id}"
            found.append(Difference(what, None, _hex(output.datum_hash), _hex(expected)))
    for kind, query, hashes in (("datum", _missing_datums, datums), ("script", _missing_scripts, scripts)):
        for missing in await query.all(db, list(hashes), list(hashes.values())) if hashes else ():
            what = f"{kind} {missing.hash.hex()}"
            found.append(Difference(what, None, "no row, or a later one", f"a row by tx_id {hashes[missing.hash]}"))
    return found


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


class _ReferenceOutput(msgspec.Struct, frozen=True):
    tx_id: int
    output_index: int
    datum_hash: bytes | None


class _Hash(msgspec.Struct, frozen=True):
    hash: bytes


_sql = sql.beside(__file__)
_reference_outputs = _sql.query("reference_outputs", _ReferenceOutput)
_missing_datums = _sql.query("missing", _Hash, kind="datum")
_missing_scripts = _sql.query("missing", _Hash, kind="script")
