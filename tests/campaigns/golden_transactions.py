"""`python -m tests.campaigns.golden_transactions --folder DIR`: the golden transactions of other repositories are read.

DIR holds checkouts of repositories such as IntersectMBO/cardano-ledger, IntersectMBO/cardano-cli and
IntersectMBO/cardano-api, whose tests keep transactions of every era, up to those that no network has yet. Transactions
are the files `*.cbor`, what is nested in them as a transaction, and JSON files with a `cborHex` whose `type` says that
it is one. Each must have the shape that `api/transaction_cbor.py` expects, and the id that follows from the bytes that
cbor2 takes as its body, where cbor2 can read it. Their networks are printed, not judged: golden files mix them.
"""

import io
import json
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Annotated

import cbor2
import typer

from api.transaction_cbor import contents
from shared.cbor import ARRAY, MAP, Malformed, Reader, parts_of, unsigned

_REQUIRED = {0, 1, 2}  # the keys of a body: inputs, outputs and fee


def main(
    folder: Annotated[Path, typer.Option(help="Where the checkouts are.", exists=True, file_okay=False)],
) -> None:
    """Read every golden transaction below a folder."""
    counts: Counter[str] = Counter()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        for sent in _transactions(path):
            name = str(path.relative_to(folder))
            counts["transactions"] += 1
            try:
                found = contents(sent)
            except Malformed as refused:
                counts["refused"] += 1
                print(f"REFUSED {name}: {refused}: {sent.hex()[:120]}")
                continue
            expected = _id_by_cbor2(sent)
            counts["with an id by cbor2" if expected else "beyond cbor2"] += 1
            counts["unsigned"] += not found.signed
            if expected not in (None, found.tx_hash):
                counts["with another id"] += 1
                print(f"ANOTHER ID {name}: {found.tx_hash.hex()}")
            if len(sent) == path.stat().st_size or path.suffix != ".cbor":
                print(f"{name}: {len(parts_of(sent))} elements, {found.size_bytes} bytes, networks {found.networks}")
    print(", ".join(f"{number} {what}" for what, number in counts.items()) or "no transactions")
    sys.exit(not counts["transactions"] or bool(counts["refused"] + counts["with another id"]))


def _transactions(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    if path.suffix == ".cbor":
        yield from _nested(content)
        return
    try:
        envelope = json.loads(content)
        kind, cbor = envelope["type"], bytes.fromhex(envelope["cborHex"])
    except (ValueError, LookupError, TypeError):
        return
    if "Tx" in kind.split()[:2] or kind == "TxSignedShelley":
        yield cbor


def _nested(data: bytes) -> Iterator[bytes]:
    """The outermost items that look like transactions."""
    waiting = [0]
    while waiting:
        at = waiting.pop()
        if at >= len(data):
            continue
        reader = Reader(data, at)
        reader.untag()
        if reader.next_major() not in (ARRAY, MAP):
            continue
        parts = parts_of(data, at)
        if len(parts) in (3, 4) and _is_body(data, parts[0][0]) and Reader(data, parts[1][0]).next_major() == MAP:
            reader.skip()
            yield data[at : reader.at]
        else:
            waiting += [start for start, _ in reversed(parts)]


def _is_body(data: bytes, at: int) -> bool:
    if Reader(data, at).next_major() != MAP:
        return False
    return {unsigned(data, key) for key, _ in parts_of(data, at)[::2]} >= _REQUIRED


def _id_by_cbor2(sent: bytes) -> bytes | None:
    file = io.BytesIO(sent)
    file.seek(1)
    try:
        cbor2.CBORDecoder(file).decode()
    except Exception:  # noqa: BLE001 - its tag decoders raise many kinds
        return None
    return blake2b(sent[1 : file.tell()], digest_size=32).digest()


if __name__ == "__main__":
    typer.run(main)
