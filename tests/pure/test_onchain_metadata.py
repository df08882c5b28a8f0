"""CIP-68 metadata as Blockfrost's own code shows it, and the parts of a datum as they stand in its CBOR."""

import json
from pathlib import Path
from typing import Any

import cbor2
import pytest

from api.blockfrost import onchain_metadata
from api.chain import plutus_data
from shared.ledger import label_prefix

TOLD = json.loads((Path(__file__).parent.parent / "vectors" / "blockfrost-cip68.json").read_text())


@pytest.mark.parametrize("told", TOLD)
def test_metadata_is_as_blockfrosts_code_shows_it(told: dict[str, Any]) -> None:
    """The answers of `getMetadataFromOutputDatum` and `validateCIP68Metadata` about random datums."""
    shown = onchain_metadata.of_datum(bytes.fromhex(told["datum"]), label_prefix(told["label"]) + b"name")
    found = (None, None, None) if shown is None else (shown.metadata, shown.standard, shown.extra)
    assert found == (told["metadata"], told["version"], told["extra"])


def test_nothing_is_added_and_nothing_left_out() -> None:
    fields = {b"name": b"a", b"image": b"b", b"traits": {b"hat": [b"red", 7]}, 5: b"five"}
    shown = onchain_metadata.of_datum(cbor2.dumps(cbor2.CBORTag(121, [fields, 1])), label_prefix(222) + b"name")
    assert shown is not None
    assert shown.metadata == {
        "name": "a",
        "image": "b",
        "traits": cbor2.dumps(fields[b"traits"]).hex(),
        "5": "4466697665",
    }


@pytest.mark.parametrize(
    "datum", ["", "d8", "d879", "80", "d8799f", "d8799fa1ff", "d87981a1", "d8668182", "d87982a000"]
)
def test_a_broken_datum_has_no_metadata(datum: str) -> None:
    assert onchain_metadata.of_datum(bytes.fromhex(datum), label_prefix(222) + b"name") is None


@pytest.mark.parametrize("head", ["d879", "d87f", "d90500", "d866821903e7"])
@pytest.mark.parametrize("form", ["9f{}ff", "83{}", "9803{}"])
def test_the_parts_of_a_datum_keep_their_bytes(head: str, form: str) -> None:
    """Re-encoded, they would differ: indefinite lengths, wide heads, bytes in chunks, repeated keys."""
    parts = ["bf416118410001ff", "5f4161ff", "d8799f1b0000000000000001ff"]
    datum = bytes.fromhex(head + form.format("".join(parts)))
    fields = plutus_data.fields_of(datum)
    assert fields is not None and [each.hex() for each in fields] == parts
    assert plutus_data.pairs_of(bytes.fromhex("a24161004161c24101")) == [
        (b"\x41a", b"\x00"),
        (b"\x41a", b"\xc2\x41\x01"),
    ]
    assert plutus_data.pairs_of(datum) is None and plutus_data.fields_of(fields[0]) is None
