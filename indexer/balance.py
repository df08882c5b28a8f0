"""Whether a transaction gives and takes the same value, and its fee where that follows from the inputs. Pure.

The rule is the ledger's preservation of value (Conway ledger specification, "UTxO"): inputs + withdrawals + refunds +
minted = outputs + fee + deposits + burned + donation. A Dijkstra transaction balances together with its
sub-transactions. Credits to reward accounts stand on the side of outputs.
"""

from collections import defaultdict

import msgspec

from indexer import frames
from indexer.effects import Effects
from shared.ledger import Point
from shared.packed import Assets, Input


class Unbalanced(Exception):
    """A transaction that the ledger's rules forbid: we or the node are wrong, and nothing after it can be trusted."""


class Rules(msgspec.Struct, frozen=True):
    """What the check must know: the deposits in lovelace, and whether the index begins at the origin.

    A partial index meets inputs whose value it can't know, and checks nothing.
    """

    stake_deposit: int
    pool_deposit: int
    from_origin: bool


def fee_of(group: list[Effects], inputs: list[list[Input]], rules: Rules, at: Point) -> int | None:
    """The fee in lovelace of a transaction with its sub-transactions; None where it depends on an unknown input.

    Raises Unbalanced.
    """
    host = group[-1]
    left = 0
    for part in inputs:
        for spent in part:
            if spent.source is None:
                if rules.from_origin:
                    raise Unbalanced(
                        f"{at}: transaction {host.tx_hash.hex()} spends {spent.tx_hash.hex()}#{spent.output_index}, "
                        "which no block or genesis made"
                    )
                return host.fee
            left += spent.source.lovelace
    for tx in group:
        for output in tx.outputs:
            left -= output.lovelace
    if host.fee is None:
        if left < 0:
            raise Unbalanced(f"{at}: transaction {host.tx_hash.hex()} pays {-left} lovelace more than it spends")
        return left
    if rules.from_origin:
        _check(group, inputs, left, rules, at)
    return host.fee


def _check(group: list[Effects], inputs: list[list[Input]], left: int, rules: Rules, at: Point) -> None:
    host = group[-1]
    assert host.fee is not None, "the caller looked"
    expected, tolerated = host.fee, 0
    if host.extra.valid:
        for tx in group:
            expected += _taken(tx, rules)
            tolerated += _pool_registrations(tx)
    # NOTE: a registration of a pool that is registered already is a change of parameters and takes no deposit.
    if left != expected and left - expected not in {n * rules.pool_deposit for n in range(1, tolerated + 1)}:
        raise Unbalanced(
            f"{at}: transaction {host.tx_hash.hex()} leaves {left} lovelace where fee, deposits, refunds and "
            f"withdrawals make {expected}"
        )
    for asset, quantity in _left_over(group, inputs).items():
        if quantity:
            raise Unbalanced(
                f"{at}: transaction {host.tx_hash.hex()} leaves {quantity} of {asset[:28].hex()}.{asset[28:].hex()}"
            )


def _taken(tx: Effects, rules: Rules) -> int:
    """Lovelace that deposits, donation and credits take, less withdrawals and refunds."""
    taken = tx.given
    for withdrawn in tx.extra.withdrawals.values():
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


def _pool_registrations(tx: Effects) -> int:
    return [certificate.type for certificate in tx.certificates].count("stakePoolRegistration")


def _left_over(group: list[Effects], inputs: list[list[Input]]) -> dict[bytes, int]:
    """Each asset's quantity in inputs and mints less that in outputs; policy and name in one byte string."""
    left: defaultdict[bytes, int] = defaultdict(int)
    for part in inputs:
        for spent in part:
            if spent.source is not None and spent.source.assets:
                _add(left, spent.source.assets, 1)
    for tx in group:
        _add(left, tx.mint, 1)
        for output in tx.outputs:
            if output.assets:
                _add(left, output.assets, -1)
    return left


def _add(total: defaultdict[bytes, int], assets: Assets, sign: int) -> None:
    for policy, quantities in assets.items():
        for name, quantity in quantities.items():
            total[policy + name] += sign * quantity
