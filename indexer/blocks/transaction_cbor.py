"""What only the CBOR of a transaction says: the bytes of its scripts, the places of its certificates, and what those
that move instantaneous rewards contain. Pure.

Ogmios sends it with the flag `--include-transaction-cbor`. Keys and shapes are those of `transaction` in the CDDL of
every era from Shelley on. All functions raise ValueError for bytes of another shape.
"""

import cbor2

from shared import cbor, packed
from shared.ledger import NATIVE, script_hash_of

# Keys of `transaction_body`, `transaction_witness_set`, `auxiliary_data_map`, and of an output since Babbage.
_OUTPUTS, _CERTIFICATES, _COLLATERAL_RETURN = 1, 4, 16
_MOVED_REWARDS = 6  # the type of certificate
_NATIVE_WITNESSES, _NATIVE_AUXILIARY, _REFERENCE_SCRIPT = 1, 1, 3

_NULL = 0xF6
_MAP, _TAG = 5, 6  # major types


def certificate_types(transaction: bytes) -> list[int]:
    """The type (CDDL `certificate`) of each certificate, in order."""
    certificates = _value(transaction, _body(transaction), _CERTIFICATES)
    if certificates is None:
        return []
    return [_number(transaction, _first(transaction, part.start)) for part in cbor.parts_of(transaction, certificates)]


def instantaneous_rewards(transaction: bytes) -> list[packed.InstantaneousRewards]:
    """What the certificates that move instantaneous rewards pay to accounts, scripts first, then keys, as the ledger
    has them. Those that move lovelace from one pot to the other are left out.
    """
    certificates = _value(transaction, _body(transaction), _CERTIFICATES)
    if certificates is None:
        return []
    found = []
    for place, part in enumerate(cbor.parts_of(transaction, certificates)):
        if _number(transaction, _first(transaction, part.start)) == _MOVED_REWARDS:
            match cbor2.loads(transaction[part]):
                case [_, [0 | 1 as pot, dict(moved)]]:
                    amounts = {bytes((origin,)) + digest: lovelace for (origin, digest), lovelace in moved.items()}
                    in_order = sorted(amounts, key=lambda credential: (not credential[0], credential))
                    paid = {credential: amounts[credential] for credential in in_order}
                    found.append(packed.InstantaneousRewards(place, pot, paid))
                case [_, [0 | 1, int()]]:
                    pass
                case _:
                    raise ValueError("a certificate that moves instantaneous rewards has another shape")
    return found


def native_reference_scripts(transaction: bytes) -> dict[int, bytes]:
    """The native scripts of outputs by the output's index. The collateral return comes after the outputs."""
    body = _body(transaction)
    outputs, returned = _value(transaction, body, _OUTPUTS), _value(transaction, body, _COLLATERAL_RETURN)
    starts = [] if outputs is None else [part.start for part in cbor.parts_of(transaction, outputs)]
    scripts = {index: _native_reference(transaction, at) for index, at in enumerate((*starts, returned))}
    return {index: script for index, script in scripts.items() if script is not None}


def native_scripts(transaction: bytes) -> dict[bytes, bytes]:
    """The native scripts among the witnesses and in the auxiliary data, by hash."""
    _, witnesses, *_, auxiliary = cbor.parts_of(transaction)
    lists = _value(transaction, witnesses.start, _NATIVE_WITNESSES), _auxiliary_scripts(transaction, auxiliary.start)
    scripts = [transaction[part] for at in lists if at is not None for part in cbor.parts_of(transaction, at)]
    return {script_hash_of(NATIVE, script): script for script in scripts}


def _native_reference(transaction: bytes, output: int | None) -> bytes | None:
    """The native script of the output that begins at `output`; None without an output or such a script."""
    if output is None or not _is_map(transaction, output):
        return None
    reference = _value(transaction, output, _REFERENCE_SCRIPT)
    if reference is None:
        return None
    tagged = cbor2.loads(transaction[reference : cbor.end_of(transaction, reference)])
    if not isinstance(tagged, cbor2.CBORTag) or not isinstance(tagged.value, bytes):
        raise ValueError("a reference script is not a tagged byte string")
    language, content = cbor.parts_of(tagged.value)
    return tagged.value[content] if _number(tagged.value, language.start) == NATIVE else None


def _auxiliary_scripts(transaction: bytes, at: int) -> int | None:
    """Where the native scripts in the auxiliary data begin.

    Shelley's auxiliary data is metadata alone, Allegra's a pair of metadata and scripts, a later one a map with a tag.
    """
    if transaction[at] == _NULL or _is_map(transaction, at):
        return None
    if transaction[at] >> 5 == _TAG:
        return _value(transaction, at, _NATIVE_AUXILIARY)
    _, scripts, *_ = cbor.parts_of(transaction, at)
    return int(scripts.start)


def _body(transaction: bytes) -> int:
    return _first(transaction, 0)


def _first(data: bytes, at: int) -> int:
    """Where the first item of an array begins."""
    first, *_ = cbor.parts_of(data, at)
    return int(first.start)


def _value(data: bytes, at: int, key: int) -> int | None:
    """Where the value of a key begins in a map; None without that key."""
    parts = cbor.parts_of(data, at)
    named = zip(parts[::2], parts[1::2], strict=True)
    return next((value.start for name, value in named if cbor.unsigned(data, name.start) == key), None)


def _number(data: bytes, at: int) -> int:
    number = cbor.unsigned(data, at)
    if number is None:
        raise ValueError(f"expected a number at byte {at}")
    return number


def _is_map(data: bytes, at: int) -> bool:
    return data[at] >> 5 == _MAP
