"""Amounts that blocks move: what `store.append` adds, `store.rollback` adds with the other sign."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from indexer.known import Paid


class Supply(msgspec.Struct):
    """What changes of an asset; the first transactions are set by append only, where there was none."""

    quantity: int = 0
    mint_count: int = 0
    burn_count: int = 0
    first_tx_id: int | None = None
    first_mint_tx_id: int | None = None


class Moved(msgspec.Struct, frozen=True, gc=False):
    """Outputs in sum: the numbers of their addresses, lovelace, and quantities by asset_id."""

    addresses: set[int]
    lovelace: int
    quantities: dict[int, int]


class Amounts:
    """Net changes of held quantities, supplies and balances, by number. Pure.

    In bulk supplies are left out: they follow from the mints at its end.
    """

    def __init__(self) -> None:
        self.balances: defaultdict[int, int] = defaultdict(int)
        self.holders: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.supplies: defaultdict[int, Supply] = defaultdict(Supply)

    def move(self, outputs: Iterable[Paid], sign: int) -> Moved:
        """Outputs appear (sign 1) or are spent (sign -1)."""
        balances, holders = self.balances, self.holders
        addresses: set[int] = set()
        total_lovelace, total = 0, dict[int, int]()
        for paid in outputs:
            address_id, stake_id, lovelace = paid.address_id, paid.stake_id, paid.lovelace
            addresses.add(address_id)
            total_lovelace += lovelace
            if stake_id is not None:
                balances[stake_id] += sign * lovelace
            if paid.quantities:
                for asset_id, quantity in paid.quantities.items():
                    holders[asset_id, address_id] += sign * quantity
                    total[asset_id] = total.get(asset_id, 0) + quantity
        return Moved(addresses, total_lovelace, total)

    def mint(self, quantities: dict[int, int], sign: int) -> None:
        """A transaction mints and burns, or a rollback takes that back."""
        for asset_id, quantity in quantities.items():
            supply = self.supplies[asset_id]
            supply.quantity += sign * quantity
            if quantity > 0:
                supply.mint_count += sign
            else:
                supply.burn_count += sign
