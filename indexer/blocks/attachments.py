"""Datums and scripts of a transaction: those attached to its outputs, and those among its witnesses. Pure."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import cbor2
import msgspec

from indexer.blocks import transaction_cbor
from indexer.ogmios import frames
from indexer.ogmios.frames import hash_bytes
from shared import address
from shared.ledger import HASH28_BYTES, NATIVE, SCRIPT_LANGUAGES, datum_hash_of, script_hash_of
from shared.packed import Attached

HashedScript = tuple[int, bytes]
"""The index of the language in SCRIPT_LANGUAGES, and the bytes that are hashed."""


class Attachments(msgspec.Struct, frozen=True, gc=False):
    """Datums and scripts of a transaction: `attached` has their hashes for each output that has any."""

    attached: list[Attached] = []
    datums: dict[bytes, bytes] = {}
    scripts: dict[bytes, HashedScript] = {}


def collect(tx: frames.SubTransaction, outputs: list[frames.Output], first_index: int = 0) -> Attachments:
    """The datums and scripts among the witnesses of a transaction and in its outputs.

    Outputs are numbered from `first_index`. Raises ValueError for invalid hex.
    """
    datums = {hash_bytes(given): bytes.fromhex(body) for given, body in tx.datums.items()} if tx.datums else {}
    sent = _Sent(tx)
    scripts = _witnessed(tx, sent) if tx.scripts else {}
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
        if script is not None and (read := _referred(script, sent, index)) is not None:
            script_hash = script_hash_of(*read)
            scripts[script_hash] = read
        if datum_hash is not None or script_hash is not None:
            attached.append(Attached(index, datum_hash, datum is not None, script_hash))
    return Attachments(attached, datums, scripts)


def _witnessed(tx: frames.SubTransaction, sent: "_Sent") -> dict[bytes, HashedScript]:
    """The scripts among the witnesses and in the auxiliary data, by the hash that the node gives.

    One is left out if none of the bytes that it may have has this hash.
    """
    scripts = dict[bytes, HashedScript]()
    for text, script in tx.scripts.items():
        given = hash_bytes(text, HASH28_BYTES)
        read = next((reading for reading in _readings(script) if script_hash_of(*reading) == given), None)
        if read is not None:
            scripts[given] = read
        elif _lacks_bytes(script) and (body := sent.witnessed.get(given)) is not None:
            scripts[given] = NATIVE, body
    return scripts


def _referred(script: frames.Script, sent: "_Sent", index: int) -> HashedScript | None:
    """The script of an output; None if its language or its bytes are unknown (docs/decisions/0058).

    Nothing gives the hash of a reference script. One that the node sends as JSON only is taken from the transaction's
    CBOR or, without CBOR, encoded if the transaction has the hash of that encoding elsewhere.
    """
    readings = _readings(script)
    if not _lacks_bytes(script):
        return next(iter(readings), None)
    if sent.cbor is not None:
        body = sent.referred.get(index)
        return None if body is None else (NATIVE, body)
    return next((reading for reading in readings if script_hash_of(*reading) in sent.named), None)


class _Sent:
    """What tells the bytes of a transaction's native scripts. Each part is read once, if a script needs it.

    CBOR of another shape, as of an era to come, has no scripts.
    """

    def __init__(self, tx: frames.SubTransaction) -> None:
        self._tx = tx

    @cached_property
    def cbor(self) -> bytes | None:
        return self._tx.sent

    @cached_property
    def witnessed(self) -> dict[bytes, bytes]:
        """The native scripts among the witnesses and in the auxiliary data, by hash."""
        try:
            return {} if self.cbor is None else transaction_cbor.native_scripts(self.cbor)
        except ValueError:
            return {}

    @cached_property
    def referred(self) -> dict[int, bytes]:
        """The native scripts of outputs, by the output's index."""
        try:
            return {} if self.cbor is None else transaction_cbor.native_reference_scripts(self.cbor)
        except ValueError:
            return {}

    @cached_property
    def named(self) -> set[bytes]:
        """The hashes of scripts that it has: among its witnesses, policies, and the addresses that it pays."""
        paid = [address.parts_of(address.of_node(output.address)) for output in self._tx.outputs]
        credentials = [part for parts in paid for part in (parts.payment, parts.stake) if part is not None]
        hashes = {credential.hash for credential in credentials}
        return {bytes.fromhex(text) for text in (*self._tx.scripts, *self._tx.mint)} | hashes


def _lacks_bytes(script: frames.Script) -> bool:
    return script.cbor is None and script.language == SCRIPT_LANGUAGES[NATIVE]


def _readings(script: frames.Script) -> Sequence[HashedScript]:
    """What a script may be: one reading if the node sends its bytes, none if its language is unknown."""
    if script.language not in SCRIPT_LANGUAGES:
        return ()
    if script.cbor is not None:
        return ((SCRIPT_LANGUAGES.index(script.language), bytes.fromhex(script.cbor)),)
    return _encodings(bytes(script.json)) if _lacks_bytes(script) else ()


@lru_cache(maxsize=4_096)
def _encodings(json: bytes) -> Sequence[HashedScript]:
    """The usual encodings of a native script that the node sends as JSON only; none if it has an unknown clause, or is
    nested too deep.

    Most libraries write the length of every list. The ledger's encoder, and so cardano-cli, leaves out that of a list
    with more than 23 items (cardano-ledger `variableListLenEncoding`). Mints repeat their scripts, hence the cache.
    """
    try:
        tree = _tree(msgspec.json.decode(json)) if json else None
        bodies = () if tree is None else dict.fromkeys((cbor2.dumps(tree), _ledgers(tree)))
    except RecursionError:  # scripts may nest some thousand levels
        return ()
    return tuple((NATIVE, body) for body in bodies)


def _ledgers(tree: Any) -> bytes:
    """A clause as the ledger encodes it."""
    if not isinstance(tree, list):
        return cbor2.dumps(tree)
    parts = b"".join(map(_ledgers, tree))
    return b"\x9f" + parts + b"\xff" if len(tree) > _MAX_DEFINITE_LENGTH else bytes((0x80 | len(tree),)) + parts


_MAX_DEFINITE_LENGTH = 23


def _tree(clause: Any) -> list[Any] | None:
    """A clause as in the CDDL's `native_script`; None if it is not there.

    NOTE: the JSON of Dijkstra's `guard` has a hash without saying whether it is that of a key or of a script.
    """
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
