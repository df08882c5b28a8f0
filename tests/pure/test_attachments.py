"""Datums and scripts of a transaction: the outputs that contain them, and those that are left out."""

import json
from collections.abc import Callable
from typing import Any

import cbor2
import msgspec
import pytest

from indexer.blocks import attachments, effects, transaction_cbor
from indexer.ogmios import frames
from shared import address
from shared.ledger import NATIVE, datum_hash_of, script_hash_of
from shared.packed import Attached
from tests.chain.recordings import FILES

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


def collected(*outputs: Json, **parts: Any) -> attachments.Attachments:
    declared = tx(*outputs, **parts)
    return attachments.collect(declared, declared.outputs)


def test_an_output_carries_a_datum_or_its_hash_and_a_script() -> None:
    plutus = {"language": "plutus:v3", "cbor": PLUTUS.hex()}
    found = collected(
        output(), output(datumHash="11" * 32), output(datum=DATUM.hex(), script=plutus), output(script=plutus)
    )
    digest = script_hash_of(3, PLUTUS)
    assert found.attached == [
        Attached(1, b"\x11" * 32, inline=False, script_hash=None),
        Attached(2, datum_hash_of(DATUM), inline=True, script_hash=digest),
        Attached(3, None, inline=False, script_hash=digest),
    ]
    assert found.datums == {datum_hash_of(DATUM): DATUM}
    assert found.scripts == {digest: (3, PLUTUS)}


def sent(*outputs: bytes, witnesses: bytes = b"\xa0", auxiliary: bytes = b"\xf6", returned: bytes = b"") -> Json:
    """The CBOR of a transaction with these outputs, as Ogmios sends it."""
    listed = b"\x9f" + b"".join(outputs) + b"\xff"
    body = b"\xbf\x00\xd9\x01\x02\x80\x01" + listed + (b"\x10" + returned if returned else b"") + b"\xff"
    return {"cbor": (b"\x84" + body + witnesses + b"\xf5" + auxiliary).hex()}


def carrying(script: bytes) -> bytes:
    """An output with a native reference script."""
    reference = cbor2.dumps(cbor2.CBORTag(24, b"\x82\x00" + script))
    return b"\xa3\x00\x41\x61\x01\x07\x03" + reference


def ledgers(tree: Any) -> bytes:
    """A native script as the ledger's encoder writes it: the length of a list of more than 23 items is not written."""
    if isinstance(tree, list):
        items = b"".join(ledgers(item) for item in tree)
        return b"\x9f" + items + b"\xff" if len(tree) > 23 else bytes((0x80 + len(tree),)) + items
    return bytes(cbor2.dumps(tree))


def odd(tree: Any) -> bytes:
    """A native script as no library writes it: every length in eight bytes, every list open."""
    if isinstance(tree, list):
        return b"\x9f" + b"".join(map(odd, tree)) + b"\xff"
    if isinstance(tree, bytes):
        return b"\x5b" + len(tree).to_bytes(8) + tree
    return b"\x1b" + int(tree).to_bytes(8)


LANGUAGES: list[tuple[Json, Any]] = [
    (SIGNED, [0, KEY]),
    (ALL, ALL_TREE),
    *(({"clause": "any", "from": [SIGNED] * count}, [2, [[0, KEY]] * count]) for count in (0, 23, 24, 256)),
    ({"clause": "any", "from": [{"clause": "all", "from": [SIGNED] * 23}] * 24}, [2, [[1, [[0, KEY]] * 23]] * 24]),
]


def test_the_cbor_of_a_transaction_is_walked_over_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many native scripts it has whose bytes are not the usual ones: 16 kB have room for 2,000."""
    walks: list[bytes] = []

    def counted(walk: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        def counting(sent: bytes) -> Any:
            walks.append(sent)
            return walk(sent)

        return counting

    for name in ("native_scripts", "native_reference_scripts"):
        monkeypatch.setattr(transaction_cbor, name, counted(getattr(transaction_cbor, name)))
    bodies = [odd([4, slot]) for slot in range(50)]
    clauses = [native({"clause": "after", "slot": slot}) for slot in range(50)]
    hashes = [script_hash_of(NATIVE, body) for body in bodies]
    listed = b"\xd9\x01\x03\xa1\x01\x9f" + b"".join(bodies) + b"\xff"
    found = collected(
        *(output(script=clause) for clause in clauses),
        scripts={digest.hex(): clause for digest, clause in zip(hashes, clauses, strict=True)},
        **sent(*map(carrying, bodies), auxiliary=listed),
    )
    assert found.scripts == {digest: (NATIVE, body) for digest, body in zip(hashes, bodies, strict=True)}
    assert [each.script_hash for each in found.attached] == hashes
    assert len(walks) == 2


@pytest.mark.parametrize("levels", [100, 250, 300, 400, 480, 5_000])
def test_a_native_script_may_nest_deeper_than_our_stack(levels: int) -> None:
    """A transaction of 16 kB has room for 5,000 levels. Its bytes are found without a walk over the JSON."""
    text = '{"clause":"all","from":[' * levels + json.dumps(SIGNED) + "]}" * levels
    script = frames.Script("native", json=msgspec.Raw(text))
    body = b"\x82\x01\x81" * levels + cbor2.dumps([0, KEY])
    digest = script_hash_of(NATIVE, body)
    for cbor, known in ((sent(carrying(body), witnesses=b"\xa1\x01\x81" + body), True), ({}, levels <= 100)):
        plain = tx(output(script=native(None)), **cbor)
        [holder] = plain.outputs
        outputs = [msgspec.structs.replace(holder, script=script)]
        declared = msgspec.structs.replace(plain, outputs=outputs, scripts={digest.hex(): script})
        found = attachments.collect(declared, outputs)
        if known:
            assert found.scripts == {digest: (NATIVE, body)}
            assert found.attached == [Attached(0, None, inline=False, script_hash=digest)]
        else:
            assert found.scripts in ({}, {digest: (NATIVE, body)})


@pytest.mark.parametrize("encode", [cbor2.dumps, ledgers, odd])
@pytest.mark.parametrize(("clause", "tree"), LANGUAGES)
def test_a_native_script_without_bytes_is_that_of_the_cbor(clause: Json, tree: Any, encode: Any) -> None:
    body = encode(tree)
    digest = script_hash_of(NATIVE, body)
    expected = {digest: (NATIVE, body)}
    plain, other = b"\x82\x41\x61\x07", carrying(cbor2.dumps([4, 9]))
    found = collected(output(), output(script=native(clause)), **sent(plain, carrying(body)))
    assert found.scripts == expected
    assert found.attached == [Attached(1, None, inline=False, script_hash=digest)]
    returned: Json = {"spends": "collaterals", "collateralReturn": output(script=native(clause))}
    (done,) = effects.of_transaction(tx(output(), **returned, **sent(other, returned=carrying(body))), "conway")
    assert (done.scripts, done.attached) == (expected, [Attached(1, None, inline=False, script_hash=digest)])
    listed = {"scripts": {digest.hex(): native(clause)}}
    tagged = b"\xd9\x01\x02\x81" + body
    for forms in (
        sent(witnesses=b"\xa1\x01\x81" + body),
        sent(witnesses=b"\xa1\x01" + tagged),
        sent(auxiliary=b"\x82\xa0\x81" + body),
        sent(auxiliary=b"\xd9\x01\x03\xa2\x00\xa0\x01\x9f" + body + b"\xff"),
    ):
        assert collected(**listed, **forms).scripts == expected


@pytest.mark.parametrize("encode", [cbor2.dumps, ledgers])
@pytest.mark.parametrize(("clause", "tree"), LANGUAGES)
def test_without_cbor_a_native_script_counts_if_its_hash_is_known(clause: Json, tree: Any, encode: Any) -> None:
    body = encode(tree)
    digest = script_hash_of(NATIVE, body)
    expected = {digest: (NATIVE, body)}
    carried = output(script=native(clause))
    assert collected(scripts={digest.hex(): native(clause)}).scripts == expected
    assert collected(carried, mint={digest.hex(): {"": 1}}).scripts == expected
    assert collected(carried, output() | {"address": address.show(b"\x70" + digest)}).scripts == expected
    assert collected(carried, output() | {"address": address.show(b"\x20" + bytes(28) + digest)}).scripts == expected


@pytest.mark.parametrize(("clause", "tree"), LANGUAGES)
def test_a_native_script_whose_hash_nothing_tells_has_none(clause: Json, tree: Any) -> None:
    found = collected(output(script=native(clause), datumHash="11" * 32), output(script=native(clause)))
    assert found.attached == [Attached(0, b"\x11" * 32, inline=False, script_hash=None)]
    assert found.scripts == {}
    digest = script_hash_of(NATIVE, odd(tree))
    assert collected(scripts={digest.hex(): native(clause)}).scripts == {}


def test_a_guard_is_read_from_the_cbor() -> None:
    """Its JSON does not tell whether the hash is that of a key or of a script."""
    guard = native({"clause": "all", "from": [{"clause": "guard", "from": KEY.hex()}]})
    for origin in (0, 1):
        body = cbor2.dumps([1, [[6, [origin, KEY]]]])
        digest = script_hash_of(NATIVE, body)
        assert collected(output(script=guard), **sent(carrying(body))).scripts == {digest: (NATIVE, body)}
        witnessed = sent(witnesses=b"\xa1\x01\x81" + body)
        assert collected(scripts={digest.hex(): guard}, **witnessed).scripts == {digest: (NATIVE, body)}


SHAPES = ["80", "00", "84a0", "8480a0f5f6", "84a10180a0f5f6", "84a10181a103d81880a0f5f6", "84a0a10180f580"]


@pytest.mark.parametrize("other", [sent(), sent(b"\xa1\x03\x00"), *({"cbor": text} for text in SHAPES)])
def test_cbor_of_another_shape_tells_nothing(other: Json) -> None:
    found = collected(output(script=native(SIGNED)), scripts={"22" * 28: native(SIGNED)}, **other)
    assert (found.attached, found.scripts) == ([], {})


def test_the_bytes_of_a_native_script_count_if_the_node_sends_them() -> None:
    body = b"\x82\x01\x9f\x82\x00\x58\x1c" + KEY + b"\xff"  # a list of indefinite length
    sent = native({"clause": "all", "from": [SIGNED]}) | {"cbor": body.hex()}
    assert collected(output(script=sent)).scripts == {script_hash_of(NATIVE, body): (NATIVE, body)}


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
    found = collected(output(script=script, datumHash="11" * 32), scripts={"22" * 28: script})
    assert found.attached == [Attached(0, b"\x11" * 32, inline=False, script_hash=None)]
    assert found.scripts == {}


def test_a_witness_with_another_hash_than_that_of_its_bytes_is_left_out() -> None:
    assert collected(scripts={"22" * 28: native(SIGNED)}).scripts == {}


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
        attachments.collect(declared, declared.outputs)


def test_failed_scripts_leave_the_collateral_return_and_the_witnesses() -> None:
    failed = tx(
        output(datum=DATUM.hex()),
        output(),
        spends="collaterals",
        collateralReturn=output(datumHash="11" * 32),
        datums={datum_hash_of(b"\x01").hex(): "01"},
    )
    (found,) = effects.of_transaction(failed, "conway")
    assert found.attached == [Attached(2, b"\x11" * 32, inline=False, script_hash=None)]
    assert found.datums == {datum_hash_of(b"\x01"): b"\x01"}


@pytest.mark.parametrize("name", ["babbage", "conway", "conway-defaults"])
def test_the_hashes_of_recorded_datums_and_scripts_are_those_of_their_bytes(name: str) -> None:
    """Native scripts, which the node sends as JSON, have the same bytes as on the chain."""
    met = 0
    for block in FILES[name].blocks():
        for sent in block.get("transactions", ()):
            declared = msgspec.json.decode(msgspec.json.encode(sent), type=frames.Transaction)
            found = attachments.collect(declared, declared.outputs)
            assert {bytes.fromhex(each) for each in sent.get("datums", {})} <= found.datums.keys()
            assert {bytes.fromhex(each) for each in sent.get("scripts", {})} <= found.scripts.keys()
            assert all(datum_hash_of(body) == given for given, body in found.datums.items())
            assert all(script_hash_of(*script) == given for given, script in found.scripts.items())
            if declared.sent is not None:
                on_chain = transaction_cbor.native_scripts(declared.sent)
                witnessed = {given for given, (language_no, _) in found.scripts.items() if language_no == NATIVE}
                assert on_chain == {given: found.scripts[given][1] for given in witnessed}
            met += len(found.scripts)
    assert met > 25
