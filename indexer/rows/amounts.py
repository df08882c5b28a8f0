"""Amounts that blocks move: what an append adds, a rollback adds with the opposite sign."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from indexer.rows.caches import ResolvedOutput
from shared.ledger import AddressNo, AssetNo, StakeNo


class OutputTotals(msgspec.Struct, frozen=True, gc=False):
    """The sum of some outputs: their address_no, stake_no and credential_no, lovelace, and quantities by asset_no."""

    addresses: set[AddressNo]
    stakes: set[StakeNo]
    credentials: set[AddressNo]
    lovelace: int
    quantities: dict[AssetNo, int]


class Amounts:
    """Net changes: lovelace by stake_no, and held quantities by asset_no and address_no.

    `accounts` are the account_no of these addresses: the stake_no, or the negative address_no if there is none.
    `credentials` are the credential_no of those that have one.
    """

    def __init__(self) -> None:
        self.stakes: defaultdict[StakeNo, int] = defaultdict(int)
        self.holders: defaultdict[tuple[AssetNo, AddressNo], int] = defaultdict(int)
        self.accounts: dict[AddressNo, int] = {}
        self.credentials: dict[AddressNo, AddressNo] = {}

    def add(self, other: "Amounts") -> None:
        """Add the changes of `other`."""
        for stake_no, lovelace in other.stakes.items():
            self.stakes[stake_no] += lovelace
        for key, quantity in other.holders.items():
            self.holders[key] += quantity
        self.accounts |= other.accounts
        self.credentials |= other.credentials

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
