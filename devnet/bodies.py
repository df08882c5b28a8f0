"""The CBOR of generated transactions: as long as a real one, with the parts of it that a client reads.

These are inputs, mint, required signers and redeemers, and what Ogmios' JSON can't tell: the types of the certificates,
two of which the JSON may show for one, whole certificates that move instantaneous rewards, and native scripts in
outputs. The rest is filler.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import cbor2

from devnet.addresses import LedgerCredential

Json = dict[str, Any]
Moved = tuple[str, Mapping[LedgerCredential, int]]
"""A certificate that moves instantaneous rewards: the pot, `reserves` or `treasury`, and lovelace by credential."""

# Keys of the body, of an output and of the witnesses. The filler is where a body has the hash of its auxiliary data.
_INPUTS, _OUTPUTS, _CERTIFICATES, _FILLER, _MINT, _REQUIRED_SIGNERS = 0, 1, 4, 7, 9, 14
_REFERENCE_SCRIPT, _REDEEMERS = 3, 5
_HASH_BYTES = 32
_PURPOSES = ("spend", "mint", "publish", "withdraw", "vote", "propose")
_WITH_VALIDITY_FLAG = ("alonzo", "babbage", "conway")
_MOVED_REWARDS, _POTS, _ORIGINS = 6, ("reserves", "treasury"), ("verificationKey", "script")
_ENCODED = 24  # the tag of CBOR in a byte string
# The numbers of certificates in the CDDL. With a deposit, a registration is 7 and a deregistration 8.
_TYPES = {
    "stakeCredentialRegistration": 0,
    "stakeCredentialDeregistration": 1,
    "stakePoolRegistration": 3,
    "stakePoolRetirement": 4,
    "genesisDelegation": 5,
    "constitutionalCommitteeDelegation": 14,
    "constitutionalCommitteeRetirement": 15,
    "delegateRepresentativeRegistration": 16,
    "delegateRepresentativeRetirement": 17,
    "delegateRepresentativeUpdate": 18,
}


def encode_body(tx: Json, digest: str, size: int, moved: Sequence[Moved] = ()) -> bytes:
    """The CBOR of the body of a transaction whose content has that hash, of about `size` bytes."""
    body: dict[int, Any] = {
        _INPUTS: [[bytes.fromhex(each["transaction"]["id"]), each["index"]] for each in tx["inputs"]]
    }
    if any("script" in output for output in tx.get("outputs", ())):
        body[_OUTPUTS] = [_output(output) for output in tx["outputs"]]
    certificates = tx.get("certificates", [])
    if certificates or moved:
        # Whether a registration and a delegation are one certificate follows from the hash, so that it stays the same.
        numbers = _numbers(certificates, joined=int(digest, 16) % 2 == 0)
        body[_CERTIFICATES] = [*map(_moving, moved), *([number] for number in numbers)]
    if mint := tx.get("mint"):
        body[_MINT] = {
            bytes.fromhex(policy): {bytes.fromhex(name): quantity for name, quantity in names.items()}
            for policy, names in mint.items()
        }
    if signers := tx.get("requiredExtraSignatories"):
        body[_REQUIRED_SIGNERS] = [bytes.fromhex(each) for each in signers]
    left = max(size - len(cbor2.dumps(body)), _HASH_BYTES)
    body[_FILLER] = (bytes.fromhex(digest) * (left // _HASH_BYTES + 1))[:left]
    return bytes(cbor2.dumps(body))


def encode(tx: Json, body: bytes, era: str) -> bytes:
    """The CBOR of a transaction with that body."""
    redeemers = [_redeemer(each) for each in tx.get("redeemers", ())]
    flag = [tx.get("spends") != "collaterals"] if era in _WITH_VALIDITY_FLAG else []
    parts = [{_REDEEMERS: redeemers} if redeemers else {}, *flag, None]
    return bytes([0x81 + len(parts)]) + body + b"".join(map(cbor2.dumps, parts))


def _redeemer(shown: Json) -> list[Any]:
    validator, units = shown["validator"], shown["executionUnits"]
    data = cbor2.loads(bytes.fromhex(shown["redeemer"]))
    return [_PURPOSES.index(validator["purpose"]), validator["index"], data, [units["memory"], units["cpu"]]]


def moved_in(tx: Json) -> list[Moved]:
    """The instantaneous rewards that the body of a transaction moves."""
    actions = [proposal["action"] for proposal in tx.get("proposals", ()) if "deposit" not in proposal]
    if not any(action["type"] == "treasuryWithdrawals" for action in actions):
        return []
    body = cbor2.loads(bytes.fromhex(tx["cbor"]))[0]
    contents = [each[1] for each in body.get(_CERTIFICATES, ()) if each[0] == _MOVED_REWARDS]
    return [
        (_POTS[pot], {LedgerCredential(_ORIGINS[origin], key.hex()): paid for (origin, key), paid in amounts.items()})
        for pot, amounts in contents
    ]


def _moving(moved: Moved) -> list[Any]:
    pot, amounts = moved
    paid = {(_ORIGINS.index(who.origin), bytes.fromhex(who.hash)): lovelace for who, lovelace in amounts.items()}
    return [_MOVED_REWARDS, [_POTS.index(pot), paid]]


def _numbers(certificates: list[Json], joined: bool) -> list[int]:
    numbers = list[int]()
    before: Json = {}
    for certificate in certificates:
        new = "deposit" in before and before["type"] == "stakeCredentialRegistration"
        if certificate["type"] != "stakeDelegation":
            named = certificate["type"] in ("stakeCredentialRegistration", "stakeCredentialDeregistration")
            numbers.append(_TYPES[certificate["type"]] + 7 * (named and "deposit" in certificate))
        elif (
            joined
            and new
            and (before["credential"], before["from"]) == (certificate["credential"], certificate["from"])
        ):
            numbers[-1] = {2: 11, 9: 12, 10: 13}[_delegation(certificate)]
        else:
            numbers.append(_delegation(certificate))
        before = certificate
    return numbers


def _delegation(certificate: Json) -> int:
    if "delegateRepresentative" not in certificate:
        return 2
    return 10 if "stakePool" in certificate else 9


def _output(output: Json) -> dict[int, Any]:
    script = output.get("script", {"language": None})
    if script["language"] != "native":
        return {}
    signature = [0, bytes.fromhex(script["json"]["from"])]
    return {_REFERENCE_SCRIPT: cbor2.CBORTag(_ENCODED, cbor2.dumps([0, signature]))}
