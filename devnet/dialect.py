"""The same block in the words of each Ogmios: 6.11 to 7, with the flags that an operator may have set.

A generated block is made in the fullest form: as Ogmios 7 writes it, with everything that flags can add.
"""

from collections.abc import Mapping
from typing import Any

import cbor2
import msgspec

Json = dict[str, Any]


class Dialect(msgspec.Struct, frozen=True):
    """The version, as (major, minor), and the flags of an Ogmios.

    `transaction_cbor` and `metadata_cbor` are `--include-transaction-cbor` and `--include-metadata-cbor`, `detailed` is
    `--metadata-detailed-schema`.
    """

    version: tuple[int, int] = (6, 14)
    transaction_cbor: bool = True
    metadata_cbor: bool = True
    detailed: bool = False

    def block(self, content: Json | bytes) -> bytes:
        """A block as JSON. Recorded blocks are in their own dialect already."""
        if isinstance(content, bytes):
            return content
        if transactions := content.get("transactions"):
            content = {**content, "transactions": [self._transaction(tx, content["era"]) for tx in transactions]}
        return msgspec.json.encode(content)

    def _transaction(self, tx: Json, era: str) -> Json:
        tx = dict(tx)
        if not self.transaction_cbor:
            tx.pop("cbor", None)
        if "metadata" in tx:
            tx["metadata"] = self._metadata(tx["metadata"])
        if "subTransactions" in tx:
            tx["subTransactions"] = [self._transaction(sub, "") for sub in tx["subTransactions"]]
        if self.version < (7, 0):
            self._write_empty_fields(tx, era)
        return tx

    def _write_empty_fields(self, tx: Json, era: str) -> None:
        """Ogmios 6 writes some fields that have nothing in them, 7 leaves them out."""
        tx.setdefault("outputs", [])
        if era != "byron":
            tx.setdefault("validityInterval", {})
        if era == "conway" and self.version >= (6, 14):
            tx.setdefault("treasury", {})

    def _metadata(self, metadata: Json) -> Json:
        """Labels with what the flags ask for; one of which plain JSON says nothing is gone unless a flag keeps it."""
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
    """A metadatum as plain JSON without what JSON can't say: bytes, and map entries under keys of bytes or structure.

    None where nothing is left. So does Ogmios, as its recorded answers show.
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
