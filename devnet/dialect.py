"""Blocks as each version of Ogmios writes them: 6.11 to 7, with any of the flags that operators set.

Generated blocks contain every field: they are as Ogmios 7 writes them, with all that the flags add.
"""

from typing import Any

import msgspec

from devnet import cbor
from devnet.cbor import Item

Json = dict[str, Any]


class Dialect(msgspec.Struct, frozen=True):
    """The version of an Ogmios, as (major, minor), and its flags.

    `transaction_cbor` and `metadata_cbor` are the flags `--include-transaction-cbor` and `--include-metadata-cbor`, and
    `detailed` is `--metadata-detailed-schema`. `--include-script-cbor` is never set.
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
        if "scripts" in tx:
            tx["scripts"] = {hash_: _without_cbor(script) for hash_, script in tx["scripts"].items()}
        if "outputs" in tx:
            tx["outputs"] = [self.output(output) for output in tx["outputs"]]
        if "collateralReturn" in tx:
            tx["collateralReturn"] = self.output(tx["collateralReturn"])
        if "subTransactions" in tx:
            tx["subTransactions"] = [self.transaction(sub, "") for sub in tx["subTransactions"]]
        if self.version < (7, 0):
            self._write_empty_fields(tx, era)
        elif not tx.get("validityInterval", True):
            del tx["validityInterval"]
        return tx

    def output(self, output: Json) -> Json:
        """Convert an output."""
        return {**output, "script": _without_cbor(output["script"])} if "script" in output else output

    def _write_empty_fields(self, tx: Json, era: str) -> None:
        """Ogmios 6 writes some fields even if they are empty; Ogmios 7 omits them."""
        tx.setdefault("outputs", [])
        if era != "byron":
            tx.setdefault("validityInterval", {})
        if era == "conway" and self.version >= (6, 14):
            tx.setdefault("treasury", {})

    def _metadata(self, metadata: Json) -> Json:
        """Metadata in the forms that the flags select. A label without JSON always has its CBOR."""
        labels = {}
        for label, value in metadata["labels"].items():
            if self.detailed:
                value = {"cbor": value["cbor"], "json": _detailed(cbor.read(bytes.fromhex(value["cbor"])))}
            labels[label] = value if self.metadata_cbor or "json" not in value else {"json": value["json"]}
        return {"hash": metadata["hash"], "labels": labels}


def _without_cbor(script: Json) -> Json:
    """A script without the CBOR of a native one."""
    return {name: value for name, value in script.items() if script["language"] != "native" or name != "cbor"}


def plain(value: Item) -> Any:
    """A metadatum as Ogmios writes it in plain JSON; None for what it leaves out.

    It leaves out bytes, lists with such an item, and entries of maps with such a value or with a key that is neither a
    number nor text; and maps without entries.
    """
    match value.kind:
        case "bytes":
            return None
        case "list":
            items = [plain(item) for item in value.items()]
            return None if None in items else items
        case "map":
            entries = ((key, plain(item)) for key, item in value.pairs() if key.kind in ("text", "int"))
            return {str(key.value): item for key, item in entries if item is not None} or None
        case _:
            return value.value


def _detailed(value: Item) -> Json:
    match value.kind:
        case "bytes":
            return {"bytes": value.octets().hex()}
        case "text":
            return {"string": value.text()}
        case "list":
            return {"list": [_detailed(item) for item in value.items()]}
        case "map":
            return {"map": [{"k": _detailed(key), "v": _detailed(item)} for key, item in value.pairs()]}
        case _:
            return {"int": value.number()}
