"""The certificates that move instantaneous rewards from a pot of the ledger to accounts, before Conway. Pure.

Ogmios shows them among the proposals, without the pot, and without saying whether a credential is a key or a script
(ogmios `encodeTxCerts`). So they are read from the transaction's CBOR (docs/decisions/0058).
"""

from indexer.blocks import transaction_cbor
from indexer.ogmios import frames
from shared import packed
from shared.ledger import BEFORE_CONWAY

_ACTIONS = frozenset(("treasuryWithdrawals", "treasuryTransfer"))


def are_moved(tx: frames.SubTransaction, era: str) -> bool:
    """Whether a transaction has such a certificate, to accounts or from one pot to the other."""
    return era in BEFORE_CONWAY and any(
        proposal.action is not None and proposal.action.type in _ACTIONS for proposal in tx.proposals
    )


def of(tx: frames.SubTransaction, era: str) -> list[packed.InstantaneousRewards] | None:
    """What each certificate of a transaction moves to accounts, in order; None if that is unknown: without CBOR, or if
    it has another shape.
    """
    if not are_moved(tx, era):
        return []
    try:
        return None if tx.sent is None else transaction_cbor.instantaneous_rewards(tx.sent)
    except ValueError:
        return None
