"""Metadata as JSON: the same from CBOR and from either JSON form of a node, without loss."""

import json
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import answers
from api.blockfrost import plain
from api.chain import metadatum
from api.chain.plutus_data import MAX_LEVELS

keys = st.integers(-(2**64), 2**64) | st.text(max_size=5) | st.binary(max_size=5)
values = st.recursive(
    keys, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=10
)


def back(shown: Any) -> Any:
    """The content of a value in the detailed schema, with pairs for maps."""
    match shown:
        case {"map": pairs}:
            return [(back(pair["k"]), back(pair["v"])) for pair in pairs]
        case {"list": items}:
            return tuple(back(item) for item in items)
        case {"bytes": digits}:
            return bytes.fromhex(digits)
        case {"int": value} | {"string": value}:
            return value


def paired(value: Any) -> Any:
    """A value with pairs for maps and tuples for lists."""
    if isinstance(value, dict):
        return [(paired(key), paired(item)) for key, item in value.items()]
    return tuple(paired(item) for item in value) if isinstance(value, list) else value


@given(values)
def test_nothing_is_lost(value: Any) -> None:
    shown = metadatum.of_cbor(cbor2.dumps(value))
    assert back(shown) == paired(value)
    assert metadatum.of_json(json.dumps(shown).encode()) == shown, "a node with the detailed schema says the same"


def test_the_plain_schema_becomes_the_detailed_one() -> None:
    text = b'{"int": "5", "list": [{"1": -7}], "string": 1}'
    assert metadatum.of_json(text) == metadatum.of_cbor(
        cbor2.dumps({"int": "5", "list": [{"1": -7}], "string": 1}),
    )


def test_a_map_as_a_key_is_shown() -> None:
    assert metadatum.of_cbor(bytes.fromhex("a1a1010203")) == {
        "map": [{"k": {"map": [{"k": {"int": 1}, "v": {"int": 2}}]}, "v": {"int": 3}}]
    }


@pytest.mark.parametrize("data", [b"", b"\xf6", b"\xf5", b"\xfb" + bytes(8), b"\x81" * 5_000 + b"\x01", b"\xc1\x61x"])
def test_cbor_that_is_not_metadata_is_left_out(data: bytes) -> None:
    assert metadatum.of_cbor(data) is None


@pytest.mark.parametrize("text", [b"", b"null", b"1.5", b"[true]", b"[" * 5_000 + b"]" * 5_000])
def test_json_that_is_not_metadata_is_left_out(text: bytes) -> None:
    assert metadatum.of_json(text) is None


DETAILED_MAP = b'{"map": [{"k": {"int": 1}, "v": ', b"}]}"


def nested(levels: int) -> tuple[bytes, bytes, bytes]:
    """Maps in maps as CBOR, as plain JSON and as detailed JSON."""
    before, after = DETAILED_MAP
    plain, detailed = b'{"1": ' * levels + b"1" + b"}" * levels, before * levels + b'{"int": 1}' + after * levels
    return b"\xa1\x01" * levels + b"\x01", plain, detailed


@pytest.mark.parametrize("before", [b"\xa1", b"\x81\xa1"], ids=["maps", "maps in lists"])
def test_keys_in_keys_are_left_out_of_plain_json_before_they_grow(before: bytes) -> None:
    def shown(levels: int) -> Any:
        return plain.of_detailed(metadatum.of_cbor(b"\xa1" + before * levels + b"\x01\x02" + b"\x03" * levels))

    assert len(json.dumps(shown(3))) < 200
    for levels in (4, 24, 45):
        with pytest.raises(ValueError, match="in keys"):
            shown(levels)


def test_deep_metadata_can_be_sent_or_is_left_out() -> None:
    cbor, plain_json, detailed_json = nested(MAX_LEVELS - 1)
    for shown in (metadatum.of_cbor(cbor), metadatum.of_json(plain_json), metadatum.of_json(detailed_json)):
        assert plain.of_detailed(json.loads(answers.encode(shown))) == json.loads(plain_json)
    for levels in (MAX_LEVELS, 350, 3_000):
        cbor, plain_json, detailed_json = nested(levels)
        assert metadatum.of_cbor(cbor) is None
        assert metadatum.of_json(plain_json) is None
        assert metadatum.of_json(detailed_json) is None
