"""Blocks as each version of Ogmios writes them: 6.11 to 7, with any of the flags that operators set.

Generated blocks contain every field: they are as Ogmios 7 writes them, with all that the flags add.
"""

from collections.abc import Mapping
from typing import Any

import cbor2
import msgspec

Json = dict[str, Any]


class Dialect(msgspec.Struct, frozen=True):
    """The version of an Ogmios, as (major, minor), and its flags.

    `transaction_cbor` and `metadata_cbor` are the flags `--include-transaction-cbor` and `--include-metadata-cbor`, and
    `detailed` is `--metadata-detailed-schema`.
    """

    version: tuple[int, int] = (6, 14)
    transaction_cbor: bool = True
    metadata_cbor: bool = True
    detailed: bool = False

    def block(self, content: Json | bytes) -> bytes:
        """A block as JSON. Recorded blocks are returned unchanged."""
        if isinstance(content, bytes):
            return content
        if transactions := content.get("transactions"):
            content = {**content, "transactions": [self.transaction(tx, content["era"]) for tx in transactions]}
        return msgspec.json.encode(content)

    def transaction(self, tx: Json, era: str) -> Json:
        """Convert a transaction from the complete form of Ogmios 7 to the form that this version writes."""
        tx = dict(tx)
        if not self.transaction_cbor:
            tx.pop("cbor", None)
        if "metadata" in tx:
            tx["metadata"] = self._metadata(tx["metadata"])
        if "subTransactions" in tx:
            tx["subTransactions"] = [self.transaction(sub, "") for sub in tx["subTransactions"]]
        if self.version < (7, 0):
            self._write_empty_fields(tx, era)
        return tx

    def _write_empty_fields(self, tx: Json, era: str) -> None:
        """Ogmios 6 writes some fields even if they are empty; Ogmios 7 omits them."""
        tx.setdefault("outputs", [])
        if era != "byron":
            tx.setdefault("validityInterval", {})
        if era == "conway" and self.version >= (6, 14):
            tx.setdefault("treasury", {})

    def _metadata(self, metadata: Json) -> Json:
        """Metadata in the forms that the flags select; labels that none of these can express are omitted."""
        labels = {}
        for label, value in metadata["labels"].items():
            shown = {"cbor": value["cbor"]} if self.metadata_cbor else {}
            if self.detailed:
                shown["json"] = _detailed(cbor2.loads(bytes.fromhex(value["cbor"])))
            elif "json" in value:
                shown["json"] = value["json"]
            if shown:
                labels[label] = shown
        return {"hash": metadata["hash"], "labels": labels}


def plain(value: Any) -> Any:
    """A metadatum as plain JSON. It loses bytes, and map entries whose keys are bytes, lists or maps, as in Ogmios.

    None if nothing remains.
    """
    match value:
        case bytes():
            return None
        case list():
            return _left(value, [kept for item in value if (kept := plain(item)) is not None])
        case dict():
            entries = ((key, plain(item)) for key, item in value.items() if isinstance(key, str | int))
            return _left(value, {str(key): kept for key, kept in entries if kept is not None})
        case _:
            return value


def _left(whole: Any, kept: Any) -> Any:
    return kept if kept or not whole else None


def _detailed(value: Any) -> Json:
    match value:
        case bytes():
            return {"bytes": value.hex()}
        case str():
            return {"string": value}
        case list() | tuple():
            return {"list": [_detailed(item) for item in value]}
        case Mapping():
            return {"map": [{"k": _detailed(key), "v": _detailed(item)} for key, item in value.items()]}
        case _:
            return {"int": value}
