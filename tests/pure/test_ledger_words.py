"""Fingerprints of assets and labels in their names, by the vectors of their CIPs."""

import pytest

from shared.ledger import fingerprint, fingerprints, label_of, label_prefix

# CIP-14, test vectors: policy id, asset name, fingerprint.
FINGERPRINTS = [
    (
        "7eae28af2208be856f7a119668ae52a49b73725e326dc16579dcc373",
        "",
        "asset1rjklcrnsdzqp65wjgrg55sy9723kw09mlgvlc3",
    ),
    (
        "7eae28af2208be856f7a119668ae52a49b73725e326dc16579dcc37e",
        "",
        "asset1nl0puwxmhas8fawxp8nx4e2q3wekg969n2auw3",
    ),
    (
        "1e349c9bdea19fd6c147626a5260bc44b71635f398b67c59881df209",
        "",
        "asset1uyuxku60yqe57nusqzjx38aan3f2wq6s93f6ea",
    ),
    (
        "7eae28af2208be856f7a119668ae52a49b73725e326dc16579dcc373",
        "504154415445",
        "asset13n25uv0yaf5kus35fm2k86cqy60z58d9xmde92",
    ),
    (
        "1e349c9bdea19fd6c147626a5260bc44b71635f398b67c59881df209",
        "504154415445",
        "asset1hv4p5tv2a837mzqrst04d0dcptdjmluqvdx9k3",
    ),
    (
        "1e349c9bdea19fd6c147626a5260bc44b71635f398b67c59881df209",
        "7eae28af2208be856f7a119668ae52a49b73725e326dc16579dcc373",
        "asset1aqrdypg669jgazruv5ah07nuyqe0wxjhe2el6f",
    ),
    (
        "7eae28af2208be856f7a119668ae52a49b73725e326dc16579dcc373",
        "1e349c9bdea19fd6c147626a5260bc44b71635f398b67c59881df209",
        "asset17jd78wukhtrnmjh3fngzasxm8rck0l2r4hhyyt",
    ),
    (
        "7eae28af2208be856f7a119668ae52a49b73725e326dc16579dcc373",
        "00" * 32,
        "asset1pkpwyknlvul7az0xx8czhl60pyel45rpje4z8w",
    ),
]

# CIP-67, test vectors: label, first bytes of the name. The last four are those of CIP-68.
LABELS = [
    (0, "00000000"),
    (1, "00001070"),
    (23, "00017650"),
    (99, "000632e0"),
    (533, "00215410"),
    (2_000, "007d0550"),
    (4_567, "011d7690"),
    (11_111, "02b670b0"),
    (49_328, "0c0b0f40"),
    (65_535, "0ffff240"),
    (100, "000643b0"),
    (222, "000de140"),
    (333, "0014df10"),
    (444, "001bc280"),
]


@pytest.mark.parametrize(("policy_id", "asset_name", "expected"), FINGERPRINTS)
def test_fingerprints_are_those_of_cip_14(policy_id: str, asset_name: str, expected: str) -> None:
    policy, name = bytes.fromhex(policy_id), bytes.fromhex(asset_name)
    assert fingerprint(policy, name) == expected
    assert fingerprints(policy, [name, b"another", name]) == [expected, fingerprint(policy, b"another"), expected]


@pytest.mark.parametrize(("label", "prefix"), LABELS)
def test_labels_are_written_and_read_as_in_cip_67(label: int, prefix: str) -> None:
    assert label_prefix(label).hex() == prefix
    assert label_of(bytes.fromhex(prefix)) == label
    assert label_of(bytes.fromhex(prefix) + b"name") == label


@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param("000de141", id="last bracket"),
        pytest.param("100de140", id="first bracket"),
        pytest.param("000de130", id="checksum"),
        pytest.param("000df140", id="label"),
        pytest.param("000de1", id="too short"),
        pytest.param("", id="empty"),
    ],
)
def test_a_name_that_only_looks_labelled_has_no_label(prefix: str) -> None:
    assert label_of(bytes.fromhex(prefix)) is None
