"""Asset metadata on the chain: CIP-25 metadata of a transaction and CIP-68 datums. Pure.

Anybody can write either, so content that can't be read is ignored: no input raises an error.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeGuard

import cbor2
import msgspec

from shared.ledger import label_of, label_prefix
from shared.packed import Extra

_CIP25_LABEL = 721
REFERENCE_PREFIX = label_prefix(100)
"""The first bytes of a reference token's name (CIP-68)."""

USER_LABELS = (222, 333, 444)
_PREFIX_BYTES = len(REFERENCE_PREFIX)
IMAGE_SCHEMES = ("ipfs://", "https://", "ar://", "data:")
"""The beginnings of an image's URI that CIP-68 allows."""
_NESTED_KEY = b"721"
_MAX_DECIMALS = 255


class Metadata(msgspec.Struct, frozen=True):
    """Metadata of an asset from one source. `decimals` and `logo` are null for sources without that field."""

    name: str | None = None
    ticker: str | None = None
    description: str | None = None
    decimals: int | None = None
    image: str | None = None
    url: str | None = None
    logo: str | None = None


class Described:
    """Metadata by CIP-25: the assets that label 721 of one transaction describes. `label` is its whole map."""

    def __init__(self, extra: Extra) -> None:
        self.label = _label(extra)

    def entry(self, policy_id: bytes, asset_name: bytes) -> Mapping[Any, Any] | None:
        """The metadata of an asset, None if it is not named or its entry is not a map.

        By CIP-25, policies and names are text in version 1 and bytes in version 2. On the chain every form, hex
        included, occurs in both versions, so the version is ignored.
        """
        return _entry(_entry(self.label, policy_id), asset_name)


def of_transaction(extra: Extra, policy_id: bytes, asset_name: bytes) -> Metadata | None:
    """An asset's CIP-25 metadata in a transaction, None if label 721 does not name the asset."""
    entry = Described(extra).entry(policy_id, asset_name)
    return None if entry is None else _metadata(entry, ticker=_text(entry.get("ticker")))


def of_datum(datum: bytes, policy_id: bytes, asset_name: bytes) -> Metadata | None:
    """A user token's CIP-68 metadata in the datum of its reference token, None if the datum contains none.

    The datum is a constructor with metadata, version and extra. Issuers omit the latter two and use any constructor
    number. Under the key "721" the metadata describes several assets (version 4).
    """
    content: Mapping[Any, Any] | None = None
    match _fields(_read_cbor(datum)):
        case [Mapping() as first, *_]:
            nested = first.get(_NESTED_KEY)
            of_many = isinstance(nested, Mapping)
            content = _entry(_entry(nested, policy_id), asset_name[_PREFIX_BYTES:]) if of_many else first
    if content is None:
        return None
    entry = {_text(key): value for key, value in content.items()}
    decimals = entry.get("decimals")
    return _metadata(entry, decimals=decimals if is_decimals(decimals) else 0)


def is_decimals(value: object) -> TypeGuard[int]:
    """Whether a value is a valid number of decimals, 0 to 255 (CIP-26)."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_DECIMALS


def reference_name(asset_name: bytes) -> bytes | None:
    """The name of a user token's reference token, None for an asset that is not a user token (CIP-68)."""
    if label_of(asset_name) not in USER_LABELS:
        return None
    return REFERENCE_PREFIX + asset_name[_PREFIX_BYTES:]


_GENERAL_CONSTRUCTOR = 102  # the tag of constructors numbered above 127, whose number precedes the fields


def _fields(content: Any) -> Any:
    """The fields of a constructor, None for anything else."""
    match content:
        case cbor2.CBORTag(tag=tag, value=[_, fields]) if tag == _GENERAL_CONSTRUCTOR:
            return fields
        case cbor2.CBORTag(value=fields):
            return fields
    return None


def _metadata(entry: Mapping[Any, Any], *, ticker: str | None = None, decimals: int | None = None) -> Metadata:
    image = _text(entry.get("image"))
    return Metadata(
        name=_text(entry.get("name")),
        ticker=ticker,
        description=_text(entry.get("description")),
        decimals=decimals,
        image=image if image is not None and image.startswith(IMAGE_SCHEMES) else None,
        url=_text(entry.get("url")),
    )


def _text(value: object) -> str | None:
    """The text of a string, of UTF-8 bytes, or of a list of either, whose pieces may end within a character; None for
    anything else.
    """
    pieces = value if isinstance(value, list | tuple) else [value]
    joined = bytearray()
    for piece in pieces:
        if isinstance(piece, str):
            joined += piece.encode(errors="replace")  # a lone surrogate can't be sent
        elif isinstance(piece, bytes):
            joined += piece
        else:
            return None
    try:
        return joined.decode()
    except UnicodeDecodeError:
        return None


def _entry(entries: Mapping[Any, Any] | None, key: bytes) -> Mapping[Any, Any] | None:
    """The map under a key that is bytes, UTF-8 text, or hex in either case."""
    if not isinstance(entries, Mapping):
        return None
    for form in (key, _text(key), key.hex()):
        if form in entries:
            entry = entries[form]
            break
    else:
        entry = next((entries[form] for form in entries if isinstance(form, str) and form.lower() == key.hex()), None)
    return entry if isinstance(entry, Mapping) else None


def _label(extra: Extra) -> Mapping[Any, Any] | None:
    """The content of label 721, in either form that the node sends."""
    if _CIP25_LABEL in extra.metadata_cbor:
        content = _read_cbor(extra.metadata_cbor[_CIP25_LABEL])
    elif _CIP25_LABEL in extra.metadata_json:
        try:
            content = json.loads(extra.metadata_json[_CIP25_LABEL])
            content = _plain(content) if _is_detailed(content) else content
        except (ValueError, RecursionError):
            return None
    else:
        return None
    return content if isinstance(content, Mapping) else None


def _read_cbor(data: bytes) -> Any:
    """Decoded CBOR, None if it is invalid or of a kind that metadata and datums don't use."""
    try:
        return cbor2.loads(data)
    except Exception:  # noqa: BLE001  NOTE: its tag decoders raise many kinds of errors
        return None


def _is_detailed(value: object) -> bool:
    """Whether JSON follows Ogmios' detailed schema, in which each value is an object that names its type."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("map"), list)


def _plain(value: Any) -> Any:
    """A value of the detailed schema as CBOR would decode it. Raises ValueError for anything else."""
    match value:
        case {"map": list(pairs)}:
            return {_key(_plain(pair["k"])): _plain(pair["v"]) for pair in pairs if _is_pair(pair)}
        case {"list": list(items)}:
            return [_plain(item) for item in items]
        case {"bytes": str(digits)}:
            return bytes.fromhex(digits)
        case {"string": str(text)}:
            return text
        case {"int": int(number)}:
            return number
    raise ValueError(value)


def _key(value: Any) -> Any:
    """A key of a map. Lists and maps, which never name an asset, become text: Python can't use them as keys."""
    return value if isinstance(value, str | bytes | int) else repr(value)


def _is_pair(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {"k", "v"}
