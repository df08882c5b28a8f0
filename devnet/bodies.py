"""The CBOR of generated transactions: as long as a real one, with the parts of its body that Ogmios' JSON can't tell.

These are the types of the certificates, two of which the JSON may show for one, and native scripts in outputs.
"""

from typing import Any

import cbor2

Json = dict[str, Any]

_FILLER, _OUTPUTS, _CERTIFICATES, _REFERENCE_SCRIPT = 0, 1, 4, 3  # keys of the body, and of an output
_WITH_VALIDITY_FLAG = ("alonzo", "babbage", "conway")
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


def encode(tx: Json, id_: str, era: str, size: int) -> bytes:
    """The CBOR of a transaction, of about `size` bytes."""
    body: dict[int, Any] = {}
    if any("script" in output for output in tx.get("outputs", ())):
        body[_OUTPUTS] = [_output(output) for output in tx["outputs"]]
    if certificates := tx.get("certificates"):
        # Whether a registration and a delegation are one certificate follows from the id, so that it stays the same.
        body[_CERTIFICATES] = [[number] for number in _numbers(certificates, joined=int(id_, 16) % 2 == 0)]
    left = max(size - len(cbor2.dumps(body)), 0)
    body[_FILLER] = (bytes.fromhex(id_) * (left // 32 + 1))[:left]
    flag = [tx.get("spends") != "collaterals"] if era in _WITH_VALIDITY_FLAG else []
    return bytes(cbor2.dumps([body, {}, *flag, None]))


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
