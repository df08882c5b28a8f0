"""Check that each transaction of history balances, by the rule of value_check.py: a part of verify."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from indexer.ledger.deposits import changed as changed_deposits
from indexer.rows import value_check
from indexer.verify.history.flows import Flows
from indexer.verify.history.rows import Row
from indexer.verify.keys import PRIME
from indexer.verify.results import Difference
from shared import packed
from shared.ledger import AssetNo, slot_of
from shared.network import POOL_DEPOSIT, STAKE_DEPOSIT
from shared.sql import Connection


async def deposits(db: Connection) -> value_check.Deposits:
    """The deposits that every network began with, and whether those of a stored epoch differ."""
    return value_check.Deposits(STAKE_DEPOSIT, POOL_DEPOSIT, await changed_deposits(db))


def unbalanced(rows: Sequence[Row], flows: Flows, first: value_check.Deposits) -> list[Difference]:
    """Transactions of whole blocks of an index from the origin that don't balance.

    The index does not store proposals and donations, so lovelace that one of them can have taken is accepted.
    """
    found = list[Difference]()
    for group in _groups(rows, flows):
        host = rows[group][-1]
        places = range(group.start, group.stop)
        certificates = [each for place in places for each in flows.certificates.get(place, ())]
        left = sum(flows.lovelace_left[group])
        left -= sum(value_check.deposit(each.type, each.deposit) for each in certificates)
        unnamed = [each.type for each in certificates if each.deposit is None]
        if host.fee is None:
            found.append(Difference(f"fee of tx {host.hash.hex()}", None, None, "known"))
        elif left < first.least(unnamed):
            found.append(Difference(f"lovelace that tx {host.hash.hex()} leaves", None, str(left), "0"))
        if sum(flows.assets_left[group]) % PRIME:
            found += _assets_left(rows[group])
    return found


def _groups(rows: Sequence[Row], flows: Flows) -> Iterator[slice]:
    """Transactions that balance together: one, preceded by its sub-transactions (Dijkstra), which have no fee.

    Transactions that balance alone and have no certificate are left out.

    NOTE: some transactions of Byron have no fee either. They balance alone, so they add nothing to a group.
    """
    certified, end = flows.certificates, 0
    left = enumerate(zip(rows, flows.lovelace_left, flows.assets_left, strict=True))
    open_places = [place for place, (row, *both) in left if any(both) or not row.fee or place in certified]
    for first in open_places:
        if first < end:
            continue
        end = first + 1
        while rows[end - 1].fee == 0 and end < len(rows) and slot_of(rows[end].tx_id) == slot_of(rows[first].tx_id):
            end += 1
        yield slice(first, end)


def _assets_left(group: Sequence[Row]) -> list[Difference]:
    """The assets that transactions which balance together spend or mint beyond their outputs."""
    left = defaultdict[AssetNo, int](int)
    for row in group:
        for output in packed.unpack_outputs(row.outputs)[1]:
            for asset_no, quantity in output.quantities.items():
                left[asset_no] -= quantity
        for spent in packed.unpack_inputs(row.inputs):
            for asset_no, quantity in spent.source.quantities.items() if spent.source else ():
                left[asset_no] += quantity
        for asset_no, quantity in packed.unpack_mint(row.mint).items():
            left[asset_no] += quantity
    host = group[-1].hash.hex()
    return [
        Difference(f"quantity of asset_no {asset_no} that tx {host} leaves", None, str(quantity), "0")
        for asset_no, quantity in left.items()
        if quantity
    ]
