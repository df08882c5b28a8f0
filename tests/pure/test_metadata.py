"""CIP-25 and CIP-68 as specified and as found on the chain: one test for each unusual case."""

import json
from types import MappingProxyType
from typing import Any

import cbor2
import pytest

from shared import metadata
from shared.ledger import label_prefix
from shared.metadata import Metadata
from shared.packed import Extra

POLICY = bytes.fromhex("d5e6bf0500378d4f0da4e8dde6becec7621cd8cbf5cbb9b87013d4cc")
OTHER = bytes(28)
NAME = b"Test123"
ENTRY = {"name": "SpaceBud", "image": "ipfs://test"}
SPACE_BUD = Metadata(name="SpaceBud", image="ipfs://test")
NFT, FT, RFT = (label_prefix(label) + NAME for label in (222, 333, 444))


def cbor(label: Any) -> Extra:
    """Label 721 as CBOR."""
    return Extra(metadata_cbor={721: cbor2.dumps(label)})


def plain(label: Any) -> Extra:
    """Label 721 in Ogmios' default JSON."""
    return Extra(metadata_json={721: json.dumps(label).encode()})


def detailed(label: Any) -> Extra:
    """Label 721 in Ogmios' detailed JSON."""
    return plain(in_detail(label))


def in_detail(value: Any) -> Any:
    match value:
        case dict():
            return {"map": [{"k": in_detail(key), "v": in_detail(each)} for key, each in value.items()]}
        case list():
            return {"list": [in_detail(each) for each in value]}
        case bytes():
            return {"bytes": value.hex()}
        case int():
            return {"int": value}
    return {"string": value}


def cip25(extra: Extra, name: bytes = NAME) -> Metadata | None:
    return metadata.of_transaction(extra, POLICY, name)


def cip68(datum: Any, name: bytes = NFT) -> Metadata | None:
    return metadata.of_datum(cbor2.dumps(datum), POLICY, name)


def constructor(*fields: Any, tag: int = 121) -> cbor2.CBORTag:
    return cbor2.CBORTag(tag, list(fields))


# CIP-25


@pytest.mark.parametrize("form", [cbor, plain, detailed])
def test_version_1_names_by_text(form: Any) -> None:
    assert cip25(form({POLICY.hex(): {NAME.decode(): ENTRY}})) == SPACE_BUD


@pytest.mark.parametrize("form", [cbor, detailed])
def test_version_2_names_by_bytes(form: Any) -> None:
    assert cip25(form({POLICY: {NAME: ENTRY}, "version": 2})) == SPACE_BUD


def test_hex_names_in_version_1() -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.hex(): ENTRY}, "version": 1})) == SPACE_BUD


def test_text_keys_in_version_2() -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): ENTRY}, "version": 2})) == SPACE_BUD
    assert cip25(cbor({POLICY.hex(): {NAME.hex(): ENTRY}, "version": 2})) == SPACE_BUD


def test_bytes_keys_without_a_version() -> None:
    assert cip25(cbor({POLICY: {NAME: ENTRY}})) == SPACE_BUD


def test_upper_case_hex_keys() -> None:
    assert cip25(cbor({POLICY.hex().upper(): {NAME.hex().upper(): ENTRY}})) == SPACE_BUD


@pytest.mark.parametrize("version", [1, 2, "1.0", "2", "2.0", b"2", [2], 17])
def test_a_version_of_any_kind(version: Any) -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): ENTRY}, "version": version})) == SPACE_BUD
    assert cip25(cbor({POLICY: {NAME: ENTRY}, "version": version})) == SPACE_BUD


def test_a_text_key_overrides_the_same_key_in_hex() -> None:
    key = "6162"
    found = cip25(cbor({POLICY.hex(): {key: {"name": "text"}, key.encode().hex(): {"name": "hex"}}}), key.encode())
    assert found == Metadata(name="text")


def test_the_empty_name() -> None:
    assert cip25(cbor({POLICY.hex(): {"": ENTRY}}), b"") == SPACE_BUD
    assert cip25(cbor({POLICY: {b"": ENTRY}}), b"") == SPACE_BUD


def test_a_name_other_than_text_is_ignored() -> None:
    assert cip25(cbor({POLICY.hex(): {"ff00": ENTRY}}), b"\xff\x00") == SPACE_BUD


def test_arrays_of_text_are_joined() -> None:
    entry = {"name": ["Space", "Bud"], "image": ["ipfs://", "te", "st"], "description": ["a", "b"], "ticker": ["T"]}
    expected = Metadata(name="SpaceBud", image="ipfs://test", description="ab", ticker="T")
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): entry}})) == expected


def test_an_array_of_other_values_is_not_text() -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): {"name": ["a", 1], "description": {"a": "b"}}}})) == Metadata()


def test_an_image_stays_as_it_is_on_chain() -> None:
    entry = {"image": ["ipfs://ipfs/", "QmX"]}
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): entry}})) == Metadata(image="ipfs://ipfs/QmX")


@pytest.mark.parametrize("image", ["ipfs://Qm", "https://example.org/a.png", "ar://x", "data:image/png;base64,AA=="])
def test_an_image_with_a_scheme_of_the_cip(image: str) -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): {"image": image}}})) == Metadata(image=image)


@pytest.mark.parametrize("image", ["Qmabc", "http://example.org", "javascript:alert(1)", "", 7, {"a": 1}])
def test_an_image_of_another_type_is_ignored(image: Any) -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): {"image": image}}})) == Metadata()


def test_cip_25_has_neither_decimals_nor_logo() -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): {"decimals": 6, "logo": "https://x"}}})) == Metadata()


def test_nul_is_kept() -> None:
    assert cip25(cbor({POLICY.hex(): {NAME.decode(): {"name": "a\0b"}}})) == Metadata(name="a\0b")


def test_a_lone_surrogate_is_replaced() -> None:
    extra = Extra(metadata_json={721: b'{"%s":{"Test123":{"name":"a\\ud800b"}}}' % POLICY.hex().encode()})
    assert cip25(extra) == Metadata(name="a?b")


def test_bytes_as_text() -> None:
    assert cip25(cbor({POLICY: {NAME: {"name": b"Bytes", "description": b"\xff"}}})) == Metadata(name="Bytes")


@pytest.mark.parametrize(
    "label",
    [
        None,
        [],
        "text",
        {},
        {OTHER.hex(): {NAME.decode(): ENTRY}},
        {POLICY.hex(): {"Another": ENTRY}},
        {POLICY.hex(): [NAME.decode()]},
        {POLICY.hex(): NAME.decode()},
        {POLICY.hex(): {NAME.decode(): "no map"}},
        {"version": 2},
    ],
)
def test_a_label_that_does_not_name_the_asset(label: Any) -> None:
    for form in (cbor, plain):
        assert cip25(form(label)) is None


@pytest.mark.parametrize(
    "broken", [b"", b"\xff", b"\x81" * 20_000, b"\xa1\x61", b"\xd8\x1c\xd8\x1d\x00", b"\xc0\x61x", b"\xa1\xa0\x01"]
)
def test_broken_cbor_is_ignored(broken: bytes) -> None:
    assert cip25(Extra(metadata_cbor={721: broken})) is None
    assert metadata.of_datum(broken, POLICY, NFT) is None


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[" * 200_000, b'{"map":[1,{"k":{"int":1}}]}', b'{"map":[{"k":{"odd":1},"v":{"int":1}}]}']
)
def test_broken_json_is_ignored(broken: bytes) -> None:
    assert cip25(Extra(metadata_json={721: broken})) is None


def test_keys_that_are_maps_do_not_hide_the_others() -> None:
    label = {"map": [{"k": {"list": []}, "v": {"int": 1}}, *in_detail({POLICY: {NAME: ENTRY}})["map"]]}
    assert cip25(plain(label)) == SPACE_BUD


def test_without_label_721_there_is_no_metadata() -> None:
    assert cip25(Extra()) is None
    assert cip25(Extra(metadata_cbor={20: cbor2.dumps({POLICY: {NAME: ENTRY}})})) is None


# CIP-68

ON_DATUM = {b"name": b"SpaceBud", b"image": b"ipfs://test"}
FROM_DATUM = Metadata(name="SpaceBud", image="ipfs://test", decimals=0)


def test_the_example_of_label_222() -> None:
    assert metadata.of_datum(
        bytes.fromhex("d8799fa2446e616d6548537061636542756445696d6167654b697066733a2f2f7465737401ff"), POLICY, NFT
    ) == Metadata(name="SpaceBud", image="ipfs://test", decimals=0)


def test_the_example_of_label_333() -> None:
    datum = constructor({b"name": b"SpaceBud", b"description": b"This is my test token"}, 1)
    assert cip68(datum, FT) == Metadata(name="SpaceBud", description="This is my test token", decimals=0)


def test_the_example_of_label_444() -> None:
    datum = constructor({**ON_DATUM, b"description": b"This is my test token", b"decimals": 2}, 1)
    expected = Metadata(name="SpaceBud", image="ipfs://test", description="This is my test token", decimals=2)
    assert cip68(datum, RFT) == expected


def test_version_4_nests_many_assets() -> None:
    datum = constructor({b"721": {POLICY: {NAME: ON_DATUM, b"Another": {}}}}, 4, constructor())
    assert cip68(datum) == FROM_DATUM
    assert cip68(datum, label_prefix(222) + b"Missing") is None


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, None])
@pytest.mark.parametrize("user_token", [NFT, FT, RFT])
def test_the_key_721_decides_for_version_4(user_token: bytes, version: int | None) -> None:
    """By the CIP's steps for third parties: a map with this key is nested, whatever else it has."""
    beside = {b"name": b"Another", b"721": {POLICY: {NAME: ON_DATUM}, OTHER: {NAME: {b"name": b"Other"}}}}
    assert cip68(constructor(beside, *([] if version is None else [version])), user_token) == FROM_DATUM


@pytest.mark.parametrize(
    "nested",
    [
        {},
        {OTHER: {NAME: ON_DATUM}},
        {POLICY: {NFT: ON_DATUM}},  # with the label, which the names there do not have
        {POLICY: {label_prefix(100) + NAME: ON_DATUM}},
        {NAME: ON_DATUM},  # the CIP's example, whose map lacks the policy that its CDDL and its steps name
    ],
)
def test_version_4_names_by_policy_and_by_name_without_its_label(nested: dict[bytes, Any]) -> None:
    assert cip68(constructor({b"721": nested}, 4)) is None


@pytest.mark.parametrize("other", [7, b"x", [{POLICY: {NAME: {}}}]])
def test_another_property_721_is_not_version_4(other: Any) -> None:
    assert cip68(constructor({**ON_DATUM, b"721": other}, 3)) == FROM_DATUM


@pytest.mark.parametrize(
    "scheme", ["ipfs://", "https://", "ar://", "data:", "http://", "ipfs:", "https:", "javascript:", "//"]
)
@pytest.mark.parametrize("in_version_4", [False, True])
def test_an_image_has_a_scheme_of_the_cip(scheme: str, in_version_4: bool) -> None:
    image = f"{scheme}x".encode()
    entry = {b"image": image}
    found = cip68(constructor({b"721": {POLICY: {NAME: entry}}} if in_version_4 else entry, 4))
    shown = image.decode() if scheme in ("ipfs://", "https://", "ar://", "data:") else None
    assert found == Metadata(image=shown, decimals=0)


@pytest.mark.parametrize("extra", [(1, constructor()), (1,), (), (2, [], 7), (constructor(),)])
def test_the_fields_beside_the_metadata_are_ignored(extra: tuple[Any, ...]) -> None:
    assert cip68(constructor(ON_DATUM, *extra)) == FROM_DATUM


@pytest.mark.parametrize("tag", [121, 122, 127, 1280, 1400])
def test_a_constructor_of_any_number(tag: int) -> None:
    assert cip68(constructor(ON_DATUM, 1, tag=tag)) == FROM_DATUM


def test_a_constructor_in_the_general_form() -> None:
    assert cip68(cbor2.CBORTag(102, [0, [ON_DATUM, 1]])) == FROM_DATUM


def test_text_in_chunks() -> None:
    long = {b"name": [b"Space", b"Bud"], b"image": [b"ipfs://", b"te", b"st"]}
    assert cip68(constructor(long, 1)) == FROM_DATUM
    chunked = bytes.fromhex("d87982a1446e616d655f455370616365" + "43427564ff01")
    assert metadata.of_datum(chunked, POLICY, NFT) == Metadata(name="SpaceBud", decimals=0)


def test_a_chunk_of_bytes_may_end_within_a_character() -> None:
    assert cip68(constructor({b"description": [b"caf\xc3", b"\xa9"]}, 1)) == Metadata(description="café", decimals=0)


@pytest.mark.parametrize("decimals", [b"6", True, -1, 256, 2**64, pytest.param(10**5_000, id="huge")])
def test_invalid_decimals_are_ignored(decimals: object) -> None:
    assert cip68(constructor({b"decimals": decimals}, 1)) == Metadata(decimals=0)


@pytest.mark.parametrize("depth", [100, 500, 700, 900, 980, 5_000])
@pytest.mark.parametrize("form", [cbor, plain, detailed])
def test_deeply_nested_metadata_is_ignored(form: Any, depth: int) -> None:
    nested = f"[{'[' * depth}{']' * depth}]".encode()
    extra = form({POLICY.hex(): {NAME.decode(): {"name": "N", "image": "NESTED"}}})
    if form is cbor:
        place = cbor2.dumps("NESTED")
        extra = Extra(metadata_cbor={721: extra.metadata_cbor[721].replace(place, b"\x81" * depth + b"\x80")})
    elif form is plain:
        extra = Extra(metadata_json={721: extra.metadata_json[721].replace(b'"NESTED"', nested)})
    else:
        nested = b'{"list":[' * depth + b"]}" * depth
        extra = Extra(metadata_json={721: extra.metadata_json[721].replace(b'{"string": "NESTED"}', nested)})
        assert nested in extra.metadata_json[721]
    assert cip25(extra) in (Metadata(name="N"), None)


def test_cip_68_has_neither_ticker_nor_logo() -> None:
    assert cip68(constructor({b"ticker": b"T", b"logo": b"https://x"}, 1)) == Metadata(decimals=0)


def test_keys_of_a_datum_other_than_text() -> None:
    assert cip68(constructor({**ON_DATUM, b"\xff": 1, 7: 1, (1,): 2}, 1)) == FROM_DATUM


@pytest.mark.parametrize(
    "datum", [7, b"", [], {}, ON_DATUM, [ON_DATUM, 1], constructor(), constructor(1, ON_DATUM), cbor2.CBORTag(121, 7)]
)
def test_a_datum_of_another_shape(datum: Any) -> None:
    assert cip68(datum) is None


@pytest.mark.parametrize(
    "datum",
    [
        constructor(ON_DATUM, 1),
        constructor(ON_DATUM),
        constructor(ON_DATUM, 1, tag=127),
        constructor(ON_DATUM, 1, tag=1280),
        cbor2.CBORTag(102, [0, [ON_DATUM, 1]]),
        constructor({n: n for n in range(300)}, *range(30)),
    ],
)
def test_a_datum_with_any_constructor(datum: Any) -> None:
    assert cip68(datum) is not None


def test_the_reference_token_of_a_user_token() -> None:
    reference = bytes.fromhex("000643b0") + NAME
    assert [metadata.reference_name(name) for name in (NFT, FT, RFT)] == [reference] * 3
    assert metadata.reference_name(label_prefix(222)) == bytes.fromhex("000643b0")


@pytest.mark.parametrize("name", [b"", NAME, bytes.fromhex("000643b0") + NAME, bytes.fromhex("000de141") + NAME])
def test_other_tokens_have_no_reference_token(name: bytes) -> None:
    assert metadata.reference_name(name) is None


@pytest.mark.parametrize("nested", [False, True])
def test_a_datum_whose_maps_and_lists_cannot_be_changed(monkeypatch: pytest.MonkeyPatch, nested: bool) -> None:
    """cbor2 6 makes such ones of all maps and lists below a tag."""
    described: Any = MappingProxyType({b"name": (b"Space", b"Bud"), b"image": b"ipfs://test"})
    if nested:
        described = MappingProxyType({b"721": MappingProxyType({POLICY: MappingProxyType({NAME: described})})})
    datum = cbor2.CBORTag(121, (described, 1))
    monkeypatch.setattr("cbor2.loads", lambda _: datum)
    assert metadata.of_datum(b"", POLICY, NFT) == Metadata(name="SpaceBud", image="ipfs://test", decimals=0)
