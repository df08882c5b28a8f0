"""The size of a Byron transaction as cardano-db-sync counts it (`insertByronTx` in `Era/Byron/Insert.hs`): without its
witnesses, which the fees of the ledger count. Pure.

It follows from the inputs and outputs, since these transactions are encoded in only one way (CDDL `tx` of Byron):
`[[* [0, #6.24(bytes .cbor [bytes .size 32, u32])]], [* [address, u64]], {}]` with both lists of indefinite length.
"""

from collections.abc import Iterable, Sequence

_WHOLE = 6  # heads of three lists, the ends of two, the empty map
_INPUT = 6  # the head of a list of two, the 0, the tag in two bytes, the head of up to 255 bytes in two
_SOURCE = 35  # the head of a list of two, the head of 32 bytes in two, those bytes
_OUTPUT = 1  # the head of a list of two; the address is CBOR itself


def size_bytes(output_indexes: Iterable[int], paid: Sequence[tuple[bytes, int]]) -> int:
    """Given the output index that each input names, and the raw address and lovelace of each output."""
    inputs = sum(_INPUT + _SOURCE + _number(index) for index in output_indexes)
    return _WHOLE + inputs + sum(_OUTPUT + len(raw) + _number(lovelace) for raw, lovelace in paid)


def _number(value: int) -> int:
    """The bytes of a natural number in CBOR."""
    return next(size for size, limit in _SIZES if value < limit)


_SIZES = ((1, 24), (2, 2**8), (3, 2**16), (5, 2**32), (9, 2**64))
