"""Refusals that only the façade has."""

from api.errors import Refusal


def never_used() -> Refusal:
    """An address or account that no transaction has used: Blockfrost answers 404, not an empty list."""
    return Refusal(404, "never_used", "Never used")


def policy_not_found() -> Refusal:
    """A policy without assets."""
    return Refusal(404, "policy_not_found", "Policy not found")


def metadata_not_found() -> Refusal:
    """A page without metadata: Blockfrost answers 404, not an empty list."""
    return Refusal(404, "metadata_not_found", "No metadata under this label, or none on this page")


def supply_not_known() -> Refusal:
    """The node's ledger has not been read yet, so reserves and treasury are unknown."""
    return Refusal(404, "supply_not_known", "Supply not known: the node's ledger has not been read yet")


def prices_not_known() -> Refusal:
    """The protocol parameters of no epoch are known yet, so neither are the prices of execution units."""
    message = "Prices of execution units are not known yet: the node's parameters have not been read"
    return Refusal(503, "prices_not_known", message)


def instantaneous_rewards_not_known() -> Refusal:
    """A transaction with certificates that move instantaneous rewards, whose bytes the index has not seen.

    Ogmios shows them only as bytes: it must run with `--include-transaction-cbor` while the chain is indexed.
    """
    message = "Not known: Ogmios must run with --include-transaction-cbor while the chain is indexed"
    return Refusal(503, "instantaneous_rewards_not_known", message)


def invalid_xpub() -> Refusal:
    """A public key of an account that is not 128 hex digits, or not a key."""
    return Refusal(400, "invalid_parameter", "Invalid or malformed xpub format. Has to be hex of length 128.")


def invalid_range() -> Refusal:
    """`from` or `to` that is not a place of a transaction, or `from` after `to`."""
    return Refusal(400, "invalid_parameter", "Invalid (malformed or out of range) from/to parameter(s).")


def eras_not_known() -> Refusal:
    """A network whose index does not begin with its first block, so that the starts of its eras are unknown."""
    return Refusal(404, "eras_not_known", "Eras not known: the index does not begin with the first block")


def stakes_not_known(known: str) -> Refusal:
    """The stakes of an epoch whose snapshot the index did not take, or whose rewards it did not read.

    They are known from the second epoch after the index has reached the node's tip on, while it follows the node.
    """
    return Refusal(501, "stakes_not_known", f"The stakes of this epoch are not known here. Known epochs: {known}.")


def not_answered(reason: str) -> Refusal:
    """A path of Blockfrost that the façade does not answer.

    The status is not 404, which Blockfrost's clients take for an address or account that was never used.
    """
    return Refusal(501, "not_answered", f"Not answered here: {reason}.")


def too_many_holders(most: int) -> Refusal:
    """An asset that more addresses hold than its outputs are searched at."""
    message = f"More than {most} addresses hold the asset: see /addresses/{{address}}/utxos/{{asset}}"
    return Refusal(400, "too_many_holders", message)


def too_many_assets(most: int) -> Refusal:
    """An address with more assets than one answer lists."""
    message = f"The address holds more than {most} assets: list its outputs with /addresses/{{address}}/utxos"
    return Refusal(400, "too_many_assets", message)


def too_many_outputs(most: int) -> Refusal:
    """An address with more unspent outputs than are searched for those without assets."""
    message = f"None of its first {most} unspent outputs completes this page: see /addresses/{{address}}/utxos"
    return Refusal(400, "too_many_outputs", message)
