"""Ids of delegate representatives, compared with pycardano's."""

import pytest
from pycardano import DRep, DRepKind, ScriptHash, VerificationKeyHash
from pycardano.certificate import IdFormat

from api.chain import representatives
from shared.encoding import bech32_encode

HASH = bytes(range(28))


@pytest.mark.parametrize("form", list(IdFormat))
@pytest.mark.parametrize(
    ("packed", "theirs"),
    [
        (b"\0" + HASH, (DRepKind.VERIFICATION_KEY_HASH, VerificationKeyHash(HASH))),
        (b"\1" + HASH, (DRepKind.SCRIPT_HASH, ScriptHash(HASH))),
        (b"\2", (DRepKind.ALWAYS_ABSTAIN, None)),
        (b"\3", (DRepKind.ALWAYS_NO_CONFIDENCE, None)),
    ],
)
def test_ids_are_those_of_pycardano(
    form: IdFormat, packed: bytes, theirs: tuple[DRepKind, VerificationKeyHash]
) -> None:
    text = DRep(*theirs, id_format=form).encode()
    assert representatives.parse(text) == packed
    assert representatives.show(packed) == DRep(*theirs).encode()


@pytest.mark.parametrize(
    "text",
    [
        "drep1x",
        bech32_encode("drep", b"\x21" + HASH),
        bech32_encode("drep", HASH[1:]),
        bech32_encode("drep_script", b"\x22" + HASH),
        bech32_encode("pool", HASH),
        HASH.hex(),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        representatives.parse(text)
