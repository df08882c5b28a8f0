"""Datums and scripts of a transaction: the outputs that contain them, and those that are left out."""

import json
from typing import Any

import cbor2
import msgspec
import pytest

from indexer.blocks import attachments, effects
from indexer.ogmios import frames
from shared import address
from shared.ledger import NATIVE, datum_hash_of, script_hash_of
from shared.packed import Attached

Json = dict[str, Any]
PAYMENT = address.show(b"\x60" + bytes(28))
KEY = bytes(range(28))
SIGNED: Json = {"clause": "signature", "from": KEY.hex()}
ALL: Json = {
    "clause": "all",
    "from": [
        {"clause": "any", "from": [SIGNED, {"clause": "before", "slot": 2**40}]},
        {"clause": "some", "atLeast": 1, "from": [{"clause": "after", "slot": 5}] * 30},
    ],
}
ALL_TREE = [1, [[2, [[0, KEY], [5, 2**40]]], [3, 1, [[4, 5]] * 30]]]
PLUTUS = b"\x43\x01\x02\x03"
DATUM = b"\x18\x2a"


def native(clause: Any) -> Json:
    return {"language": "native", "json": clause}


def output(**carried: Any) -> Json:
    return {"address": PAYMENT, "value": {"ada": {"lovelace": 1}}, **carried}


def tx(*outputs: Json, **parts: Any) -> frames.Transaction:
    declared = {"id": "00" * 32, "outputs": outputs, **parts}
    return msgspec.json.decode(json.dumps(declared), type=frames.Transaction)


def of(*outputs: Json, **parts: Any) -> attachments.Attachments:
    declared = tx(*outputs, **parts)
    return attachments.of(declared, declared.outputs)


def test_an_output_carries_a_datum_or_its_hash_and_a_script() -> None:
    plutus = {"language": "plutus:v3", "cbor": PLUTUS.hex()}
    found = of(output(), output(datumHash="11" * 32), output(datum=DATUM.hex(), script=plutus), output(script=plutus))
    digest = script_hash_of(3, PLUTUS)
    assert found.attached == [
        Attached(1, b"\x11" * 32, inline=False, script_hash=None),
        Attached(2, datum_hash_of(DATUM), inline=True, script_hash=digest),
        Attached(3, None, inline=False, script_hash=digest),
    ]
    assert found.datums == {datum_hash_of(DATUM): DATUM}
    assert found.scripts == {digest: (3, PLUTUS)}


@pytest.mark.parametrize(("clause", "tree"), [(SIGNED, [0, KEY]), (ALL, ALL_TREE)])
def test_a_native_script_without_bytes_is_encoded(clause: Json, tree: Any) -> None:
    body = cbor2.dumps(tree)
    digest = script_hash_of(NATIVE, body)
    assert of(output(script=native(clause))).scripts == {digest: (NATIVE, body)}
    assert of(scripts={digest.hex(): native(clause)}).scripts == {digest: (NATIVE, body)}


def test_the_bytes_of_a_native_script_count_if_the_node_sends_them() -> None:
    body = b"\x82\x01\x9f\x82\x00\x58\x1c" + KEY + b"\xff"  # a list of indefinite length
    sent = native({"clause": "all", "from": [SIGNED]}) | {"cbor": body.hex()}
    assert of(output(script=sent)).scripts == {script_hash_of(NATIVE, body): (NATIVE, body)}


@pytest.mark.parametrize(
    "script",
    [
        native({"clause": "guard", "from": KEY.hex()}),
        native({"clause": "all", "from": [SIGNED, None]}),  # nested too deeply to be read, see frames
        {"language": "plutus:v9", "cbor": PLUTUS.hex()},
        {"language": "plutus:v1"},
    ],
)
def test_a_script_without_known_bytes_is_left_out(script: Json) -> None:
    found = of(output(script=script, datumHash="11" * 32), scripts={"22" * 28: script})
    assert found.attached == [Attached(0, b"\x11" * 32, inline=False, script_hash=None)]
    assert found.scripts == {}


def test_a_witness_with_another_hash_than_that_of_its_bytes_is_left_out() -> None:
    assert of(scripts={"22" * 28: native(SIGNED)}).scripts == {}


@pytest.mark.parametrize(
    "parts",
    [
        {"outputs": [output(datum="zz")]},
        {"outputs": [output(datumHash="11")]},
        {"datums": {"11": "00"}},
        {"scripts": {"11": native(SIGNED)}},
        {"scripts": {"22" * 28: native({"clause": "signature", "from": "00"})}},
    ],
)
def test_an_invalid_hash_or_hex_is_refused(parts: Json) -> None:
    declared = tx(**parts)
    with pytest.raises(ValueError):
        attachments.of(declared, declared.outputs)


def test_failed_scripts_leave_the_collateral_return_and_the_witnesses() -> None:
    failed = tx(
        output(datum=DATUM.hex()),
        output(),
        spends="collaterals",
        collateralReturn=output(datumHash="11" * 32),
        datums={datum_hash_of(b"\x01").hex(): "01"},
    )
    (found,) = effects.of(failed, "conway")
    assert found.attached == [Attached(2, b"\x11" * 32, inline=False, script_hash=None)]
    assert found.datums == {datum_hash_of(b"\x01"): b"\x01"}
