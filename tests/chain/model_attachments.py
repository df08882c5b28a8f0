"""The answers that the API must give about scripts, datums and metadata; see model.py."""

from collections.abc import Iterator
from typing import Any

import cbor2

from tests.chain.model import Json, Ledger, Transaction
from tests.chain.model_owners import hash_of, native_body, script_hash

GENERAL_CONSTRUCTOR = 102


class Attachments:
    """Every script and datum of a ledger at this moment, with the transaction that showed it first."""

    def __init__(self, ledger: Ledger) -> None:
        self.scripts: dict[str, tuple[Json, Transaction]] = {}
        self.datums: dict[str, tuple[str, Transaction]] = {}
        for tx in ledger.transactions.values():
            for given, script in tx.declared.get("scripts", {}).items():
                if script_hash(script) == given:  # otherwise it has another encoding, and its bytes are not sent
                    self.scripts.setdefault(given, (script, tx))
            for given, datum in tx.datums.items():
                self.datums.setdefault(given, (datum, tx))
            for _, output in tx.outputs:
                if output.script is not None:
                    self.scripts.setdefault(script_hash(output.script), (output.script, tx))
                if output.datum is not None:
                    self.datums.setdefault(hash_of(output.datum), (output.datum, tx))

    def script(self, digest: str) -> Json:
        """GET /v1/scripts/:scriptHash"""
        script, tx = self.scripts[digest]
        native = script["language"] == "native"
        cbor = script.get("cbor") or native_body(script["json"]).hex()
        told = {"script_hash": digest, "language": script["language"], "cbor": cbor, "size": len(cbor) // 2}
        return told | first(tx) | ({"json": clause_of(cbor2.loads(bytes.fromhex(cbor)))} if native else {})

    def datum(self, digest: str) -> Json:
        """GET /v1/datums/:datumHash"""
        datum, tx = self.datums[digest]
        return {"datum_hash": digest, "cbor": datum, "json": plutus(datum)} | first(tx)


def first(tx: Transaction) -> Json:
    return {"first_tx_hash": tx.tx_hash, "first_slot_no": tx.slot}


def metadata_of(tx: Transaction) -> dict[str, Json | None]:
    """The metadata of a transaction by label; None for a label that the node sent without CBOR."""
    return {label: entry_of(sent["cbor"]) if "cbor" in sent else None for label, sent in tx.metadata.items()}


def entry_of(cbor: str) -> Json:
    return {"json": metadatum(cbor2.loads(bytes.fromhex(cbor))), "cbor": cbor}


def metadatum(value: Any) -> Json:
    """A metadatum in the detailed schema."""
    match value:
        case int():
            return {"int": value}
        case bytes():
            return {"bytes": value.hex()}
        case str():
            return {"string": value}
        case list() | tuple():
            return {"list": [metadatum(each) for each in value]}
        case _:
            return {"map": [{"k": metadatum(key), "v": metadatum(each)} for key, each in value.items()]}


def plutus(datum: str) -> Json:
    """A datum in the detailed schema of cardano-cli."""
    return plutus_json(cbor2.loads(bytes.fromhex(datum)))


def plutus_json(value: Any) -> Json:
    match value:
        case int():
            return {"int": value}
        case bytes():
            return {"bytes": value.hex()}
        case cbor2.CBORTag(tag=tag, value=fields):
            constructor, parts = fields if tag == GENERAL_CONSTRUCTOR else (constructor_of(tag), fields)
            return {"constructor": constructor, "fields": [plutus_json(part) for part in parts]}
        case list() | tuple():
            return {"list": [plutus_json(part) for part in value]}
        case _:
            return {"map": [{"k": plutus_json(key), "v": plutus_json(part)} for key, part in value.items()]}


def constructor_of(tag: int) -> int:
    return tag - 121 if tag < 1280 else tag - 1280 + 7


def clause_of(tree: Any) -> Json:
    """A native script in the JSON of cardano-cli."""
    kind, *rest = tree
    match kind:
        case 0:
            return {"type": "sig", "keyHash": rest[0].hex()}
        case 1 | 2:
            return {"type": ("all", "any")[kind - 1], "scripts": [*clauses(rest[0])]}
        case 3:
            return {"type": "atLeast", "required": rest[0], "scripts": [*clauses(rest[1])]}
        case _:
            return {"type": "after" if kind == 4 else "before", "slot": rest[0]}


def clauses(trees: list[Any]) -> Iterator[Json]:
    return map(clause_of, trees)
