"""Transactions are read as a node reads them: compared with Ogmios' JSON of recorded ones, also in order."""

import lzma
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devnet import addresses, cbor, parameters, script_rules, submitted
from devnet.addresses import LedgerCredential
from devnet.dialect import Dialect
from devnet.refusal import Refusal
from tests.chain.harness import VECTORS

Json = dict[str, Any]

OGMIOS_7 = Dialect((7, 0))
HASH = bytes(range(28))


def transactions(name: str) -> Iterator[Json]:
    with lzma.open(VECTORS / f"{name}.jsonl.xz") as lines:
        for line in lines:
            yield from msgspec.json.decode(line).get("transactions", ())


def test_recorded_transactions_are_read_as_ogmios_shows_them() -> None:
    """Also in order: cbor2 and msgspec keep the order of JSON's objects, and their text is compared."""
    compared = 0
    for tx in transactions("mainnet-conway"):
        if any(
            not each["type"].startswith(("stakeCredential", "stakeDelegation")) for each in tx.get("certificates", ())
        ):
            continue
        found = submitted.read(bytes.fromhex(tx["cbor"]), (7, 0))
        shown = OGMIOS_7.transaction(found.content, "conway")
        # NOTE: these recordings have witnesses of Byron addresses as they were sent, also equal ones. The ledger keeps
        # them in a set, in the order of their addresses' roots.
        expected = tx | {"signatories": in_a_set(tx["signatories"])}
        shown |= {"signatories": in_a_set(shown["signatories"])}
        assert {name: text(value) for name, value in shown.items()} == {
            name: text(value) for name, value in expected.items()
        }
        assert not found.forged
        assert found.size == len(found.cbor) - 1
        compared += 1
    assert compared > 480


def test_the_hash_of_script_integrity_is_that_of_recorded_transactions() -> None:
    """Which languages a transaction uses depends on outputs that are not recorded: it must be one combination."""
    models = {version: parameters.cost_models(9)[f"plutus:v{version}"] for version in (1, 2, 3)}
    languages: Counter[tuple[int, ...]] = Counter()
    for tx in transactions("mainnet-conway"):
        if "scriptIntegrityHash" in tx:
            found = submitted.read(bytes.fromhex(tx["cbor"]), (7, 0))
            hashes = {
                script_rules.integrity_hash(found, {version: models[version] for version in used}): used
                for used in ((), (1,), (2,), (3,), (1, 2), (2, 3))
            }
            languages[hashes[tx["scriptIntegrityHash"]]] += 1
    assert languages.keys() >= {(1,), (2,)}


def in_a_set(signatories: list[Json]) -> list[Any]:
    """Signatories with those of Byron addresses in any order, and each once."""
    keys = [each for each in signatories if "chainCode" not in each]
    return [*keys, sorted({text(each) for each in signatories if "chainCode" in each})]


def text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def test_certificates_keep_their_order_in_a_set() -> None:
    """In every order: a Python set has the right one by chance."""
    credential = [0, HASH]
    certificates = {
        "stakeCredentialRegistration": [7, credential, 2_000_000],
        "stakeDelegation": [2, credential, HASH],
        "stakeCredentialDeregistration": [8, credential, 2_000_000],
    }
    for names in permutations(certificates):
        found = read({4: cbor2.CBORTag(258, [certificates[name] for name in names])})
        assert [each["type"] for each in found["certificates"]] == list(names)


def test_inputs_withdrawals_and_policies_have_the_ledgers_order() -> None:
    """Redeemers point to them by index. Script credentials come before keys: `Credential` in the ledger."""
    key, script = bytes([0xE0]) + bytes(28), bytes([0xF0]) + b"\xff" * 28
    inputs = [[b"\2" * 32, 0], [b"\1" * 32, 256], [b"\1" * 32, 3]]
    minted = {b"\2" * 28: {b"b": 1, b"a": 1}, b"\1" * 28: {b"": 5}}
    found = read({0: inputs, 5: {key: 1, script: 2}, 9: minted})
    assert [(each["transaction"]["id"][:2], each["index"]) for each in found["inputs"]] == [
        ("01", 3), ("01", 256), ("02", 0),
    ]  # fmt: skip
    assert [value["ada"]["lovelace"] for value in found["withdrawals"].values()] == [2, 1]
    assert text(found["mint"]) == text({"01" * 28: {"": 5}, "02" * 28: {"61": 1, "62": 1}})


def test_datums_and_redeemers_keep_their_bytes() -> None:
    deep = b"\xd8\x79\x81" * 200 + b"\x9f\x00\xff"
    datums, redeemer = [cbor2.loads(b"\x80"), 7], b"\xbf\x18\x01\x41\x00\xff"  # a map without length, a long number
    witnesses = b"\xa2\x04" + cbor2.dumps([]).replace(b"\x80", b"\xd9\x01\x02\x82") + deep + cbor2.dumps(datums[1])
    witnesses += b"\x05\xa1\x82\x01\x00\x82" + redeemer + b"\x82\x05\x06"
    found = read({}, witnesses)
    assert found["datums"] == {addresses.blake2b_256(each): each.hex() for each in sorted((deep, b"\x07"), key=hash_of)}
    assert list(found["datums"]) == sorted(found["datums"])
    assert found["redeemers"] == [
        {
            "validator": {"index": 0, "purpose": "mint"},
            "redeemer": redeemer.hex(),
            "executionUnits": {"memory": 5, "cpu": 6},
        }
    ]


def hash_of(content: bytes) -> str:
    return addresses.blake2b_256(content)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({0: cbor2.CBORTag(258, [[bytes(32), 0], [bytes(32), 0]])}, "a set has equal items"),
        ({4: [[2, [0, HASH], HASH], [2, [0, HASH], HASH]]}, "a set has equal items"),
        ({4: []}, "field 4 of the body must not be empty"),
        ({5: {}}, "field 5 of the body must not be empty"),
        ({9: {HASH: {b"": 0}}}, "a quantity of an asset is zero"),
        ({6: [{}, 1]}, "unknown fields of the body: [6]"),
        ({1: [[bytes([0x60]) + bytes(27), 1]]}, "an address is too long or too short"),
        ({1: [[bytes([0x40]) + HASH + b"\x90\x80\x80\x80\x00\x00\x00", 1]]}, "or its pointer is invalid"),
        ({5: {bytes([0x60]) + HASH: 1}}, "not a stake address"),
    ],
)
def test_what_the_ledgers_decoders_refuse_is_refused(fields: dict[int, Any], reason: str) -> None:
    with pytest.raises(Refusal) as refused:
        read(fields)
    assert reason in refused.value.data["conway"]


def test_equal_keys_of_a_map_are_refused() -> None:
    """Python's dicts keep the last of them."""
    body = b"\xa4\x00\x80\x01\x80\x02\x01\x02\x02"
    with pytest.raises(Refusal) as refused:
        submitted.read(b"\x84" + body + b"\xa0\xf5\xf6", (7, 0))
    assert "a map has equal keys" in refused.value.data["conway"]


def test_indefinite_lengths_count_as_they_were_sent() -> None:
    """The id is of the body's own bytes; the size is that of four items in an array with its length, less one."""
    address = b"\x5f\x41\x60" + cbor2.dumps(HASH) + b"\xff"
    output = b"\x9f" + address + b"\x18\x05\xff"
    body = b"\xbf\x00\x9f\xff\x01\x9f" + output + b"\xff\x02\x00\xff"
    found = submitted.read(b"\x9f" + body + b"\xa0\xf5\xf6\xff", (7, 0))
    assert found.id == addresses.blake2b_256(body)
    assert found.size == len(body) + 3
    assert found.content["outputs"] == [
        {"address": addresses.enterprise_address(0, LedgerCredential("verificationKey", HASH.hex())), "value": ada(5)}
    ]
    assert found.output_sizes == (len(output),)


def ada(lovelace: int) -> Json:
    return {"ada": {"lovelace": lovelace}}


def read(fields: dict[int, Any], witnesses: bytes = b"\xa0") -> Json:
    """The JSON of a transaction with these fields of the body."""
    body = cbor2.dumps({0: [], 1: [], 2: 0} | fields)
    return submitted.read(b"\x84" + body + witnesses + b"\xf5\xf6", (7, 0)).content


@pytest.mark.parametrize("pointer", [(2**32, 0, 0), (0, 2**16, 0), (0, 0, 2**16)])
def test_pointers_that_do_not_fit_become_zeros(pointer: tuple[int, int, int]) -> None:
    """All three, if one does not fit: `mkPtrNormalized` in the ledger. Since Conway, new ones are refused."""
    key = LedgerCredential("verificationKey", HASH.hex())
    largest = tuple(max(0, number - 1) for number in pointer)
    zeros = addresses.pointer_address(1, key, (0, 0, 0))
    assert addresses.pointer_address(1, key, pointer) == zeros
    assert addresses.pointer_address(1, key, largest) != zeros  # type: ignore[arg-type]
    addresses.must_be_payable(addresses.raw(addresses.pointer_address(1, key, largest)))  # type: ignore[arg-type]


# CBOR as cbor2 reads it, for values in which it loses nothing.
values = st.recursive(
    st.integers(-(2**70), 2**70) | st.binary(max_size=70) | st.text(max_size=40) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.integers(0, 300), inner, max_size=30),
    max_leaves=40,
)


def loaded(item: cbor.Item) -> Any:
    match item.kind:
        case "list":
            return [loaded(part) for part in item.items()]
        case "map":
            return {key.number(): loaded(value) for key, value in item.entries()}
        case _:
            return item.value


@given(values)
def test_cbor_is_read_as_by_cbor2_and_keeps_its_bytes(value: Any) -> None:
    content = cbor2.dumps(value)
    item = cbor.read(content)
    assert loaded(item) == value
    assert item.cbor == content
    assert cbor.definite(item) == content


@settings(max_examples=500)
@given(st.binary(max_size=60) | values.map(cbor2.dumps), st.integers(0, 59), st.integers(0, 255))
def test_other_bytes_are_refused_in_one_way(content: bytes, place: int, byte: int) -> None:
    damaged = content[:place] + bytes([byte]) + content[place + 1 :]
    try:
        item = cbor.read(damaged)
    except ValueError:
        return
    assert item.cbor == damaged
