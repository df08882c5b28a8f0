"""Ids of delegate representatives, as CIP-129 writes them; the forms of CIP-105 are read as well."""

from api.chain.certificates import Representative, show_representative
from shared import packed
from shared.encoding import bech32_decode, bech32_encode
from shared.ledger import HASH28_BYTES

_OF_A_KEY, _OF_A_SCRIPT = b"\x22", b"\x23"  # the first byte of an id (CIP-129)
_PREDEFINED = {"abstain": "drep_always_abstain", "noConfidence": "drep_always_no_confidence"}
_FORMS = {  # human-readable part and first byte, which forms of CIP-105 lack, with the kind of credential in the CDDL
    ("drep", _OF_A_KEY): b"\0",
    ("drep", _OF_A_SCRIPT): b"\1",
    ("drep", b""): b"\0",
    ("drep_vkh", b""): b"\0",
    ("drep_script", b""): b"\1",
}


def parse(text: str) -> bytes:
    """A representative from its id, as `packed.Certificate` has it. Raises ValueError."""
    for number, name in packed.FIXED_REPRESENTATIVES.items():
        if text == _PREDEFINED[name]:
            return bytes((number,))
    prefix, payload = bech32_decode(text)
    kind = _FORMS.get((prefix, payload[:-HASH28_BYTES]))
    if kind is None or len(payload) < HASH28_BYTES:
        raise ValueError(text)
    return kind + payload[-HASH28_BYTES:]


def show(representative: bytes) -> str:
    """The id of a representative in a certificate."""
    return show_id(show_representative(representative))


def show_id(representative: Representative) -> str:
    """The id of a representative. A predefined one has the name that explorers give it."""
    match representative:
        case Representative("registered", str(digest), origin):
            kind = _OF_A_SCRIPT if origin == "script" else _OF_A_KEY
            return bech32_encode("drep", kind + bytes.fromhex(digest))
    return _PREDEFINED[representative.type]
