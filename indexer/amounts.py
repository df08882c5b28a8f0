"""Amounts that blocks move: what `store.append` adds, `store.rollback` adds with the other sign."""

from collections import defaultdict

import msgspec

from indexer.known import Known
from shared.packed import Assets, Output


class Supply(msgspec.Struct):
    """What changes of an asset; the first transactions are set by append only, where there was none."""

    quantity: int = 0
    mint_count: int = 0
    burn_count: int = 0
    first_tx_id: int | None = None
    first_mint_tx_id: int | None = None


class Amounts:
    """Net changes of held quantities, supplies and balances. Pure: numbers come from what is known."""

    def __init__(self) -> None:
        self.balances: defaultdict[int, int] = defaultdict(int)
        self.holders: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.policy_holders: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.supplies: defaultdict[int, Supply] = defaultdict(Supply)

    def move(self, known: Known, output: Output, sign: int) -> int:
        """An output appears (sign 1) or is spent (sign -1); returns the number of its address."""
        address_id, stake_id = known.payees[output.address]
        if stake_id is not None:
            self.balances[stake_id] += sign * output.lovelace
        if output.assets:
            for policy, quantities in output.assets.items():
                for name, quantity in quantities.items():
                    self.holders[known.assets[policy + name], address_id] += sign * quantity
                self.policy_holders[known.policies[policy], address_id] += sign * sum(quantities.values())
        return address_id

    def mint(self, known: Known, mint: Assets, sign: int) -> None:
        """A transaction mints and burns, or a rollback takes that back."""
        for policy, quantities in mint.items():
            for name, quantity in quantities.items():
                supply = self.supplies[known.assets[policy + name]]
                supply.quantity += sign * quantity
                if quantity > 0:
                    supply.mint_count += sign
                else:
                    supply.burn_count += sign
