"""The witnesses of a submitted transaction: signatures, scripts, datums and redeemers."""

from typing import Any

import cbor2
import msgspec
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from devnet import addresses, cbor
from devnet.cbor import Item

Json = dict[str, Any]
Pointer = tuple[str, int]  # a redeemer's purpose and index

PURPOSES = ("spend", "mint", "publish", "withdraw", "vote", "propose")
_SCRIPTS = {0: 1, 1: 3, 2: 6, 3: 7}  # keys of `transaction_witness_set` by language: 0 is native, the rest Plutus


class Redeemer(msgspec.Struct, frozen=True):
    """What a script is given, and the execution units that the transaction pays for."""

    purpose: str
    index: int
    data: bytes
    memory: int
    cpu: int

    @property
    def pointer(self) -> Pointer:
        return self.purpose, self.index

    def shown(self) -> Json:
        return {
            "validator": {"index": self.index, "purpose": self.purpose},
            "redeemer": self.data.hex(),
            "executionUnits": {"memory": self.memory, "cpu": self.cpu},
        }


class Witnesses(msgspec.Struct, frozen=True):
    """Signatures in Ogmios' JSON, the hashes of the keys that signed, and the keys whose signatures are invalid.

    `scripts` and `datums` are by hash. `redeemers` have the ledger's order. The last two are the original bytes, None
    without redeemers or datums.
    """

    signatories: tuple[Json, ...]
    signers: frozenset[str]
    forged: tuple[str, ...]
    scripts: dict[str, Json]
    datums: dict[str, str]
    redeemers: tuple[Redeemer, ...]
    redeemers_cbor: bytes | None
    datums_cbor: bytes | None


def read(whole: Item, id_: str) -> Witnesses:
    """The witnesses of the transaction with that id. Raises ValueError."""
    fields = whole.fields()
    keys = {addresses.blake2b_224(key): (key, signature) for key, signature in _signatures(fields.get(0))}
    byron = {_byron_root(*parts): parts for parts in _signatures(fields.get(2))}
    return Witnesses(
        signatories=(
            *({"key": key.hex(), "signature": signature.hex()} for _, (key, signature) in sorted(keys.items())),
            *(_bootstrap(*parts) for _, parts in sorted(byron.items())),
        ),
        signers=frozenset(keys | byron),
        forged=tuple(
            key.hex() for key, signature, *_ in (*keys.values(), *byron.values()) if not _signs(key, signature, id_)
        ),
        scripts=scripts({language: fields[key] for language, key in _SCRIPTS.items() if key in fields}),
        datums={addresses.blake2b_256(datum.cbor): datum.cbor.hex() for datum in _set(fields.get(4))},
        redeemers=_redeemers(fields.get(5)),
        redeemers_cbor=fields[5].cbor if 5 in fields else None,
        datums_cbor=fields[4].cbor if 4 in fields else None,
    )


def scripts(sets: dict[int, Item]) -> dict[str, Json]:
    """Scripts in Ogmios' JSON by their hashes, from a set for each language. Raises ValueError."""
    return {
        addresses.script_hash(language, item.octets() if language else item.cbor): _script(language, item)
        for language, items in sets.items()
        for item in _set(items)
    }


def script(reference: Item) -> Json:
    """A script in Ogmios' JSON, from its form in outputs: its language and its content."""
    language, content = reference.items()
    return _script(language.number(), content)


def _set(items: Item | None) -> tuple[Item, ...]:
    """The items of a set of witnesses, which may be equal until protocol 12."""
    if items is None:
        return ()
    return items.content(cbor.SET).items() if items.tag == cbor.SET else items.items()


def _signatures(items: Item | None) -> list[tuple[bytes, ...]]:
    return [tuple(part.octets() for part in witness.items()) for witness in _set(items)]


def _redeemers(items: Item | None) -> tuple[Redeemer, ...]:
    """The redeemers in the ledger's order; of two for the same purpose and index, the last counts, as in the ledger."""
    if items is None:
        return ()
    if items.kind == "map":
        parts = [(*key.items(), *value.items()) for key, value in items.pairs()]
    else:
        parts = [redeemer.items() for redeemer in items.items()]
    redeemers: dict[tuple[int, int], Redeemer] = {}
    for purpose, index, data, units in parts:
        memory, cpu = (unit.number() for unit in units.items())
        purpose_no, place = purpose.number(), index.number()
        redeemers[purpose_no, place] = Redeemer(PURPOSES[purpose_no], place, data.cbor, memory, cpu)
    return tuple(redeemers[key] for key in sorted(redeemers))


def _script(language: int, content: Item) -> Json:
    if language:
        return {"language": f"plutus:v{language}", "cbor": content.octets().hex()}
    return {"language": "native", "json": _native(content), "cbor": content.cbor.hex()}


def _native(content: Item) -> Json:
    """A native script in Ogmios' JSON."""
    kind, *rest = content.items()
    match kind.number(), rest:
        case 0, [key]:
            return {"clause": "signature", "from": key.octets().hex()}
        case 1 | 2 as clause, [parts]:
            return {"clause": "all" if clause == 1 else "any", "from": [_native(part) for part in parts.items()]}
        case 3, [least, parts]:
            of = [_native(part) for part in parts.items()]
            return {"clause": "some", "atLeast": least.number(), "from": of}
        case 4 | 5 as clause, [slot]:
            return {"clause": "after" if clause == 4 else "before", "slot": slot.number()}
        case _:
            raise ValueError("not a native script")


def _signs(key: bytes, signature: bytes, id_: str) -> bool:
    try:
        VerifyKey(key).verify(bytes.fromhex(id_), signature)
    except BadSignatureError:
        return False
    return True


def _bootstrap(key: bytes, signature: bytes, chain_code: bytes, attributes: bytes) -> Json:
    return {
        "key": key.hex(),
        "signature": signature.hex(),
        "chainCode": chain_code.hex(),
        "addressAttributes": attributes.hex(),
    }


def _byron_root(key: bytes, _signature: bytes, chain_code: bytes, attributes: bytes) -> str:
    return addresses.byron_root(key + chain_code, cbor2.loads(attributes))
