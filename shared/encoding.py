"""Bech32 (BIP-173, without the length limit, as in CIP-5) and base58 (Bitcoin alphabet, for Byron addresses)."""

from collections.abc import Sequence
from functools import lru_cache

_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
# Maps each letter to its base 32 digit for `int`, and every other byte to one that `int` rejects.
_DIGITS = bytes.maketrans(_CHARSET.encode(), b"0123456789abcdefghijklmnopqrstuv")
_TO_DIGITS = bytes(_DIGITS[byte] if chr(byte) in _CHARSET else ord("!") for byte in range(256))
_VALUE = {letter: value for value, letter in enumerate(_CHARSET)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE58_VALUE = {letter: value for value, letter in enumerate(_BASE58)}


def _polymod_step(checksum: int, value: int) -> int:
    top = checksum >> 25
    checksum = (checksum & 0x1FFFFFF) << 5 ^ value
    for bit in range(5):
        if top >> bit & 1:
            checksum ^= _GENERATOR[bit]
    return checksum


# The checksum is linear, so each of the 32 top values contributes one mask, computed once by stepping with 0.
_MASK = [_polymod_step(top << 25, 0) for top in range(32)]


def _polymod(checksum: int, values: list[int]) -> int:
    mask = _MASK
    for value in values:
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value ^ mask[checksum >> 25]
    return checksum


# The same for two values at once, which halves the steps.
_MASK_OF_TWO = [_polymod(top << 20, [0, 0]) for top in range(1024)]
_PAIRS = [first + second for first in _CHARSET for second in _CHARSET]


@lru_cache(16)
def _hrp_checksum(hrp: str) -> int:
    return _polymod(1, [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp])


def bech32_encode(hrp: str, payload: bytes) -> str:
    """Bytes as bech32 text with the human-readable part `hrp`."""
    letters = (len(payload) * 8 + 4) // 5
    number = int.from_bytes(payload) << letters * 5 - len(payload) * 8
    paired = letters // 2 * 10
    text, checksum, mask = "", _hrp_checksum(hrp), _MASK_OF_TWO
    if letters % 2:
        first = number >> paired
        text, checksum = _CHARSET[first], _polymod(checksum, [first])
    pairs = [number >> shift & 1023 for shift in range(paired - 10, -1, -10)]
    for pair in (*pairs, 0, 0, 0):
        checksum = (checksum & 0xFFFFF) << 10 ^ pair ^ mask[checksum >> 20]
    checksum ^= 1
    pairs += (checksum >> 20, checksum >> 10 & 1023, checksum & 1023)
    return f"{hrp}1{text}{''.join([_PAIRS[pair] for pair in pairs])}"


def bech32_encode_all(hrp: str, payloads: Sequence[bytes]) -> list[str]:
    """`bech32_encode` for payloads of the same length, several times faster for a page of them.

    It works on columns: the bytes at one position of all payloads. A letter is a function of one or two bytes, and the
    checksum, which is linear, a sum of functions of each byte; `bytes.translate` computes such a function for a whole
    column.
    """
    if len(payloads) < _WORTH_COLUMNS:
        return [bech32_encode(hrp, payload) for payload in payloads]
    count, length = len(payloads), len(payloads[0])
    assert all(len(payload) == length for payload in payloads), "columns need payloads of the same length"
    padding = bytes(-length % 5)
    data = padding.join(payloads) + padding
    wide = len(data) // count
    values = bytearray(len(data) // 5 * 8)
    for place, parts in enumerate(_LETTERS_OF_FIVE):
        values[place::8] = _sum([data[at::5].translate(table) for at, table in parts])
    checks = bytearray(6 * count)
    columns = [data[at::wide] for at in range(length)]
    constant, tables = _checksum_tables(hrp, length)
    for place in range(6):
        shares = [column.translate(table) for column, table in zip(columns, tables[place], strict=True)]
        checks[place::6] = _sum([constant[place] * count, *shares])
    text, ends = values.translate(_TO_LETTERS).decode(), checks.translate(_TO_LETTERS).decode()
    step, letters = wide // 5 * 8, (length * 8 + 4) // 5
    return [
        f"{hrp}1{text[start : start + letters]}{ends[end : end + 6]}"
        for start, end in zip(range(0, len(text), step), range(0, len(ends), 6), strict=True)
    ]


def _sum(columns: Sequence[bytes]) -> bytes:
    """The sum (XOR) of columns of the same length."""
    total = 0
    for column in columns:
        total ^= int.from_bytes(column)
    return total.to_bytes(len(columns[0]))


def _letter_of_five(place: int) -> list[tuple[int, bytes]]:
    """For one letter out of eight, the bytes out of five that it depends on, each with a table of its contribution."""
    first, offset = divmod(place * 5, 8)
    shares = [(first, [byte << offset >> 3 & 31 for byte in range(256)])]
    if offset > 3:
        shares.append((first + 1, [byte >> 11 - offset for byte in range(256)]))
    return [(at, bytes(share)) for at, share in shares]


_WORTH_COLUMNS = 5
_SHIFTS = range(25, -1, -5)  # of the letters in a checksum
_LETTERS_OF_FIVE = [_letter_of_five(place) for place in range(8)]
_TO_LETTERS = _CHARSET.encode() + bytes(256 - len(_CHARSET))


@lru_cache(16)
def _checksum_tables(hrp: str, length: int) -> tuple[list[bytes], list[list[bytes]]]:
    """Each of the six letters of the checksum for payloads of zeros, and tables of what each byte adds to it."""
    letters = (length * 8 + 4) // 5
    of_zeros = _polymod(_hrp_checksum(hrp), [0] * (letters + 6)) ^ 1
    of_bits: list[int] = []  # what each bit adds to the checksum, the last bit of the last letter first
    of_letter = [_polymod(1 << bit, [0] * 6) for bit in range(5)]
    for _ in range(letters):
        of_bits += of_letter
        of_letter = [_polymod(checksum, [0]) for checksum in of_letter]
    tables: list[list[bytes]] = [[] for _ in range(6)]
    for at in range(length):
        lowest = letters * 5 - 8 * (at + 1)
        shares = [0]
        for bit in range(8):
            shares += [share ^ of_bits[lowest + bit] for share in shares]
        for table, shift in zip(tables, _SHIFTS, strict=True):
            table.append(bytes([share >> shift & 31 for share in shares]))
    return [bytes((of_zeros >> shift & 31,)) for shift in _SHIFTS], tables


def bech32_decode(text: str) -> tuple[str, bytes]:
    """The human-readable part and the bytes of bech32 text in all lower or all upper case.

    Raises ValueError if the text is not bech32, or its checksum or padding is wrong.
    """
    if not text.isascii():
        raise ValueError("not ASCII")  # lower() turns some other characters into ASCII letters
    if text != text.lower():
        if text != text.upper():
            raise ValueError("mixed case")
        text = text.lower()
    hrp, separator, data = text.rpartition("1")
    if not separator or not hrp or len(data) < 6 or not all(33 <= ord(c) <= 126 for c in hrp):
        raise ValueError("not bech32")
    try:
        values = [_VALUE[letter] for letter in data]
    except KeyError:
        raise ValueError("not bech32") from None
    if _polymod(_hrp_checksum(hrp), values) != 1:
        raise ValueError("wrong checksum")
    number = 0
    for value in values[:-6]:
        number = number << 5 | value
    spare = (len(values) - 6) * 5 % 8
    if spare >= 5 or number & ((1 << spare) - 1):
        raise ValueError("wrong padding")
    return hrp, (number >> spare).to_bytes((len(values) - 6) * 5 // 8)


def bech32_payload(text: str) -> bytes:
    """The bytes of bech32 text that the node wrote; the checksum is not verified.

    Raises ValueError if a letter is not in the alphabet.
    """
    letters = text[text.rindex("1") + 1 : -6].encode()
    bits = len(letters) * 5
    return (int(b"0" + letters.translate(_TO_DIGITS), 32) >> bits % 8).to_bytes(bits // 8)


def base58_encode(payload: bytes) -> str:
    """Bytes as base58 text; each leading zero byte becomes a leading `1`."""
    number = int.from_bytes(payload)
    letters = []
    while number:
        number, digit = divmod(number, 58)
        letters.append(_BASE58[digit])
    zeros = len(payload) - len(payload.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(letters))


def base58_decode(text: str) -> bytes:
    """The bytes of base58 text. Raises ValueError if a letter is not in the alphabet."""
    number = 0
    try:
        for letter in text:
            number = number * 58 + _BASE58_VALUE[letter]
    except KeyError:
        raise ValueError("not base58") from None
    zeros = len(text) - len(text.lstrip("1"))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8)
