"""Bech32 (BIP-173, as CIP-5 uses it: no limit of length) and base58 (the Bitcoin alphabet, Byron addresses)."""

_CHARSET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
# Each letter as the digit that `int` reads in base 32, every other byte as something that it refuses.
_DIGITS = bytes.maketrans(_CHARSET.encode(), b"0123456789abcdefghijklmnopqrstuv")
_TO_DIGITS = bytes(_DIGITS[byte] if chr(byte) in _CHARSET else ord("!") for byte in range(256))
_VALUE = {letter: value for value, letter in enumerate(_CHARSET)}
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
# NOTE: ten bits at a time halve the look-ups of an encoding; addresses are encoded per output of every answer.
_PAIRS = [first + second for first in _CHARSET for second in _CHARSET]

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE58_VALUE = {letter: value for value, letter in enumerate(_BASE58)}


def _polymod_step(checksum: int, value: int) -> int:
    top = checksum >> 25
    checksum = (checksum & 0x1FFFFFF) << 5 ^ value
    for bit in range(5):
        if top >> bit & 1:
            checksum ^= _GENERATOR[bit]
    return checksum


# The checksum is linear: stepping by 0 maps each of the 32 top values to one mask, known beforehand.
_MASK = [_polymod_step(top << 25, 0) for top in range(32)]


def _polymod(checksum: int, values: list[int]) -> int:
    mask = _MASK
    for value in values:
        checksum = (checksum & 0x1FFFFFF) << 5 ^ value ^ mask[checksum >> 25]
    return checksum


def _hrp_checksum(hrp: str) -> int:
    return _polymod(1, [ord(c) >> 5 for c in hrp] + [0] + [ord(c) & 31 for c in hrp])


def bech32_encode(hrp: str, payload: bytes) -> str:
    """Bytes as bech32 text with the human-readable part `hrp`."""
    bits = len(payload) * 8
    padding = -bits % 10
    number = int.from_bytes(payload) << padding
    pairs = "".join([_PAIRS[number >> shift & 1023] for shift in range(bits + padding - 10, -1, -10)])
    letters = pairs[: (bits + 4) // 5]
    checksum = _polymod(_hrp_checksum(hrp), [_VALUE[letter] for letter in letters] + [0] * 6) ^ 1
    return hrp + "1" + letters + "".join([_CHARSET[checksum >> shift & 31] for shift in (25, 20, 15, 10, 5, 0)])


def bech32_decode(text: str) -> tuple[str, bytes]:
    """The human-readable part and the bytes of bech32 text, all lower or all upper case.

    Raises ValueError where the text is not bech32 or its checksum or padding is wrong.
    """
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
    """The bytes of bech32 text whose checksum need not be looked at: the node wrote it.

    Raises ValueError where the letters are not of the alphabet.
    """
    letters = text[text.rindex("1") + 1 : -6].encode()
    bits = len(letters) * 5
    return (int(b"0" + letters.translate(_TO_DIGITS), 32) >> bits % 8).to_bytes(bits // 8)


def base58_encode(payload: bytes) -> str:
    """Bytes as base58 text; each leading zero byte is a leading `1`."""
    number = int.from_bytes(payload)
    letters = []
    while number:
        number, digit = divmod(number, 58)
        letters.append(_BASE58[digit])
    zeros = len(payload) - len(payload.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(letters))


def base58_decode(text: str) -> bytes:
    """The bytes of base58 text. Raises ValueError where a letter is not of the alphabet."""
    number = 0
    try:
        for letter in text:
            number = number * 58 + _BASE58_VALUE[letter]
    except KeyError:
        raise ValueError("not base58") from None
    zeros = len(text) - len(text.lstrip("1"))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8)
