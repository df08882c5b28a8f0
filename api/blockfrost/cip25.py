"""The version of CIP-25 that an asset's metadata complies with, as Blockfrost decides it.

The rules are those of `getOnchainMetadata` in https://github.com/blockfrost/openapi, and of its schema
`asset_onchain_metadata_cip25`. Pure.
"""

from collections.abc import Mapping
from typing import Any, Literal

from api.blockfrost import plain
from api.chain import metadatum

Standard = Literal["CIP25v1", "CIP25v2"]

_STANDARDS: dict[float, Standard] = {1: "CIP25v1", 2: "CIP25v2"}


def standard(label: Mapping[Any, Any], policy_id: bytes, asset_name: bytes) -> Standard | None:
    """The version that label 721 of a transaction names, if it has the asset under keys of that version, with metadata
    of the right form; else None.
    """
    version = _STANDARDS.get(_version(label.get("version")))
    match version:
        case "CIP25v1":
            entry = _by_text(label, policy_id, asset_name)
        case "CIP25v2":
            entry = _under(_under(label, policy_id), asset_name)
        case _:
            return None
    return version if isinstance(entry, Mapping) and _complies(entry) else None


def _version(said: object) -> float:
    """The number of a version as JavaScript's `Number` reads it; 1 if there is none, -1 for what is no number."""
    match said:
        case None | "" | 0:
            return 1
        case int():
            return said
        case bytes():
            return int.from_bytes(said) if said else -1  # as JSON, `0x` and hex digits
        case str():
            try:
                return float(said)
            except ValueError:
                return -1
    return -1


def _by_text(label: Mapping[Any, Any], policy_id: bytes, asset_name: bytes) -> Any:
    """The entry of an asset by the hex digits of its policy and its name as text, or else in hex digits."""
    assets = _under(label, policy_id.hex())
    entry = _under(assets, asset_name.decode(errors="replace"))
    return _under(assets, asset_name.hex()) if entry is None else entry


def _under(entries: Any, key: str | bytes) -> Any:
    return entries.get(key) if isinstance(entries, Mapping) else None


def _complies(entry: Mapping[Any, Any]) -> bool:
    """Whether metadata has a name and an image, and each field that CIP-25 names has the right type."""
    try:
        shown = plain.of_detailed(metadatum.detailed(entry))
    except ValueError:  # nested too deeply, or values that metadata can't have
        return False
    files = shown.get("files", [])
    return (
        isinstance(shown.get("name"), str)
        and _is_text_or_texts(shown.get("image"))
        and _is_text_or_texts(shown.get("description", ""))
        and isinstance(shown.get("mediaType", ""), str)
        and isinstance(files, list)
        and all(map(_is_file, files))
    )


def _is_file(shown: Any) -> bool:
    return (
        isinstance(shown, dict)
        and isinstance(shown.get("name", ""), str)
        and isinstance(shown.get("mediaType"), str)
        and _is_text_or_texts(shown.get("src"))
    )


def _is_text_or_texts(shown: Any) -> bool:
    return isinstance(shown, str) or (isinstance(shown, list) and all(isinstance(each, str) for each in shown))
