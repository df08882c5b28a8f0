"""Reads a submitted transaction, and converts it to Ogmios' JSON under its own id.

Everything is read from the transaction's own bytes (`devnet.cbor`), so that nothing is lost: the order of certificates,
the bytes of datums and scripts. What the ledger's decoders refuse in Conway is refused here: equal items of a set,
equal keys of a map, pointers beyond their bounds.
"""

from typing import Any

import msgspec

from devnet import addresses, cbor, certificates, parameters, witnesses
from devnet.cbor import Item
from devnet.dialect import plain
from devnet.refusal import Refusal
from devnet.witnesses import Redeemer, Witnesses

Json = dict[str, Any]
Body = dict[int, Item]  # by the keys of `transaction_body` in the CDDL

_ERAS_NAMED = {
    6: ("shelley", "allegra", "mary", "alonzo", "babbage", "conway"),
    7: ("alonzo", "babbage", "conway", "dijkstra"),
}
_FIELDS = {*range(6), 7, 8, 9, 11, *range(13, 23)}  # `transaction_body` in Conway's CDDL
_NOT_EMPTY = {4, 5, 9, 13, 14, 18, 19, 20, 22}
_AUXILIARY_DATA = 259  # its tag since Alonzo
_CBOR = 24  # the tag of CBOR in bytes
_INLINE = 1


class Submitted(msgspec.Struct, frozen=True):
    """A transaction as it was submitted.

    `content` is its JSON as Ogmios 7 writes it. `certificates` are those in it, grouped as in the body, of which some
    become two. `signers` are the hashes of the keys that signed it, `forged` the keys whose signatures are invalid.
    `scripts` are its scripts by hash. `unsupported` names its features that the devnet does not support, if any.
    `output_sizes` and `value_sizes` are the sizes in bytes of its outputs and of their values, with the output that
    returns collateral last. `size` is its own, as the ledger counts it: without the validity flag. `redeemers_cbor` and
    `datums_cbor` are what the hash of script integrity is made of.
    """

    id: str
    cbor: bytes
    size: int
    content: Json
    certificates: tuple[list[Json], ...]
    network_id: int | None
    signers: frozenset[str]
    forged: tuple[str, ...]
    scripts: dict[str, Json]
    redeemers: tuple[Redeemer, ...]
    redeemers_cbor: bytes | None
    datums_cbor: bytes | None
    unsupported: str | None
    output_sizes: tuple[int, ...]
    value_sizes: tuple[int, ...]
    declared_metadata: str | None
    metadata: str | None

    @property
    def is_valid(self) -> bool:
        """Whether it says that its scripts succeed."""
        return bool(self.content["spends"] == "inputs")

    @property
    def runs_plutus(self) -> bool:
        return bool(self.redeemers) or not self.is_valid

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


def read(content: bytes, version: tuple[int, int]) -> Submitted:
    """Parse a transaction. Raises Refusal, as that version of Ogmios words it, if these bytes are not one."""
    try:
        return _read(content)
    except Refusal:
        raise
    except Exception as cause:
        names = _ERAS_NAMED[6 if version < (7, 0) else 7]
        reason = f"{type(cause).__name__}: {cause}"[:200]
        message = "Invalid transaction: it is malformed in every era. `data` contains the error for each."
        raise Refusal(-32602, message, dict.fromkeys(names, reason)) from cause


def _read(content: bytes) -> Submitted:
    parts = cbor.read(content).items()
    if len(parts) != 4:
        raise ValueError("a transaction is an array of four items")
    whole_body, whole_witnesses, valid, auxiliary = parts
    body = _body(whole_body)
    id_ = addresses.blake2b_256(whole_body.cbor)
    witnessed = witnesses.read(whole_witnesses, id_)
    outputs = (*body[1].items(), *([body[16]] if 16 in body else []))
    certified = tuple(map(certificates.shown, body[4].distinct())) if 4 in body else ()
    metadata, labels, auxiliary_scripts = _metadata(auxiliary)
    declared = body.get(7)
    return Submitted(
        id=id_,
        cbor=content,
        size=1 + len(whole_body.cbor) + len(whole_witnesses.cbor) + len(auxiliary.cbor),
        content={
            "id": id_,
            "spends": "inputs" if valid.flag() else "collaterals",
            "inputs": _references(body[0]),
            "outputs": [_output(output) for output in body[1].items()],
            "fee": parameters.ada(body[2].number()),
            "validityInterval": _validity(body),
            **_optional(body, certified),
            **_witnessed(witnessed, auxiliary_scripts),
            **({} if metadata is None else {"metadata": {"hash": metadata, "labels": labels}}),
            "cbor": content.hex(),
        },
        certificates=certified,
        network_id=body[15].number() if 15 in body else None,
        signers=witnessed.signers,
        forged=witnessed.forged,
        scripts=witnessed.scripts,
        redeemers=witnessed.redeemers,
        redeemers_cbor=witnessed.redeemers_cbor,
        datums_cbor=witnessed.datums_cbor,
        unsupported=_unsupported(body),
        output_sizes=tuple(len(output.cbor) for output in outputs),
        value_sizes=tuple(len(cbor.definite(_value_of(output))) for output in outputs),
        declared_metadata=None if declared is None else declared.octets().hex(),
        metadata=metadata,
    )


def _body(whole: Item) -> Body:
    """The body's fields. Conway's decoder knows no others, and refuses those that may be left out and are empty."""
    body = whole.fields()
    if unknown := sorted(body.keys() - _FIELDS):
        raise ValueError(f"unknown fields of the body: {unknown}")
    for key in _NOT_EMPTY & body.keys():
        content = body[key].content(cbor.SET) if body[key].tag == cbor.SET else body[key]
        if not content.value:
            raise ValueError(f"field {key} of the body must not be empty")
    return body


def _witnessed(witnesses: Witnesses, auxiliary_scripts: dict[str, Json]) -> Json:
    """The signatures, scripts, datums and redeemers; maps are sorted by their keys, as the ledger has them.

    Ogmios shows the scripts of the auxiliary data among them, though they witness nothing.
    """
    shown: Json = {"signatories": list(witnesses.signatories)}
    if scripts := auxiliary_scripts | witnesses.scripts:
        shown["scripts"] = dict(sorted(scripts.items()))
    if witnesses.datums:
        shown["datums"] = dict(sorted(witnesses.datums.items()))
    if witnesses.redeemers:
        shown["redeemers"] = [redeemer.shown() for redeemer in witnesses.redeemers]
    return shown


def _validity(body: Body) -> dict[str, int]:
    """The bounds of the slots in which it is valid, if it has any."""
    bounds = (("invalidBefore", 8), ("invalidAfter", 3))
    return {name: body[key].number() for name, key in bounds if key in body}


def _optional(body: Body, certified: tuple[list[Json], ...]) -> Json:
    """The fields that not every transaction has."""
    fields: Json = {}
    if certified:
        fields["certificates"] = [shown for forms in certified for shown in forms]
    if 5 in body:
        fields["withdrawals"] = _withdrawals(body[5])
    if 9 in body:
        fields["mint"] = _assets(body[9])
    if 11 in body:
        fields["scriptIntegrityHash"] = body[11].octets().hex()
    if 13 in body:
        fields["collaterals"] = _references(body[13])
    if 14 in body:
        fields["requiredExtraSignatories"] = sorted(hash_.octets().hex() for hash_ in body[14].distinct())
    if 15 in body:
        fields["network"] = "mainnet" if body[15].number() else "testnet"
    if 16 in body:
        fields["collateralReturn"] = _output(body[16])
    if 17 in body:
        fields["totalCollateral"] = parameters.ada(body[17].number())
    if 18 in body:
        fields["references"] = _references(body[18])
    treasury = {
        name: parameters.ada(body[key].number()) for name, key in (("value", 21), ("donation", 22)) if key in body
    }
    if treasury:
        fields["treasury"] = treasury
    return fields


def _unsupported(body: Body) -> str | None:
    """Features of the transaction that a node supports and the devnet does not."""
    names = {19: "votes", 20: "proposals", 21: "statements of the treasury's value"}
    features = [name for key, name in names.items() if key in body]
    return ", ".join(features) or None


def _withdrawals(withdrawals: Item) -> Json:
    """Lovelace by stake address, in the ledger's order: scripts come before keys, as in its type `Credential`."""
    by_account = {who.octets(): lovelace.number() for who, lovelace in withdrawals.entries()}
    for who in by_account:
        addresses.must_be_account(who)
    in_order = sorted(by_account, key=lambda who: (not who[0] & 0x10, who[1:]))
    return {addresses.shown(who): parameters.ada(by_account[who]) for who in in_order}


def _references(inputs: Item) -> list[Json]:
    """References in the ledger's order, which is that of redeemers' indexes, too."""
    references = sorted((id_.octets(), index.number()) for id_, index in map(Item.items, inputs.distinct()))
    return [{"transaction": {"id": id_.hex()}, "index": index} for id_, index in references]


def _output(output: Item) -> Json:
    """An output, as a list (Shelley to Alonzo) or as a map (since Babbage)."""
    if output.kind == "list":
        address, value, *hash_ = output.items()
        shown: Json = {"address": _address(address), "value": _value(value)}
        return shown | ({"datumHash": hash_[0].octets().hex()} if hash_ else {})
    fields = output.fields()
    shown = {"address": _address(fields[0]), "value": _value(fields[1])}
    if 2 in fields:
        form, datum = fields[2].items()
        is_inline = form.number() == _INLINE
        shown |= {"datum": datum.content(_CBOR).octets().hex()} if is_inline else {"datumHash": datum.octets().hex()}
    if 3 in fields:
        shown["script"] = witnesses.script(cbor.read(fields[3].content(_CBOR).octets()))
    return shown


def _address(item: Item) -> str:
    content = item.octets()
    addresses.must_be_payable(content)
    return addresses.shown(content)


def _value_of(output: Item) -> Item:
    return output.items()[1] if output.kind == "list" else output.fields()[1]


def _value(value: Item) -> Json:
    if value.kind == "int":
        return parameters.ada(value.number())
    lovelace, assets = value.items()
    return parameters.ada(lovelace.number()) | _assets(assets)


def _assets(assets: Item) -> Json:
    """Quantities by policy and name, in the ledger's order."""
    return dict(sorted((policy.octets().hex(), _quantities(names)) for policy, names in assets.entries()))


def _quantities(names: Item) -> dict[str, int]:
    quantities = dict(sorted((name.octets().hex(), quantity.number()) for name, quantity in names.entries()))
    if not all(quantities.values()):
        raise ValueError("a quantity of an asset is zero")
    if not quantities:
        raise ValueError("a policy has no assets")
    return quantities


def _metadata(auxiliary: Item) -> tuple[str | None, Json, dict[str, Json]]:
    """The hash of the auxiliary data, the metadata by label and the scripts by hash; nothing if there is none."""
    if auxiliary.is_null:
        return None, {}, {}
    content: Item | None = auxiliary
    scripts: dict[str, Json] = {}
    if auxiliary.tag == _AUXILIARY_DATA:
        fields = auxiliary.content(_AUXILIARY_DATA).fields()
        content = fields.get(0)
        scripts = witnesses.scripts(
            {language: fields[key] for language, key in enumerate(range(1, 5)) if key in fields}
        )
    elif auxiliary.kind == "list":
        content, natives = auxiliary.items()
        scripts = witnesses.scripts({0: natives})
    labels: Json = {}
    entries = {} if content is None else content.fields()
    for label, value in sorted(entries.items()):
        labels[str(label)] = shown = {"cbor": cbor.definite(value).hex()}
        if (said := plain(value)) is not None:
            shown["json"] = said
    return addresses.blake2b_256(auxiliary.cbor), labels, scripts
