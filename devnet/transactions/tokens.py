"""Mints and burns, and token metadata: CIP-25, and CIP-68 in the datum of a reference token."""

from functools import lru_cache
from typing import Any

import cbor2

from devnet import addresses
from devnet.draft import Draft, Impossible
from devnet.transactions import TransactionKind
from devnet.transactions.contracts import redeem

Json = dict[str, Any]

ADA = 1_000_000
MAX_MINTED = 2**63 - 1  # a transaction's mint is a signed 64-bit number
_EDITIONS = 12
REFERENCE, NFT, FUNGIBLE, RICH = "000643b0", "000de140", "0014df10", "001bc280"  # CIP-67 labels 100, 222, 333, 444

_FUNGIBLES = [b"Gold", b"SILVER-2", "Größe".encode(), b"", b"\xff\xfe\x00\x80", b"x" * 32, b"nul\x00inside"]


def mint_fungible(draft: Draft) -> Json:
    """Mint more of one of a few tokens. One has an empty name, one a name that is not UTF-8."""
    policy = _policy(draft)
    name = draft.random.choice(_FUNGIBLES).hex()
    owner = _owner(draft, policy)
    payer = draft.fund(10 * ADA, owner)
    quantity = draft.random.randint(1, 10**9)
    draft.mint(policy, name, quantity)
    draft.pay(draft.cast.somebody(draft.random), 2 * ADA, {(policy, name): (quantity + 1) // 2})
    return draft.done(owner if payer in draft.cast.faucets else payer)


def mint_huge(draft: Draft) -> Json:
    """Mint as much as a transaction can, repeatedly: the supply exceeds 63 bits, then 64."""
    policy = draft.cast.policies[0]
    name = b"Huge".hex()
    draft.fund(10 * ADA)
    draft.mint(policy, name, MAX_MINTED)
    draft.pay(_owner(draft, policy), 2 * ADA, {(policy, name): MAX_MINTED})
    return draft.done()


def burn(draft: Draft) -> Json:
    """Burn some or all tokens of a policy's owner, and sometimes mint another token of the policy."""
    policy = _policy(draft)
    owner = _owner(draft, policy)
    for reference in draft.references(owner, limit=40):
        if policy in draft.ledger.unspent[reference]["value"]:
            draft.spend(reference)
            names = sorted(name for of_policy, name in draft.assets if of_policy == policy)
            for name in draft.random.sample(names, min(len(names), 3)):
                quantity = draft.assets[policy, name]
                whole = draft.random.random() < 0.5
                draft.mint(policy, name, -min(quantity if whole else (quantity + 1) // 2, MAX_MINTED))
            if draft.random.random() < 0.3:
                draft.mint(policy, draft.random.randbytes(4).hex(), 7)
            return draft.done(owner)
    raise Impossible


def mint_collection(draft: Draft) -> Json:
    """Mint up to ten NFTs of one policy, with CIP-25 metadata of version 1."""
    policy = _policy(draft)
    draft.fund(30 * ADA)
    names = [f"Piece{draft.random.randrange(100_000)}" for _ in range(draft.random.randint(1, 10))]
    for name in dict.fromkeys(names):
        draft.mint(policy, name.encode().hex(), 1)
    described = {name: {"name": f"{name} of all", "image": f"ipfs://Qm{name}"} for name in names}
    draft.describe({721: {policy: described}})
    return _deliver(draft, policy)


def mint_described(draft: Draft) -> Json:
    """Mint one token with metadata in one of the forms that CIP-25 allows, or that occur in practice."""
    policy = _policy(draft)
    draft.fund(10 * ADA)
    name = f"Art{draft.random.randrange(100_000)}".encode()
    draft.mint(policy, name.hex(), 1)
    key, text = bytes.fromhex(policy), name.decode()
    plain = {"name": text, "image": f"https://example.org/{text}.png", "description": "One line"}
    long = {"name": text, "image": ["ipfs://ipfs/Qm" + "a" * 50, "b" * 40], "description": ["Two ", "lines"]}
    odd = {"name": "nul \x00 inside", "image": "data:image/svg+xml;utf8,<svg/>", "ticker": "ART", "decimals": 2}
    draft.describe(
        draft.random.choice(
            [
                {721: {key: {name: plain}, "version": 2}},
                {721: {key: {name: long}, "version": 2}, 20: {"beside": 1}},
                {721: {policy: {text: long}, "version": "1.0"}},
                {721: {policy: {text: plain}, "version": 2}},
                {721: {policy: {name.hex(): plain}, "version": 1}},
                {721: {policy.upper(): {text: odd}}},
                {721: {policy: {text: odd, "another": plain}, draft.cast.policies[-1]: {"unminted": plain}}},
                {721: {policy: {text: "no map"}}},
                {721: {policy: [text], "version": 3}},
            ]
        )
    )
    return _deliver(draft, policy)


def mint_pair(draft: Draft) -> Json:
    """Mint a CIP-68 token of label 222, 333 or 444 with its reference token, which holds the datum."""
    policy = _policy(draft)
    draft.fund(12 * ADA)
    label, quantity = draft.random.choice([(NFT, 1), (FUNGIBLE, 1_000_000), (RICH, 40)])
    name = draft.random.randbytes(4).hex()
    draft.mint(policy, REFERENCE + name, 1)
    draft.mint(policy, label + name, quantity)
    _lock(draft, {(policy, REFERENCE + name): 1}, name)
    return _deliver(draft, policy)


def mint_without_reference(draft: Draft) -> Json:
    """Mint a CIP-68 token without its reference token, or one whose label has a wrong checksum."""
    policy = _policy(draft)
    draft.fund(10 * ADA)
    draft.mint(policy, draft.random.choice([NFT, "000de141", FUNGIBLE]) + draft.random.randbytes(3).hex(), 1)
    return _deliver(draft, policy)


def update_reference(draft: Draft) -> Json:
    """Lock a reference token again, with another datum."""
    reference, (policy, name) = _locked(draft)
    _unlock(draft, reference, name[8:])
    _lock(draft, {(policy, name): 1}, name[8:])
    return draft.done()


def move_reference(draft: Draft) -> Json:
    """Pay a reference token to an ordinary address, without a datum."""
    reference, (policy, name) = _locked(draft)
    _unlock(draft, reference, name[8:])
    draft.pay(draft.cast.somebody(draft.random), 2 * ADA, {(policy, name): 1})
    return draft.done()


def burn_reference(draft: Draft) -> Json:
    reference, (policy, name) = _locked(draft)
    _unlock(draft, reference, name[8:])
    draft.mint(policy, name, -1)
    return draft.done()


def _policy(draft: Draft) -> str:
    return draft.random.choice(draft.cast.policies)


def _owner(draft: Draft, policy: str) -> str:
    """The address to which a policy's tokens are minted."""
    return draft.cast.people[1 + draft.cast.policies.index(policy)]


def _deliver(draft: Draft, policy: str) -> Json:
    """Pay the minted tokens to the policy's owner or to a random person, and the rest to the payer."""
    names = draft.tx["mint"][policy]
    minted = {
        (of_policy, name): draft.assets[of_policy, name] for of_policy, name in sorted(draft.assets) if name in names
    }
    mine = {
        (of_policy, name): quantity
        for (of_policy, name), quantity in minted.items()
        if of_policy == policy and quantity > 0
    }
    receiver = draft.random.choice([_owner(draft, policy), draft.cast.somebody(draft.random)])
    draft.pay(receiver, 2 * ADA, mine)
    return draft.done()


def _locked(draft: Draft) -> tuple[tuple[str, int], tuple[str, str]]:
    """A reference token that is locked at the script's address."""
    references = draft.references(draft.cast.script_addresses[0], limit=100)
    if not references:
        raise Impossible
    reference = draft.random.choice(references)
    value = draft.ledger.unspent[reference]["value"]
    policy = next(key for key in value if key != "ada")
    return reference, (policy, next(iter(value[policy])))


def _lock(draft: Draft, assets: dict[tuple[str, str], int], name: str) -> None:
    """Lock a reference token at the script's address: the datum is inline, or a hash with or without its preimage."""
    body = _datum(name, draft.random.randrange(_EDITIONS))
    digest = addresses.blake2b_256(body)
    inline = {"datum": body.hex()} if draft.since("babbage") else {"datumHash": digest}
    form = draft.random.choice([inline, {"datumHash": digest}])
    if "datumHash" in form and draft.random.random() < 0.7:
        draft.tx.setdefault("datums", {})[digest] = body.hex()
    draft.pay(draft.cast.script_addresses[0], 3 * ADA, assets, **form)


def _unlock(draft: Draft, reference: tuple[str, int], name: str) -> None:
    """Spend a script's output with redeemer, collateral and, if the output has a datum hash, the datum."""
    output = draft.spend(reference)
    draft.fund(12 * ADA)
    for edition in range(_EDITIONS if "datumHash" in output else 0):
        body = _datum(name, edition)
        if addresses.blake2b_256(body) == output["datumHash"]:
            draft.tx.setdefault("datums", {})[output["datumHash"]] = body.hex()
    redeem(draft, "spend")


@lru_cache(maxsize=10_000)
def _datum(name: str, edition: int) -> bytes:
    """A CIP-68 datum: text whole or in chunks, with or without the third field; one of four is not CIP-68."""
    title = f"Token {name}, edition {edition}".encode()
    metadata: dict[bytes, Any] = {b"name": title, b"image": b"ipfs://Qm" + name.encode(), b"decimals": 6}
    chunks = {b"description": [b"More bytes than a datum's 64: ", b"text in chunks"]}
    forms: list[Any] = [
        cbor2.CBORTag(121, [metadata, 1, cbor2.CBORTag(121, [])]),
        cbor2.CBORTag(121, [metadata | chunks, 2, []]),
        cbor2.CBORTag(121, [metadata | {b"description": b"\xff no text", b"url": b"https://example.org"}, 1]),
        cbor2.CBORTag(122, [edition]),
    ]
    return cbor2.dumps(forms[edition % len(forms)])


KINDS = [
    TransactionKind(mint_fungible, since="mary"),
    TransactionKind(mint_huge, since="mary"),
    TransactionKind(burn, since="mary"),
    TransactionKind(mint_collection, since="mary"),
    TransactionKind(mint_described, since="mary"),
    TransactionKind(mint_pair, since="alonzo"),
    TransactionKind(mint_without_reference, since="mary"),
    TransactionKind(update_reference, since="alonzo"),
    TransactionKind(move_reference, since="alonzo"),
    TransactionKind(burn_reference, since="alonzo"),
]
