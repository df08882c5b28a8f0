"""Refusals that only the façade has."""

from api.errors import Refusal


def never_used() -> Refusal:
    """An address or account that no transaction has used: Blockfrost has no empty lists of those."""
    return Refusal(404, "never_used", "Never used")


def supply_not_known() -> Refusal:
    """The node's ledger has not been read yet, so that reserves and treasury are unknown."""
    return Refusal(404, "supply_not_known", "Supply not known: the node's ledger has not been read yet")
