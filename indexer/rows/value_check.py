"""Check that a transaction balances, and compute its fee if the node does not send it.

The rule is the ledger's preservation of value (Conway ledger specification, "UTxO"): inputs + withdrawals + refunds +
minted = outputs + fee + deposits + burned + donation. A Dijkstra transaction balances together with its
sub-transactions. Credits to reward accounts are on the side of the outputs.

A certificate may name no amount. It then takes the deposit in the protocol parameters, which governance may change, or
refunds the deposit that was once paid. Blocks contain neither amount: once governance has changed a deposit, any amount
of the right sign is accepted. It does so only when an epoch begins.

The checks change nothing and do not query the database; the resolver only names an asset in an error.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from indexer.blocks.packed_block import Transaction
from indexer.ogmios import frames
from indexer.rows.resolver import Resolver
from shared import packed
from shared.ledger import HASH28_BYTES, AssetNo, Point


class Unbalanced(Exception):
    """A transaction that breaks the ledger's rules: either we or the node have a bug, so indexing must stop."""


class UnexplainedDeposit(Unbalanced):
    """A transaction that breaks the rules, unless governance has changed a deposit since its value was read."""


class Deposits(msgspec.Struct, frozen=True):
    """The deposits in lovelace of a stake credential and of a pool, as the network's genesis sets them; `changed` if
    governance has changed them since.
    """

    stake: int
    pool: int
    changed: bool = False

    def least(self, unnamed: Iterable[str]) -> float:
        """The lowest possible net deposit, in lovelace, of certificates of these types, which name no amount."""
        count = Counter(unnamed)
        registrations, refunds = count["stakeCredentialRegistration"], count["stakeCredentialDeregistration"]
        if self.changed:
            return -math.inf if refunds else 0
        return (registrations - refunds) * self.stake

    def explain(self, unnamed: Sequence[str], lovelace: int) -> bool:
        """Whether such certificates can have taken this lovelace.

        NOTE: a registration of a pool that exists changes its parameters, and pays nothing.
        """
        count = Counter(unnamed)
        pools = count["stakePoolRegistration"]
        if not self.changed:
            return lovelace - self.least(unnamed) in {number * self.pool for number in range(pools + 1)}
        if lovelace > 0:
            return pools > 0 or count["stakeCredentialRegistration"] > 0
        return lovelace >= self.least(unnamed)


class Rules(msgspec.Struct, frozen=True):
    """The parameters of the check: deposits, and whether the index begins at the origin.

    A partial index can't know the value of all inputs: it only refuses a computed fee below 0.
    """

    deposits: Deposits
    from_origin: bool


class Surplus(msgspec.Struct, gc=False):
    """The excess of inputs and mints over outputs, for a transaction with its sub-transactions. rows.py adds it up.

    Withdrawals are not included. `quantities` are by asset_no. `unknown` is an input whose source is unknown; the other
    fields are then meaningless.
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

    A fee that the node does not send is computed; None if it depends on an unknown input. Raises Unbalanced.
    """
    host = group[-1]
    if surplus.unknown is not None:
        if rules.from_origin:
            tx_hash, index = packed.output_of(surplus.unknown)
            origin = "which no block or genesis made, or which another input of the same batch also spends"
            raise _unbalanced(host, at, f"spends {tx_hash.hex()}#{index}, {origin}")
        return host.fee
    if host.fee is None:
        if surplus.lovelace < 0:
            raise _unbalanced(host, at, f"pays {-surplus.lovelace} lovelace more than it spends")
        return surplus.lovelace
    if rules.from_origin:
        _check(group, host.fee, surplus, resolver, rules.deposits, at)
    return host.fee


def deposit(kind: str, named: int | None) -> int:
    """The lovelace that a certificate of this type takes (above 0) or refunds (below 0); 0 if it names no amount."""
    match kind:
        case "stakeCredentialRegistration" | "delegateRepresentativeRegistration":
            return named or 0
        case "stakeCredentialDeregistration" | "delegateRepresentativeRetirement":
            return -(named or 0)
    return 0


def _check(
    group: list[Transaction], fee: int, surplus: Surplus, resolver: Resolver, deposits: Deposits, at: Point
) -> None:
    """Raises Unbalanced unless fee, deposits, refunds and withdrawals make up for the surplus: UnexplainedDeposit if
    lovelace is missing or left over and some certificate names no amount.
    """
    host, expected = group[-1], fee
    if host.valid:
        for tx in group:
            if tx.other_payments or tx.certificates or tx.withdrawals:
                expected += _taken(tx)
    unnamed = _unnamed(group) if host.valid else []
    if (unnamed or surplus.lovelace != expected) and not deposits.explain(unnamed, surplus.lovelace - expected):
        made = f"{surplus.lovelace} lovelace, but fee, deposits, refunds and withdrawals account for {expected}"
        raise _unbalanced(host, at, f"leaves {made}", UnexplainedDeposit if unnamed else Unbalanced)
    for asset_no, quantity in surplus.quantities.items():
        if quantity:
            asset = resolver.assets.raw_of(asset_no)
            name = (
                f"asset number {asset_no}"
                if asset is None
                else f"{asset[:HASH28_BYTES].hex()}.{asset[HASH28_BYTES:].hex()}"
            )
            raise _unbalanced(host, at, f"leaves {quantity} of {name}")


def _unbalanced(host: Transaction, at: Point, what: str, kind: type[Unbalanced] = Unbalanced) -> Unbalanced:
    return kind(f"{at}: transaction {host.tx_hash.hex()} {what}")


def _taken(tx: Transaction) -> int:
    """Net lovelace that leaves by named deposits, donation and credits, minus withdrawals and named refunds."""
    taken = tx.other_payments
    for withdrawn in tx.withdrawals.values():
        taken -= withdrawn
    for certificate in tx.certificates:
        taken += deposit(certificate.type, _named(certificate))
    return taken


def _named(certificate: frames.Certificate) -> int | None:
    """The amount that a certificate names, None if it names none. Only certificates since Conway name one."""
    return None if certificate.deposit is None else frames.lovelace(certificate.deposit)


def _unnamed(group: list[Transaction]) -> list[str]:
    """The types of the certificates that name no amount."""
    return [certificate.type for tx in group for certificate in tx.certificates if certificate.deposit is None]
