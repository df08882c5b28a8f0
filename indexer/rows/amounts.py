"""Amounts that blocks move: what an append adds, a rollback adds with the opposite sign."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from typing import NamedTuple

import msgspec

from indexer.rows.caches import ResolvedOutput
from shared.ledger import LOVELACE_NO, AddressNo, AssetNo, StakeNo


class OutputTotals(msgspec.Struct, frozen=True, gc=False):
    """The sum of some outputs: their address_no, stake_no and credential_no, lovelace, and quantities by asset_no."""

    addresses: set[AddressNo]
    stakes: set[StakeNo]
    credentials: set[AddressNo]
    lovelace: int
    quantities: dict[AssetNo, int]


SentBy = Counter[tuple[int, AssetNo]]
"""Quantities by owner and asset, with LOVELACE_NO for lovelace."""


class Sent(NamedTuple):
    """What is spent from addresses, from accounts, and by credential_no."""

    addresses: SentBy
    accounts: SentBy
    credentials: SentBy


class Amounts:
    """Net changes: lovelace by stake_no, and held quantities by asset_no and address_no.

    `accounts` are the account_no of these addresses: the stake_no, or the negative address_no if there is none.
    `credentials` are the credential_no of those that have one.
    `spent` are the outputs that transactions spend, also those that they make themselves, and `unspent` those that
    undone transactions spent.
    """

    def __init__(self) -> None:
        self.stakes: defaultdict[StakeNo, int] = defaultdict(int)
        self.holders: defaultdict[tuple[AssetNo, AddressNo], int] = defaultdict(int)
        self.accounts: dict[AddressNo, int] = {}
        self.credentials: dict[AddressNo, AddressNo] = {}
        self.spent: list[ResolvedOutput] = []
        self.unspent: list[ResolvedOutput] = []

    def add(self, other: "Amounts") -> None:
        """Add the changes of `other`."""
        for stake_no, lovelace in other.stakes.items():
            self.stakes[stake_no] += lovelace
        for key, quantity in other.holders.items():
            self.holders[key] += quantity
        self.accounts |= other.accounts
        self.credentials |= other.credentials
        self.spent += other.spent
        self.unspent += other.unspent

    def move(self, outputs: Iterable[ResolvedOutput], sign: int) -> OutputTotals:
        """Add the outputs made (`sign` 1) or spent (-1). Returns their totals, without the sign."""
        stakes, holders = self.stakes, self.holders
        addresses, stake_nos, credentials = set[AddressNo](), set[StakeNo](), set[AddressNo]()
        total_lovelace, total = 0, dict[AssetNo, int]()
        for output in outputs:
            address_no, stake_no, lovelace = output.address_no, output.stake_no, output.lovelace
            credential_no = output.credential_no
            addresses.add(address_no)
            total_lovelace += lovelace
            if stake_no is not None:
                stakes[stake_no] += sign * lovelace
                stake_nos.add(stake_no)
            if credential_no is not None:
                credentials.add(credential_no)
            if output.quantities:
                self.accounts[address_no] = -address_no if stake_no is None else stake_no
                if credential_no is not None:
                    self.credentials[address_no] = credential_no
                for asset_no, quantity in output.quantities.items():
                    holders[asset_no, address_no] += sign * quantity
                    total[asset_no] = total.get(asset_no, 0) + quantity
        return OutputTotals(addresses, stake_nos, credentials, total_lovelace, total)

    def sent(self, addresses: Container[int], accounts: Container[int]) -> Sent:
        """What is spent from some addresses and accounts, and by credential_no."""
        sent = Sent(Counter(), Counter(), Counter())
        for sources, sign in ((self.spent, 1), (self.unspent, -1)):
            for source in sources:
                if source.address_no in addresses:
                    _add(sent.addresses, source.address_no, source, sign)
                if source.stake_no in accounts:
                    _add(sent.accounts, source.stake_no, source, sign)
                if source.credential_no is not None:
                    _add(sent.credentials, source.credential_no, source, sign)
        return sent


def _add(sent: SentBy, owner_no: int | None, source: ResolvedOutput, sign: int) -> None:
    assert owner_no is not None, "one of some owners"
    sent[owner_no, LOVELACE_NO] += sign * source.lovelace
    for asset_no, quantity in source.quantities.items():
        sent[owner_no, asset_no] += sign * quantity
