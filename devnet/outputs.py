"""Outputs in CBOR, as the machines that evaluate Plutus scripts read them."""

from typing import Any

import cbor2

from devnet import addresses, cbor
from devnet.votes import Reference

Json = dict[str, Any]

_LANGUAGES = {"native": 0, "plutus:v1": 1, "plutus:v2": 2, "plutus:v3": 3}
_CLAUSES = {"signature": 0, "all": 1, "any": 2, "some": 3, "after": 4, "before": 5}


def reference(source: Reference) -> bytes:
    id_, index = source
    return bytes(cbor2.dumps([bytes.fromhex(id_), index]))


def encoded(output: Json) -> bytes:
    """An output, from Ogmios' JSON, in the form since Babbage (`post_alonzo_transaction_output` in the CDDL)."""
    fields = {0: cbor2.dumps(addresses.raw(output["address"])), 1: _value(output["value"])}
    if "datumHash" in output:
        fields[2] = cbor2.dumps([0, bytes.fromhex(output["datumHash"])])
    if "datum" in output:
        fields[2] = cbor2.dumps([1, cbor2.CBORTag(24, bytes.fromhex(output["datum"]))])
    if "script" in output:
        fields[3] = cbor2.dumps(cbor2.CBORTag(24, _script(output["script"])))
    return cbor.map_of((cbor2.dumps(key), field) for key, field in fields.items())


def _value(value: Json) -> bytes:
    lovelace = value["ada"]["lovelace"]
    assets = {
        bytes.fromhex(policy): {bytes.fromhex(name): quantity for name, quantity in names.items()}
        for policy, names in value.items()
        if policy != "ada"
    }
    return bytes(cbor2.dumps([lovelace, assets] if assets else lovelace))


def _script(script: Json) -> bytes:
    language = _LANGUAGES[script["language"]]
    if language:
        return bytes(cbor2.dumps([language, bytes.fromhex(script["cbor"])]))
    return b"\x82\x00" + (bytes.fromhex(script["cbor"]) if "cbor" in script else cbor2.dumps(_native(script["json"])))


def _native(clause: Json) -> list[Any]:
    kind = _CLAUSES[clause["clause"]]
    match clause:
        case {"clause": "signature", "from": str(key)}:
            return [kind, bytes.fromhex(key)]
        case {"atLeast": least, "from": parts}:
            return [kind, least, [_native(part) for part in parts]]
        case {"from": parts}:
            return [kind, [_native(part) for part in parts]]
        case _:
            return [kind, clause["slot"]]
