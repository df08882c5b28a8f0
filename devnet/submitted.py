"""Reads a submitted transaction with pycardano, and converts it to Ogmios' JSON under its own id.

NOTE: pycardano takes a second to import, so only the first submission imports this module.
"""

import io
import os
from typing import Any

import cbor2
import msgspec

from devnet import addresses, parameters
from devnet.dialect import plain
from devnet.refusal import Refusal

os.environ.setdefault("CBOR_C_EXTENSION", "1")  # pycardano's default decoder is slower

import pycardano
from pycardano.crypto.bip32 import BIP32ED25519PublicKey

Json = dict[str, Any]
Body = dict[int, Any]  # by the keys of `transaction_body` in the CDDL

_ERAS_NAMED = {
    6: ("shelley", "allegra", "mary", "alonzo", "babbage", "conway"),
    7: ("alonzo", "babbage", "conway", "dijkstra"),
}
_AUXILIARY_DATA = 259  # its tag since Alonzo
_INLINE = 1


class Submitted(msgspec.Struct, frozen=True):
    """A transaction as it was submitted.

    `content` is its JSON as Ogmios 7 writes it. `signers` are the hashes of the keys that signed it, `forged` the keys
    whose signatures are invalid. `scripts` are its native scripts by hash. `unsupported` names its
    features that the devnet does not support, if any. `output_sizes` and `value_sizes` are the sizes in bytes of its
    outputs and of their values.
    """

    id: str
    cbor: bytes
    content: Json
    network_id: int | None
    signers: frozenset[str]
    forged: tuple[str, ...]
    scripts: dict[str, Json]
    runs_plutus: bool
    unsupported: str | None
    output_sizes: tuple[int, ...]
    value_sizes: tuple[int, ...]
    declared_metadata: str | None
    metadata: str | None

    @property
    def size(self) -> int:
        """Bytes as the ledger counts them: without the validity flag."""
        return len(self.cbor) - 1

    @property
    def invalid_before(self) -> int | None:
        return self._bound("invalidBefore")

    @property
    def invalid_after(self) -> int | None:
        """The first slot in which it is no longer valid."""
        return self._bound("invalidAfter")

    def _bound(self, name: str) -> int | None:
        slot: int | None = self.content["validityInterval"].get(name)
        return slot


def read(cbor: bytes, version: tuple[int, int]) -> Submitted:
    """Parse a transaction. Raises Refusal, as that version of Ogmios words it, if these bytes are not one."""
    try:
        return _read(cbor)
    except Refusal:
        raise
    except Exception as cause:
        names = _ERAS_NAMED[6 if version < (7, 0) else 7]
        reason = f"{type(cause).__name__}: {cause}"[:200]
        message = "Invalid transaction: it is malformed in every era. `data` contains the error for each."
        raise Refusal(-32602, message, dict.fromkeys(names, reason)) from cause


def _read(cbor: bytes) -> Submitted:
    known = pycardano.Transaction.from_cbor(cbor)
    body_bytes, witness_bytes, _, auxiliary_bytes = _parts(cbor)
    body: Body = cbor2.loads(body_bytes)
    witnesses = cbor2.loads(witness_bytes)
    id_ = addresses.blake2b_256(body_bytes)
    keys = [(key, signature) for key, signature in witnesses.get(0, ())]
    byron = [tuple(witness) for witness in witnesses.get(2, ())]
    scripts = {_script_hash(script): _native(script) for script in witnesses.get(1, ())}
    outputs = [_output(output) for output in body[1]]
    metadata, labels = _metadata(auxiliary_bytes)
    content: Json = {
        "id": id_,
        "spends": "inputs" if known.valid else "collaterals",
        "inputs": _references(body[0]),
        "outputs": outputs,
        "fee": parameters.ada(body[2]),
        "validityInterval": _validity(body),
        "signatories": _signatories(keys, byron),
        **_optional(body, known),
    }
    if scripts:
        content["scripts"] = {hash_: {"language": "native", "json": script} for hash_, script in scripts.items()}
    if metadata is not None:
        content["metadata"] = {"hash": metadata, "labels": labels}
    content["cbor"] = cbor.hex()
    declared = body.get(7)
    return Submitted(
        id=id_,
        cbor=cbor,
        content=content,
        network_id=body.get(15),
        signers=_signers(keys, byron),
        forged=_forged([*keys, *byron], id_),
        scripts=scripts,
        runs_plutus=not known.valid or any(witnesses.get(key) for key in (3, 5, 6, 7)),
        unsupported=_unsupported(body),
        output_sizes=tuple(len(cbor2.dumps(output)) for output in body[1]),
        value_sizes=tuple(len(cbor2.dumps(_value_of(output))) for output in body[1]),
        declared_metadata=None if declared is None else declared.hex(),
        metadata=metadata,
    )


def _parts(cbor: bytes) -> list[bytes]:
    """The original bytes of a transaction's four items: the id is the hash of the body as it was sent."""
    if cbor[:1] not in (b"\x84", b"\x9f"):
        raise ValueError("a transaction is an array of four items")
    file = io.BytesIO(cbor)
    file.seek(1)
    decoder, parts = cbor2.CBORDecoder(file), []
    for _ in range(4):
        start = file.tell()
        decoder.decode()
        parts.append(cbor[start : file.tell()])
    if cbor[file.tell() :] != (b"\xff" if cbor[:1] == b"\x9f" else b""):
        raise ValueError("bytes after the transaction")
    return parts


def _validity(body: Body) -> dict[str, int]:
    """The bounds of the slots in which it is valid, if it has any."""
    bounds = (("invalidBefore", 8), ("invalidAfter", 3))
    return {name: body[key] for name, key in bounds if body.get(key) is not None}


def _signatories(keys: list[tuple[bytes, bytes]], byron: list[tuple[Any, ...]]) -> list[Json]:
    return [
        *({"key": key.hex(), "signature": signature.hex()} for key, signature in keys),
        *(_bootstrap(*witness) for witness in byron),
    ]


def _signers(keys: list[tuple[bytes, bytes]], byron: list[tuple[Any, ...]]) -> frozenset[str]:
    """The hashes of the keys that have signed it."""
    return frozenset([addresses.blake2b_224(key) for key, _ in keys] + [_byron_root(*witness) for witness in byron])


def _forged(witnesses: list[tuple[Any, ...]], id_: str) -> tuple[str, ...]:
    """The keys whose signatures are invalid for this transaction."""
    return tuple(key.hex() for key, signature, *_ in witnesses if not _signs(key, signature, id_))


def _signs(key: bytes, signature: bytes, id_: str) -> bool:
    try:
        BIP32ED25519PublicKey(key, b"").verify(signature, bytes.fromhex(id_))
    except Exception:  # noqa: BLE001 - libsodium's wrapper raises several kinds
        return False
    return True


def _optional(body: Body, known: Any) -> Json:
    """The fields that not every transaction has."""
    found: Json = {}
    if certificates := list(known.transaction_body.certificates or ()):
        found["certificates"] = [shown for each in certificates for shown in _certificates(each)]
    if body.get(5):
        found["withdrawals"] = {addresses.shown(who): parameters.ada(lovelace) for who, lovelace in body[5].items()}
    if body.get(9):
        found["mint"] = _assets(body[9])
    if body.get(14):
        found["requiredExtraSignatories"] = sorted(hash_.hex() for hash_ in body[14])
    if body.get(18):
        found["references"] = _references(body[18])
    if body.get(13):
        found["collaterals"] = _references(body[13])
    if body.get(15) is not None:
        found["network"] = "mainnet" if body[15] else "testnet"
    if body.get(22):
        found["treasury"] = {"donation": parameters.ada(body[22])}
    return found


def _unsupported(body: Body) -> str | None:
    """Features of the transaction that a node supports and the devnet does not."""
    names = {6: "updates of the protocol", 19: "votes", 20: "proposals", 21: "statements of the treasury's value"}
    found = [name for key, name in names.items() if body.get(key)]
    return ", ".join(found) or None


def _references(inputs: Any) -> list[Json]:
    """References in the ledger's order. cbor2 reads a tagged set as an unordered set."""
    return [{"transaction": {"id": id_.hex()}, "index": index} for id_, index in sorted(map(tuple, inputs))]


def _output(output: Any) -> Json:
    """An output, as a list (Shelley to Alonzo) or as a map (since Babbage)."""
    value = _value_of(output)
    lovelace, assets = (value, {}) if isinstance(value, int) else value
    if isinstance(output, list):
        shown: Json = {"address": addresses.shown(output[0])}
        if len(output) > 2:
            shown["datumHash"] = output[2].hex()
    else:
        shown = {"address": addresses.shown(output[0])}
        if output.get(2):
            form, datum = output[2]
            shown |= {"datum": datum.value.hex()} if form == _INLINE else {"datumHash": datum.hex()}
        if output.get(3):
            shown["script"] = _script(cbor2.loads(output[3].value))
    return shown | {"value": parameters.ada(lovelace) | _assets(assets)}


def _value_of(output: Any) -> Any:
    return output[1]


def _assets(assets: Any) -> Json:
    """Quantities by policy and name, without those that are zero."""
    found = {
        policy.hex(): {name.hex(): quantity for name, quantity in names.items() if quantity}
        for policy, names in assets.items()
    }
    return {policy: names for policy, names in found.items() if names}


def _script(script: Any) -> Json:
    kind, content = script
    if kind == 0:
        return {"language": "native", "json": _native(content)}
    return {"language": f"plutus:v{kind}", "cbor": content.hex()}


def _script_hash(script: Any) -> str:
    return addresses.blake2b_224(b"\0" + cbor2.dumps(script))


def _native(script: Any) -> Json:
    """A native script in Ogmios' JSON."""
    match list(script):
        case [0, bytes(key)]:
            return {"clause": "signature", "from": key.hex()}
        case [1 | 2 as kind, parts]:
            return {"clause": "all" if kind == 1 else "any", "from": [_native(part) for part in parts]}
        case [3, int(least), parts]:
            return {"clause": "some", "atLeast": least, "from": [_native(part) for part in parts]}
        case [4 | 5 as kind, int(slot)]:
            return {"clause": "after" if kind == 4 else "before", "slot": slot}
        case _:
            raise ValueError("not a native script")


def _certificates(certificate: Any) -> list[Json]:
    """A certificate in Ogmios' form: one that registers and delegates becomes two.

    NOTE: pycardano leaves the certificates of a tagged set as lists.
    """
    fields = certificate if isinstance(certificate, list | tuple) else certificate.to_primitive()
    kind, rest = fields[0], list(fields[1:])
    if kind not in _CERTIFICATES:
        raise Refusal(3998, f"Unrecognized certificate type {kind}: this devnet has certificates of stake only.")
    origin, hash_ = rest.pop(0)
    whose = {"from": "script" if origin else "verificationKey", "credential": _bytes(hash_).hex()}
    registers, pool, representative, deposit = _CERTIFICATES[kind]
    delegation: Json = {"type": "stakeDelegation", **whose}
    if pool:
        delegation["stakePool"] = {"id": addresses.pool_of_hash(_bytes(rest.pop(0)))}
    if representative:
        delegation["delegateRepresentative"] = _representative(rest.pop(0))
    found: list[Json] = []
    if registers:
        stated = {"deposit": parameters.ada(rest.pop(0))} if deposit else {}
        found.append({"type": f"stakeCredential{registers}", **whose, **stated})
    if pool or representative:
        found.append(delegation)
    return found


# Certificates by their numbers in the CDDL: their effect on the registration, and whether they name a pool, a
# representative and a deposit.
_CERTIFICATES = {
    0: ("Registration", False, False, False),
    1: ("Deregistration", False, False, False),
    2: ("", True, False, False),
    7: ("Registration", False, False, True),
    8: ("Deregistration", False, False, True),
    9: ("", False, True, False),
    10: ("", True, True, False),
    11: ("Registration", True, False, True),
    12: ("Registration", False, True, True),
    13: ("Registration", True, True, True),
}


def _representative(drep: Any) -> Json:
    kind, *hash_ = drep
    if kind == 2:
        return {"type": "abstain"}
    if kind == 3:
        return {"type": "noConfidence"}
    origin = "script" if kind else "verificationKey"
    return {"id": _bytes(hash_[0]).hex(), "from": origin, "type": "registered"}


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else bytes(value.payload)


def _bootstrap(key: bytes, signature: bytes, chain_code: bytes, attributes: bytes) -> Json:
    return {
        "key": key.hex(),
        "signature": signature.hex(),
        "chainCode": chain_code.hex(),
        "addressAttributes": attributes.hex(),
    }


def _byron_root(key: bytes, _signature: bytes, chain_code: bytes, attributes: bytes) -> str:
    return addresses.byron_root(key + chain_code, cbor2.loads(attributes))


def _metadata(cbor: bytes) -> tuple[str | None, Json]:
    """The hash of the auxiliary data and the metadata by label; (None, {}) if there is none."""
    auxiliary = cbor2.loads(cbor)
    if auxiliary is None:
        return None, {}
    if isinstance(auxiliary, cbor2.CBORTag) and auxiliary.tag == _AUXILIARY_DATA:
        auxiliary = auxiliary.value.get(0, {})
    elif isinstance(auxiliary, list):
        auxiliary = auxiliary[0]
    labels: Json = {}
    for label, value in auxiliary.items():
        labels[str(label)] = {"cbor": cbor2.dumps(value).hex()}
        if (said := plain(value)) is not None:
            labels[str(label)]["json"] = said
    return addresses.blake2b_256(cbor), labels
