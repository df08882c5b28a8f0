"""Datums and scripts of a transaction: those attached to its outputs, and those among its witnesses. Pure."""

from functools import lru_cache
from typing import Any

import cbor2
import msgspec

from indexer.ogmios import frames
from indexer.ogmios.frames import hash_bytes
from shared.ledger import HASH28_BYTES, NATIVE, SCRIPT_LANGUAGES, datum_hash_of, script_hash_of
from shared.packed import Attached

HashedScript = tuple[int, bytes]
"""The index of the language in SCRIPT_LANGUAGES, and the bytes that are hashed."""


class Attachments(msgspec.Struct, frozen=True, gc=False):
    """Datums and scripts of a transaction: `attached` has their hashes for each output that has any."""

    attached: list[Attached] = []
    datums: dict[bytes, bytes] = {}
    scripts: dict[bytes, HashedScript] = {}


def of(tx: frames.SubTransaction, outputs: list[frames.Output], first_index: int = 0) -> Attachments:
    """The datums and scripts among the witnesses of a transaction and in its outputs.

    Outputs are numbered from `first_index`. Raises ValueError for invalid hex.
    """
    datums = {hash_bytes(given): bytes.fromhex(body) for given, body in tx.datums.items()} if tx.datums else {}
    scripts = _witnessed(tx.scripts) if tx.scripts else {}
    attached = []
    for index, output in enumerate(outputs, first_index):
        datum, script = output.datum, output.script
        if datum is None and script is None and output.datum_hash is None:
            continue
        datum_hash = script_hash = None
        if datum is not None:
            body = bytes.fromhex(datum)
            datum_hash = datum_hash_of(body)
            datums[datum_hash] = body
        elif output.datum_hash is not None:
            datum_hash = hash_bytes(output.datum_hash)
        if script is not None and (read := _read(script)) is not None:
            script_hash, scripts[script_hash] = read
        attached.append(Attached(index, datum_hash, datum is not None, script_hash))
    return Attachments(attached, datums, scripts)


def _witnessed(scripts: dict[str, frames.Script]) -> dict[bytes, HashedScript]:
    """Scripts by the hash that the node gives.

    A script that the node sends only as JSON is left out if our encoding of it has another hash.
    """
    found = {}
    for text, script in scripts.items():
        given, read = hash_bytes(text, HASH28_BYTES), _read(script)
        if read is not None and read[0] == given:
            found[given] = read[1]
    return found


def _read(script: frames.Script) -> tuple[bytes, HashedScript] | None:
    """A script and its hash; None if its language or its bytes are unknown."""
    if script.language not in SCRIPT_LANGUAGES:
        return None
    language_no = SCRIPT_LANGUAGES.index(script.language)
    if script.cbor is not None:
        body = bytes.fromhex(script.cbor)
        return script_hash_of(language_no, body), (language_no, body)
    return _native(bytes(script.json)) if language_no == NATIVE else None


@lru_cache(maxsize=4_096)
def _native(json: bytes) -> tuple[bytes, HashedScript] | None:
    """A native script that the node sends as JSON only; None for a clause that is not in the CDDL's `native_script`.

    NOTE: it is encoded with definite lengths, as by the common libraries: the same bytes as on the chain, with few
    exceptions. Mints repeat their scripts, hence the cache.
    """
    tree = _tree(msgspec.json.decode(json)) if json else None
    if tree is None:
        return None
    body = cbor2.dumps(tree)
    return script_hash_of(NATIVE, body), (NATIVE, body)


def _tree(clause: Any) -> list[Any] | None:
    """A clause as in the CDDL's `native_script`."""
    match clause:
        case {"clause": "signature", "from": str(key_hash)}:
            return [0, hash_bytes(key_hash, HASH28_BYTES)]
        case {"clause": "all" | "any" as kind, "from": list(parts)}:
            trees = [_tree(part) for part in parts]
            return None if None in trees else [1 if kind == "all" else 2, trees]
        case {"clause": "some", "atLeast": int(least), "from": list(parts)}:
            trees = [_tree(part) for part in parts]
            return None if None in trees else [3, least, trees]
        case {"clause": "after" | "before" as kind, "slot": int(slot)}:
            return [4 if kind == "after" else 5, slot]
    return None
