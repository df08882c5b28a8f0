"""The standard of CIP-25 metadata, by the cases of Blockfrost's tests (`getOnchainMetadata` of @blockfrost/openapi)."""

from typing import Any

import pytest

from api.blockfrost.cip25 import standard

POLICY, NAME = bytes.fromhex("ab" * 28), b"token"
NFT: dict[str, Any] = {"name": "a", "image": "ipfs://a"}
FILE = {"mediaType": "image/png", "src": ["ipfs://", "b"]}
V1 = {POLICY.hex(): {"token": NFT}}
V2 = {POLICY: {NAME: NFT}, "version": 2}


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        (V1, "CIP25v1"),
        (V1 | {"version": 1}, "CIP25v1"),
        (V1 | {"version": "1.0"}, "CIP25v1"),
        (V1 | {"version": 0}, "CIP25v1"),
        (V1 | {"version": 2}, None),  # names as text, which Blockfrost shows without a standard
        (V1 | {"version": 3}, None),
        (V1 | {"version": "v1"}, None),
        (V1 | {"version": [1]}, None),
        ({POLICY.hex(): {NAME.hex(): NFT}}, "CIP25v1"),
        ({POLICY: {NAME: NFT}}, None),
        (V2, "CIP25v2"),
        (V2 | {"version": "2"}, "CIP25v2"),
        (V2 | {"version": b"\x02"}, "CIP25v2"),
        ({"version": 2}, None),
        ({POLICY.hex(): ["token"]}, None),
    ],
)
def test_the_version_and_the_keys_must_agree(label: dict[Any, Any], expected: str | None) -> None:
    assert standard(label, POLICY, NAME) == expected


@pytest.mark.parametrize(
    ("entry", "complies"),
    [
        (NFT | {"image": ["a", "b"], "description": ["c"], "mediaType": "image/png", "files": [FILE], "more": 1}, True),
        (NFT | {"name": b"bytes are text, too"}, True),
        ({"name": "a"}, False),
        ({"image": "a"}, False),
        (NFT | {"name": 1}, False),
        (NFT | {"image": [1]}, False),
        (NFT | {"description": 1}, False),
        (NFT | {"mediaType": ["image", "png"]}, False),
        (NFT | {"files": FILE}, False),
        (NFT | {"files": [{"src": "a"}]}, False),
        (NFT | {"files": [FILE | {"name": 1}]}, False),
        ("text", False),
    ],
)
def test_metadata_must_have_the_form_of_the_standard(entry: Any, complies: bool) -> None:
    assert standard({POLICY.hex(): {"token": entry}}, POLICY, NAME) == ("CIP25v1" if complies else None)
