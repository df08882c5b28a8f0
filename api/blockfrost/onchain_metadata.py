"""Metadata of an asset in the datum of its reference token (CIP-68), as Blockfrost shows it.

The whole map is shown. In the fields that CIP-68 names, bytes become text, or hex digits if they are not UTF-8; the
value of any other field is its CBOR in hex. The rules are those of `src/cip68.ts` in
https://github.com/blockfrost/blockfrost-utils and of the schemas `asset_onchain_metadata_cip68_*` in
https://github.com/blockfrost/openapi. Pure.
"""

from typing import Any

import msgspec

from api.chain import plutus_data
from api.parameters import MAX_SAFE_INTEGER
from shared.ledger import label_of

_NFT, _FT, _RFT = 222, 333, 444  # the labels of user tokens
_MAX_VERSION = 3  # Blockfrost shows no datum of a later one

_TEXTS = {
    _NFT: {"name", "image", "mediaType", "description"},
    _FT: {"name", "description", "ticker", "url", "logo"},
    _RFT: {"name", "image", "mediaType", "description"},
}
_REQUIRED = {_NFT: {"name", "image"}, _FT: {"name", "description"}, _RFT: {"name", "image"}}
_WITH_DECIMALS, _WITH_FILES = (_FT, _RFT), (_NFT, _RFT)
_TEXTS_OF_FILES, _REQUIRED_OF_FILES = {"name", "mediaType", "src"}, {"mediaType", "src"}


class OnChain(msgspec.Struct, frozen=True):
    """Metadata by CIP-68. `extra` is the CBOR of the datum's third field in hex."""

    metadata: dict[str, Any]
    standard: str
    extra: str | None


def of_datum(datum: bytes, asset_name: bytes) -> OnChain | None:
    """The metadata of a user token in its reference token's datum, None if the datum does not comply with CIP-68."""
    label = label_of(asset_name)
    fields = plutus_data.fields_of(datum)
    if label not in _TEXTS or fields is None or len(fields) < 2:
        return None
    described, version, *extra = fields
    entries = plutus_data.pairs_of(described)
    match plutus_data.of_cbor(version):
        case {"int": int(number)} if entries is not None and number <= _MAX_VERSION:
            pass
        case _:
            return None
    try:
        metadata = _metadata(entries, label)
    except _NotText:
        return None
    shown_extra = extra[0].hex() if extra else None
    return OnChain(metadata, f"CIP68v{number}", shown_extra) if _complies(metadata, label) else None


class _NotText(Exception):
    """A list in place of text whose items are not bytes, which Blockfrost can't read."""


def _metadata(entries: list[tuple[bytes, bytes]], label: int) -> dict[str, Any]:
    """The fields by name. Of equal keys, the first counts."""
    metadata: dict[str, Any] = {}
    for key, value in entries:
        name = _name(plutus_data.of_cbor(key))
        if name is not None and name not in metadata:
            shown = _shown(name, plutus_data.of_cbor(value), label)
            metadata[name] = value.hex() if shown is None else shown
    return metadata


def _shown(name: str, value: Any, label: int) -> Any:
    """The value of a field; None if CIP-68 does not name it, or if the value is of another kind than it prescribes."""
    if name in _TEXTS[label]:
        return _text(value)
    match name, value:
        case "decimals", {"int": int(number)} if label in _WITH_DECIMALS and abs(number) <= MAX_SAFE_INTEGER:
            return number
        case "files", {"list": list(items)} if label in _WITH_FILES:
            files = [_file(item) for item in items]
            return None if None in files else files
    return None


def _file(value: Any) -> dict[str, str] | None:
    """A file, None if a field of it has a name that CIP-68 does not know, or another value than text."""
    match value:
        case {"map": [_, *_] as pairs}:
            shown = {_name(pair["k"]): _text(pair["v"]) for pair in pairs}
            texts = {name: text for name, text in shown.items() if name in _TEXTS_OF_FILES and text is not None}
            return texts if len(texts) == len(shown) else None
    return None


def _complies(metadata: dict[str, Any], label: int) -> bool:
    """Whether Blockfrost's schema accepts the metadata. A field of the wrong kind is shown as the CBOR in hex: text."""
    files = metadata.get("files", []) if label in _WITH_FILES else []
    return (
        metadata.keys() >= _REQUIRED[label]
        and not (label in _WITH_DECIMALS and isinstance(metadata.get("decimals"), str))
        and isinstance(files, list)
        and all(file.keys() >= _REQUIRED_OF_FILES for file in files)
    )


def _name(key: Any) -> str | None:
    """The name of a field, None for a key that is neither bytes nor a number."""
    match key:
        case {"int": int(number)}:
            return str(number)
        case {"bytes": str()}:
            return _text(key)
    return None


def _text(value: Any) -> str | None:
    """The text of bytes, whole or in pieces, or their hex digits if it is not UTF-8; None for another kind of value.

    Raises _NotText.
    """
    match value:
        case {"bytes": str(digits)}:
            pass
        case {"list": list(pieces)}:
            if not all("bytes" in piece for piece in pieces):
                raise _NotText
            digits = "".join(piece["bytes"] for piece in pieces)
        case _:
            return None
    try:
        return bytes.fromhex(digits).decode()
    except UnicodeDecodeError:
        return digits
