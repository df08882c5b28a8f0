"""Certificates of a submitted transaction in Ogmios' JSON."""

from typing import Any

from devnet import addresses, parameters
from devnet.cbor import Item
from devnet.refusal import Refusal

Json = dict[str, Any]

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


def shown(certificate: Item) -> list[Json]:
    """A certificate in Ogmios' form: one that registers and delegates becomes two. Raises ValueError and Refusal."""
    kind, *rest = certificate.items()
    if kind.number() not in _CERTIFICATES:
        reason = f"Unrecognized certificate type {kind.number()}: this devnet has certificates of stake only."
        raise Refusal(3998, reason)
    registers, pool, representative, deposit = _CERTIFICATES[kind.number()]
    origin, hash_ = rest.pop(0).items()
    whose = {"from": "script" if origin.number() else "verificationKey", "credential": hash_.octets().hex()}
    delegation: Json = {"type": "stakeDelegation", **whose}
    if pool:
        delegation["stakePool"] = {"id": addresses.pool_of_hash(rest.pop(0).octets())}
    if representative:
        delegation["delegateRepresentative"] = _representative(rest.pop(0))
    certificates: list[Json] = []
    if registers:
        stated = {"deposit": parameters.ada(rest.pop(0).number())} if deposit else {}
        certificates.append({"type": f"stakeCredential{registers}", **whose, **stated})
    if pool or representative:
        certificates.append(delegation)
    if rest:
        raise ValueError("a certificate has more items than its kind allows")
    return certificates


def _representative(drep: Item) -> Json:
    kind, *hash_ = drep.items()
    if kind.number() == 2:
        return {"type": "abstain"}
    if kind.number() == 3:
        return {"type": "noConfidence"}
    origin = "script" if kind.number() else "verificationKey"
    return {"id": hash_[0].octets().hex(), "from": origin, "type": "registered"}
