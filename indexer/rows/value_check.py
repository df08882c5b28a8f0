"""Check that a transaction balances, and compute its fee if the node does not send it.

The rule is the ledger's preservation of value (Conway ledger specification, "UTxO"): inputs + withdrawals + refunds +
minted = outputs + fee + deposits + burned + donation. A Dijkstra transaction balances together with its
sub-transactions. Credits to reward accounts count as outputs.

Nothing here changes its arguments or queries the database; the resolver only names an asset in an error.
"""

import msgspec

from indexer.blocks.packed_block import Transaction
from indexer.ogmios import frames
from indexer.rows.resolver import Resolver
from shared import packed
from shared.ledger import HASH28_BYTES, AssetNo, Point


class Unbalanced(Exception):
    """A transaction that breaks the ledger's rules: either we or the node have a bug, so indexing must stop."""


class Rules(msgspec.Struct, frozen=True):
    """The parameters of the check: the deposits in lovelace, and whether the index begins at the origin.

    A partial index can't know the value of all inputs: it only refuses a computed fee below 0.
    """

    stake_deposit: int
    pool_deposit: int
    from_origin: bool


class Surplus(msgspec.Struct, gc=False):
    """The excess of inputs and mints over outputs, for a transaction with its sub-transactions. rows.py adds it up.

    `quantities` are by asset_no. `unknown` is an input whose source is unknown; the other fields are then meaningless.
    """

    lovelace: int = 0
    quantities: dict[AssetNo, int] = {}
    unknown: packed.OutputKey | None = None

    def add(self, quantities: dict[AssetNo, int], sign: int) -> None:
        """Add quantities (`sign` 1), or subtract them (-1)."""
        for asset_no, quantity in quantities.items():
            self.quantities[asset_no] = self.quantities.get(asset_no, 0) + sign * quantity


def checked_fee(group: list[Transaction], surplus: Surplus, resolver: Resolver, rules: Rules, at: Point) -> int | None:
    """The fee in lovelace of a transaction with its sub-transactions, which must balance.

    A fee that the node does not send is computed; None where it depends on an unknown input. Raises Unbalanced.
    """
    host = group[-1]
    if surplus.unknown is not None:
        if rules.from_origin:
            tx_hash, index = packed.output_of(surplus.unknown)
            raise _unbalanced(
                host, at, f"spends {tx_hash.hex()}#{index}, which no block or genesis made, or which is spent"
            )
        return host.fee
    if host.fee is None:
        if surplus.lovelace < 0:
            raise _unbalanced(host, at, f"pays {-surplus.lovelace} lovelace more than it spends")
        return surplus.lovelace
    if rules.from_origin:
        _check(group, host.fee, surplus, resolver, rules, at)
    return host.fee


def _check(group: list[Transaction], fee: int, surplus: Surplus, resolver: Resolver, rules: Rules, at: Point) -> None:
    """Raises Unbalanced unless fee, deposits, refunds and withdrawals make up for the surplus."""
    host, expected = group[-1], fee
    if host.valid:
        for tx in group:
            if tx.other_payments or tx.certificates or tx.withdrawals:
                expected += _taken(tx, rules)
    if surplus.lovelace != expected and surplus.lovelace - expected not in _pool_deposits(group, rules):
        made = f"{surplus.lovelace} lovelace where fee, deposits, refunds and withdrawals make {expected}"
        raise _unbalanced(host, at, f"leaves {made}")
    for asset_no, quantity in surplus.quantities.items():
        if quantity:
            asset = resolver.assets.key_of(asset_no)
            name = (
                f"asset number {asset_no}"
                if asset is None
                else f"{asset[:HASH28_BYTES].hex()}.{asset[HASH28_BYTES:].hex()}"
            )
            raise _unbalanced(host, at, f"leaves {quantity} of {name}")


def _unbalanced(host: Transaction, at: Point, what: str) -> Unbalanced:
    return Unbalanced(f"{at}: transaction {host.tx_hash.hex()} {what}")


def _taken(tx: Transaction, rules: Rules) -> int:
    """Net lovelace that leaves by deposits, donation and credits, minus withdrawals and refunds."""
    taken = tx.other_payments
    for withdrawn in tx.withdrawals.values():
        taken -= withdrawn
    for certificate in tx.certificates:
        taken += _deposit(certificate, rules)
    return taken


def _deposit(certificate: frames.Certificate, rules: Rules) -> int:
    """Lovelace that a certificate takes (above 0) or gives back (below 0); Conway's may contain the amount."""
    named = None if certificate.deposit is None else frames.lovelace(certificate.deposit)
    match certificate.type:
        case "stakeCredentialRegistration":
            return rules.stake_deposit if named is None else named
        case "stakeCredentialDeregistration":
            return -rules.stake_deposit if named is None else -named
        case "delegateRepresentativeRegistration":
            return named or 0
        case "delegateRepresentativeRetirement":
            return -(named or 0)
    return 0


def _pool_deposits(group: list[Transaction], rules: Rules) -> list[int]:
    """The possible total deposits of a transaction's pool registrations, other than 0.

    NOTE: a registration of a pool that is registered already is a change of parameters and takes no deposit.
    """
    if not group[-1].valid:
        return []
    registrations = sum(certificate.type == "stakePoolRegistration" for tx in group for certificate in tx.certificates)
    return [number * rules.pool_deposit for number in range(1, registrations + 1)]
