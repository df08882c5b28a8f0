"""Whether a transaction gives and takes the same value, and its fee where that follows from the inputs. Pure.

The rule is the ledger's preservation of value (Conway ledger specification, "UTxO"): inputs + withdrawals + refunds +
minted = outputs + fee + deposits + burned + donation. A Dijkstra transaction balances together with its
sub-transactions. Credits to reward accounts stand on the side of outputs.
"""

import msgspec

from indexer import frames
from indexer.known import Known
from indexer.parcels import Transaction
from shared import packed
from shared.ledger import Point


class Unbalanced(Exception):
    """A transaction that the ledger's rules forbid: we or the node are wrong, and nothing after it can be trusted."""


class Rules(msgspec.Struct, frozen=True):
    """What the check must know: the deposits in lovelace, and whether the index begins at the origin.

    A partial index meets inputs whose value it can't know, and checks nothing.
    """

    stake_deposit: int
    pool_deposit: int
    from_origin: bool


class Left(msgspec.Struct, gc=False):
    """What the inputs and mints of a transaction with its sub-transactions have more than their outputs.

    Quantities are by asset_id. `unknown` is an input whose source is not known, which makes the rest worthless.
    """

    lovelace: int = 0
    quantities: dict[int, int] = {}
    unknown: packed.OutputKey | None = None

    def add(self, quantities: dict[int, int], sign: int) -> None:
        """More quantities on one side."""
        for asset_id, quantity in quantities.items():
            self.quantities[asset_id] = self.quantities.get(asset_id, 0) + sign * quantity


def fee_of(group: list[Transaction], left: Left, known: Known, rules: Rules, at: Point) -> int | None:
    """The fee in lovelace of a transaction with its sub-transactions; None where it depends on an unknown input.

    Raises Unbalanced.
    """
    host = group[-1]
    if left.unknown is not None:
        if rules.from_origin:
            tx_hash, index = packed.output_of(left.unknown)
            raise _unbalanced(
                host, at, f"spends {tx_hash.hex()}#{index}, which no block or genesis made, or which is spent"
            )
        return host.fee
    if host.fee is None:
        if left.lovelace < 0:
            raise _unbalanced(host, at, f"pays {-left.lovelace} lovelace more than it spends")
        return left.lovelace
    if rules.from_origin:
        expected = host.fee
        if host.valid:
            for tx in group:
                if tx.given or tx.certificates or tx.withdrawals:
                    expected += _taken(tx, rules)
        if left.lovelace != expected and left.lovelace - expected not in _pool_deposits(group, rules):
            made = f"{left.lovelace} lovelace where fee, deposits, refunds and withdrawals make {expected}"
            raise _unbalanced(host, at, f"leaves {made}")
        for asset_id, quantity in left.quantities.items():
            if quantity:
                asset = known.assets.key_of(asset_id)
                name = f"asset number {asset_id}" if asset is None else f"{asset[:28].hex()}.{asset[28:].hex()}"
                raise _unbalanced(host, at, f"leaves {quantity} of {name}")
    return host.fee


def _unbalanced(host: Transaction, at: Point, what: str) -> Unbalanced:
    return Unbalanced(f"{at}: transaction {host.tx_hash.hex()} {what}")


def _taken(tx: Transaction, rules: Rules) -> int:
    """Lovelace that deposits, donation and credits take, less withdrawals and refunds."""
    taken = tx.given
    for withdrawn in tx.withdrawals.values():
        taken -= withdrawn
    for certificate in tx.certificates:
        taken += _deposit(certificate, rules)
    return taken


def _deposit(certificate: frames.Certificate, rules: Rules) -> int:
    """Lovelace that a certificate takes (above 0) or gives back (below 0); Conway's may say it themselves."""
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
    """What deposits a transaction's registrations of pools may take, where they take any.

    NOTE: a registration of a pool that is registered already is a change of parameters and takes no deposit.
    """
    if not group[-1].valid:
        return []
    registrations = sum(certificate.type == "stakePoolRegistration" for tx in group for certificate in tx.certificates)
    return [number * rules.pool_deposit for number in range(1, registrations + 1)]
