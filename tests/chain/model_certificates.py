"""Certificates as answers show them, from the JSON of Ogmios. Every part of that JSON must be used."""

import cbor2

from tests.chain.model import Json, Transaction, stake_address


def shown(certificate: Json, network: str) -> Json:
    """The answer for a certificate; fails if it has a part that no answer shows."""
    rest = dict(certificate)
    told: Json = {"type": rest.pop("type")}
    if "credential" in rest:
        script = rest.pop("from") == "script"
        told["stake_address"] = stake_address(network, rest.pop("credential"), script=script)
    told |= pool(rest.pop("stakePool", {}), network)
    if "delegateRepresentative" in rest:
        told["delegate_representative"] = with_origin(rest.pop("delegateRepresentative"))
    if "deposit" in rest:
        told["deposit"] = rest.pop("deposit")["ada"]["lovelace"]
    if "member" in rest:
        told["committee_member"] = with_origin(rest.pop("member"))
    if "issuer" in rest:
        delegate = dict(rest.pop("delegate"))
        told["genesis_delegation"] = {
            "genesis_key_hash": rest.pop("issuer")["id"],
            "delegate_key_hash": delegate.pop("id"),
            "vrf_key_hash": delegate.pop("vrfVerificationKeyHash"),
        }
        assert not delegate
    if "delegate" in rest:
        authorized = dict(rest.pop("delegate"))
        assert authorized.pop("status") == "authorized"
        told["committee_delegate"] = with_origin(authorized)
    anchor = rest.pop("metadata", None)
    if anchor is not None:
        told["anchor"] = anchor
    assert not rest
    return told


def places_of(tx: Json) -> list[int | None]:
    """The place of each certificate that Ogmios shows, by the transaction's CBOR.

    Types 11, 12 and 13 are shown as two, and 6 is not. Without CBOR, the places after two that may be one are unknown,
    and all if there are some of type 6.
    """
    shown = tx.get("certificates", [])
    if "cbor" in tx:
        # Another tag than that of sets: cbor2 makes Python's, which have no order.
        listed = cbor2.loads(bytes.fromhex(tx["cbor"]).replace(b"\xd9\x01\x02", b"\xd9\xff\x00"))[0].get(4, [])
        numbers = [each[0] for each in getattr(listed, "value", listed)]
        shown_as = {6: 0, 11: 2, 12: 2, 13: 2}
        doubled = [place for place, number in enumerate(numbers) for _ in range(shown_as.get(number, 1))]
        assert len(doubled) == len(shown)
        return list(doubled)
    if "treasuryWithdrawals" in actions_without_deposit(tx):
        return [None] * len(shown)
    places: list[int | None] = []
    for each in shown:
        before = shown[len(places) - 1] if places else {}
        joined = before.get("type") == "stakeCredentialRegistration" and each["type"] == "stakeDelegation"
        same = (before.get("credential"), before.get("from")) == (each.get("credential"), each.get("from"))
        unknown = (joined and same and "deposit" in before) or (places and places[-1] is None)
        places.append(None if unknown else len(places))
    return places


def with_origin(said: Json) -> Json:
    """The same with our name for `from`."""
    return {"origin" if name == "from" else name: part for name, part in said.items()}


def pool(said: Json, network: str) -> Json:
    """The pool in a certificate, as an answer shows it."""
    rest = dict(said)
    told: Json = {}
    if "id" in rest:
        told["pool_id"] = rest.pop("id")
    if "retirementEpoch" in rest:
        told["retirement_epoch"] = rest.pop("retirementEpoch")
    if rest:
        anchor: Json = rest.pop("metadata", {})
        told["pool"] = {
            "vrf_key_hash": rest.pop("vrfVerificationKeyHash"),
            "pledge": rest.pop("pledge")["ada"]["lovelace"],
            "fixed_cost": rest.pop("cost")["ada"]["lovelace"],
            "margin": rest.pop("margin"),
            "reward_account": rest.pop("rewardAccount"),
            "owners": [stake_address(network, owner, script=False) for owner in rest.pop("owners")],
            "relays": [{key: part for key, part in relay.items() if key != "type"} for relay in rest.pop("relays")],
            "metadata_url": anchor.get("url"),
            "metadata_hash": anchor.get("hash"),
        }
    assert not rest
    return told


def actions_without_deposit(tx: Json) -> list[str]:
    """The actions of proposals before Conway, among which Ogmios shows instantaneous rewards."""
    return [each["action"]["type"] for each in tx.get("proposals", ()) if "deposit" not in each]


def moved_by(tx: Transaction) -> list[tuple[int, str, dict[tuple[int, bytes], int]]] | None:
    """The place, the pot and the accounts of each certificate that moves instantaneous rewards, in the ledger's order:
    scripts before keys. None if they are not known, without CBOR.
    """
    is_valid = tx.declared.get("spends", "inputs") == "inputs"
    if not is_valid or "treasuryWithdrawals" not in actions_without_deposit(tx.declared):
        return []
    if "cbor" not in tx.declared:
        return None
    found = []
    for at, certificate in enumerate(cbor2.loads(bytes.fromhex(tx.declared["cbor"]))[0][4]):
        if certificate[0] == 6:
            pot, paid = certificate[1]
            in_order = sorted(paid.items(), key=lambda each: (-each[0][0], each[0]))
            found.append((at, ("reserve", "treasury")[pot], dict(in_order)))
    return found
