"""The scripts that the redeemers of a transaction are for, under whose keys the index lists it. Pure.

A redeemer points to a place among the things of its purpose, in the ledger's order (`redeemerPointerInverse` in
cardano-ledger). Most point to inputs, which Ogmios shows in this order, to mints and to withdrawals. For others only
the transaction's CBOR tells the place, which the node sends with `--include-transaction-cbor`.
"""

from collections.abc import Iterable, Mapping

from indexer.ogmios import frames
from shared import redeemers
from shared.address import credential_of
from shared.cbor import Malformed
from shared.ledger import ScriptKey, script_key_of


def of(tx: frames.SubTransaction, accounts: Iterable[bytes]) -> tuple[list[ScriptKey | None], list[int]]:
    """The redeemers of a transaction as in packed.Extra: `redeemers` and `spends`. `accounts` are those of its
    withdrawals.
    """
    scripts, spends = list[ScriptKey | None](), list[int]()
    told = dict[str, list[ScriptKey | None]]()
    for redeemer in tx.redeemers:
        purpose, index = redeemer.validator.purpose, redeemer.validator.index
        if purpose == "spend" and index < len(tx.inputs):
            spends.append(index)
            continue
        if purpose not in told:
            told[purpose] = _scripts(tx, purpose, accounts)
        found = told[purpose]
        scripts.append(found[index] if index < len(found) else None)
    return scripts, spends


def _scripts(tx: frames.SubTransaction, purpose: str, accounts: Iterable[bytes]) -> list[ScriptKey | None]:
    """The script at each place of a purpose, as far as it is known; None if none decides there."""
    if purpose == "mint":
        return [script_key_of(bytes.fromhex(policy)) for policy in sorted(tx.mint) if policy != "ada"]
    if purpose == "withdraw":
        # NOTE: in the ledger's order of credentials, scripts come before keys.
        credentials = map(credential_of, accounts)
        return [script_key_of(each) for each in sorted(each.hash for each in credentials if each.origin == "script")]
    return _from_cbor(tx, _NAMES.get(purpose, ""))


def _from_cbor(tx: frames.SubTransaction, purpose: str) -> list[ScriptKey | None]:
    try:
        cbor = tx.sent
        found = [] if cbor is None else redeemers.parse(cbor).redeemers
    except (Malformed, ValueError):
        return []
    places = {each.index: each.script_hash for each in found if each.purpose == purpose}
    known = (places.get(place) for place in range(max(places, default=-1) + 1))
    return [None if each is None else script_key_of(each) for each in known]


# Ogmios' names of the purposes that only CBOR can place, in those of shared/redeemers.py.
_NAMES: Mapping[str, redeemers.Purpose] = {
    "publish": "cert",
    "vote": "vote",
    "propose": "propose",
    "guard": "guard",
}
