"""Whether a transaction gives and takes the same value, and its fee where that follows from the inputs. Pure.

The rule is the ledger's preservation of value (Conway ledger specification, "UTxO"): inputs + withdrawals + refunds +
minted = outputs + fee + deposits + burned + donation. A Dijkstra transaction balances together with its
sub-transactions. Credits to reward accounts stand on the side of outputs.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from indexer import frames
from indexer.effects import Effects
from shared.ledger import Point
from shared.packed import Input, Output


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
    spent = [source.source for part in inputs for source in part]
    if None in spent:
        if rules.from_origin:
            missing = next(source for part in inputs for source in part if source.source is None)
            raise Unbalanced(
                f"{at}: transaction {host.tx_hash.hex()} spends {missing.tx_hash.hex()}#{missing.output_index}, "
                "which no block or genesis made"
            )
        return host.fee
    left = sum(source.lovelace for source in spent if source is not None) - sum(
        output.lovelace for tx in group for output in tx.outputs
    )
    if host.fee is None:
        if left < 0:
            raise Unbalanced(f"{at}: transaction {host.tx_hash.hex()} pays {-left} lovelace more than it spends")
        return left
    if rules.from_origin:
        _check(group, [source for source in spent if source is not None], left, rules, at)
    return host.fee


def _check(group: list[Effects], spent: list[Output], left: int, rules: Rules, at: Point) -> None:
    host = group[-1]
    assert host.fee is not None, "the caller looked"
    if not host.extra.valid:
        expected, tolerated = host.fee, 0
    else:
        expected = host.fee + sum(_taken(tx, rules) for tx in group)
        tolerated = sum(_pool_registrations(tx) for tx in group)
    # NOTE: a registration of a pool that is registered already is a change of parameters and takes no deposit.
    if left - expected not in {n * rules.pool_deposit for n in range(tolerated + 1)}:
        raise Unbalanced(
            f"{at}: transaction {host.tx_hash.hex()} leaves {left} lovelace where fee, deposits, refunds and "
            f"withdrawals make {expected}"
        )
    for asset, quantity in _left_over(group, spent).items():
        if quantity:
            raise Unbalanced(
                f"{at}: transaction {host.tx_hash.hex()} leaves {quantity} of {asset[:28].hex()}.{asset[28:].hex()}"
            )


def _taken(tx: Effects, rules: Rules) -> int:
    """Lovelace that deposits, donation and credits take, less withdrawals and refunds."""
    declared = tx.declared
    taken = sum(frames.lovelace(value) for value in declared.credits.values()) - sum(tx.extra.withdrawals.values())
    taken += sum(frames.lovelace(p.deposit) for p in declared.proposals if p.deposit is not None)
    if declared.treasury is not None and declared.treasury.donation is not None:
        taken += frames.lovelace(declared.treasury.donation)
    for certificate in declared.certificates:
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
    return sum(certificate.type == "stakePoolRegistration" for certificate in tx.declared.certificates)


def _left_over(group: list[Effects], spent: list[Output]) -> dict[bytes, int]:
    """Each asset's quantity in inputs and mints less that in outputs; policy and name in one byte string."""
    left: defaultdict[bytes, int] = defaultdict(int)
    for asset, quantity in _quantities(spent):
        left[asset] += quantity
    for tx in group:
        for asset, quantity in _quantities(tx.outputs):
            left[asset] -= quantity
        for policy, quantities in tx.mint.items():
            for name, quantity in quantities.items():
                left[policy + name] += quantity
    return left


def _quantities(outputs: list[Output]) -> Iterator[tuple[bytes, int]]:
    for output in outputs:
        for policy, quantities in output.assets.items():
            for name, quantity in quantities.items():
                yield policy + name, quantity
