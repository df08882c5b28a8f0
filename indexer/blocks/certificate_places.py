"""The places of a transaction's certificates, which Ogmios does not show as they are on the chain. Pure.

It shows a certificate that registers and delegates a stake credential (CDDL 11, 12 and 13) as two, and those that move
instantaneous rewards (6) among the proposals (ogmios `encodeDelegCert`, `encodeTxCerts`). The CBOR has all in order.
"""

from itertools import pairwise

from indexer.blocks import instantaneous_rewards, transaction_cbor
from indexer.ogmios import frames

_SHOWN = {6: 0, 11: 2, 12: 2, 13: 2}  # how many certificates Ogmios shows for one of this type, if it is not one


def locate(tx: frames.SubTransaction, era: str) -> list[int | None]:
    """The place of each certificate among those of the transaction's CBOR.

    Empty if Ogmios shows them all as they are. None where the place can't be told without the CBOR, or from CBOR of
    another shape.
    """
    if not tx.certificates:
        return []
    moved = instantaneous_rewards.are_moved(tx, era)
    split = (at for at, (first, second) in enumerate(pairwise(tx.certificates)) if _may_be_one(first, second))
    sure = next(split, -1) + 1  # before Conway no certificate names a deposit
    if not sure and not moved:
        return []
    count = len(tx.certificates)
    places = _on_chain(tx)
    if places is None or len(places) != count:
        return [*range(sure), *[None] * (count - sure)]
    return [] if places == [*range(count)] else [*places]


def _on_chain(tx: frames.SubTransaction) -> list[int] | None:
    """The place of each certificate that Ogmios shows; None without CBOR of the expected shape."""
    try:
        types = None if tx.sent is None else transaction_cbor.certificate_types(tx.sent)
    except ValueError:
        return None
    return None if types is None else [at for at, type_no in enumerate(types) for _ in range(_SHOWN.get(type_no, 1))]


def _may_be_one(first: frames.Certificate, second: frames.Certificate) -> bool:
    """Whether two certificates may be one: a registration with a deposit, and a delegation of the same credential."""
    is_new = first.type == "stakeCredentialRegistration" and first.deposit is not None
    same = (first.credential, first.origin) == (second.credential, second.origin)
    return is_new and same and second.type == "stakeDelegation"
