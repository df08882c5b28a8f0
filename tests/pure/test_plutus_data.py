"""Datums and native scripts as JSON."""

import json
from typing import Any

import cbor2
import pytest

from api.chain import plutus_data

KEY = bytes(range(28))
# Each datum in hex with its JSON, in every form that the CDDL allows.
DATUMS: dict[str, Any] = {
    "00": {"int": 0},
    "1bffffffffffffffff": {"int": 2**64 - 1},
    "3bffffffffffffffff": {"int": -(2**64)},
    "c249010000000000000000": {"int": 2**64},
    "c349010000000000000000": {"int": -(2**64) - 1},
    "c25f41014100ff": {"int": 256},
    "40": {"bytes": ""},
    "5f42010241ffff": {"bytes": "0102ff"},
    "80": {"list": []},
    "9f01ff": {"list": [{"int": 1}]},
    "a0": {"map": []},
    # Repeated keys, keys that are lists, and the order of keys.
    "a2800101a0": {"map": [{"k": {"list": []}, "v": {"int": 1}}, {"k": {"int": 1}, "v": {"map": []}}]},
    "bf02010202ff": {"map": [{"k": {"int": 2}, "v": {"int": 1}}, {"k": {"int": 2}, "v": {"int": 2}}]},
    "d87980": {"constructor": 0, "fields": []},
    "d87f9f40ff": {"constructor": 6, "fields": [{"bytes": ""}]},
    "d9050080": {"constructor": 7, "fields": []},
    "d9057880": {"constructor": 127, "fields": []},
    "d8668218809f01ff": {"constructor": 128, "fields": [{"int": 1}]},
}


@pytest.mark.parametrize("datum", DATUMS)
def test_a_datum_is_shown_without_loss(datum: str) -> None:
    assert plutus_data.of_cbor(bytes.fromhex(datum)) == DATUMS[datum]


@pytest.mark.parametrize(
    "text",
    ["", "61", "6161", "f6", "f5", "fb3ff0000000000000", "0000", "42ff", "9f01", "ff", "1c", "5f01ff", "d86600",
     "d8668120", "d866822080", "d87800", "d87801", "c200", "c280", "d90579", "d9057980", "a1", "bf00ff", "9fff00"],
)  # fmt: skip
def test_anything_but_a_datum_has_no_json(text: str) -> None:
    assert plutus_data.of_cbor(bytes.fromhex(text)) is None


@pytest.mark.parametrize(("start", "end"), [("81", "80"), ("d87981", "80"), ("a100", "80"), ("d866820081", "80")])
def test_a_datum_that_is_nested_too_deeply_has_no_json(start: str, end: str) -> None:
    assert plutus_data.of_cbor(bytes.fromhex(start * 101 + end)) is None
    assert plutus_data.of_cbor(bytes.fromhex(start * 16_000 + end)) is None
    shown = plutus_data.of_cbor(bytes.fromhex(start * 90 + end))
    assert shown is not None
    assert json.loads(json.dumps(shown)) == shown


def test_a_native_script_is_shown_as_cardano_cli_writes_it() -> None:
    tree = [1, [[0, KEY], [2, [[4, 1], [5, 2**63]]], [3, 2, []]]]
    assert plutus_data.native_script(cbor2.dumps(tree)) == {
        "type": "all",
        "scripts": [
            {"type": "sig", "keyHash": KEY.hex()},
            {"type": "any", "scripts": [{"type": "after", "slot": 1}, {"type": "before", "slot": 2**63}]},
            {"type": "atLeast", "required": 2, "scripts": []},
        ],
    }


@pytest.mark.parametrize("body", ["", "00", "8206581c" + KEY.hex(), "820181820600", "8201" + "818201" * 5_000 + "80"])
def test_another_native_script_has_no_json(body: str) -> None:
    assert plutus_data.native_script(bytes.fromhex(body)) is None
