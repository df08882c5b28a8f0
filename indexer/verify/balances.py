"""Check that each transaction of history balances, by the rule of value_check.py: a part of verify."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from indexer.verify.flows import Flows
from indexer.verify.results import Difference
from indexer.verify.spending import Row
from shared import packed, sql
from shared.ledger import AssetNo, slot_of
from shared.network import POOL_DEPOSIT, STAKE_DEPOSIT
from shared.sql import Connection

_LEAST_REFUND = 1_000_000


class Deposits(msgspec.Struct, frozen=True, gc=False):
    """The deposits of a transaction: registrations of stake credentials less deregistrations, and pool updates."""

    tx_id: int
    registrations: int
    pool_updates: int


async def deposits(db: Connection, first_tx_id: int, next_tx_id: int) -> dict[int, Deposits]:
    """The deposits of a range of transactions by tx_id, as far as stake_event and pool_update tell them."""
    return {each.tx_id: each for each in await _deposits.all(db, first_tx_id, next_tx_id)}


def unbalanced(rows: Sequence[Row], flows: Flows, paid: Mapping[int, Deposits]) -> tuple[list[Difference], int]:
    """Transactions of whole blocks of an index from the origin that don't balance, with the deposits that they `paid`.

    The second result is the net lovelace that other certificates, proposals and donations took. The index does not
    store those, so an amount that one of them can explain is accepted.
    """
    found, outside = list[Difference](), 0
    for group in _groups(rows, flows, paid):
        host = rows[group][-1]
        said = [paid[row.tx_id] for row in rows[group] if row.tx_id in paid]
        left = sum(flows.lovelace_left[group]) - sum(each.registrations for each in said) * STAKE_DEPOSIT
        pools = sum(each.pool_updates for each in said)
        if host.fee is None:
            found.append(Difference(f"fee of tx {host.hash.hex()}", None, None, "known"))
        elif -_LEAST_REFUND < left < 0:
            found.append(Difference(f"lovelace that tx {host.hash.hex()} leaves", None, str(left), "0"))
        elif left and (left % POOL_DEPOSIT or not 0 <= left <= pools * POOL_DEPOSIT):
            outside += left
        if sum(flows.assets_left[group]):
            found += _assets_left(rows[group])
    return found, outside


def _groups(rows: Sequence[Row], flows: Flows, paid: Mapping[int, Deposits]) -> Iterator[slice]:
    """Each transaction behind its sub-transactions (Dijkstra), which have no fee and balance together with it. Leaves
    out those that balance on their own and paid no deposit.

    NOTE: some of Byron have no fee either. They balance on their own, and so add nothing to a group.
    """
    first = 0
    for place, (row, lovelace, assets) in enumerate(zip(rows, flows.lovelace_left, flows.assets_left, strict=True)):
        if first == place and row.fee and not (lovelace or assets) and row.tx_id not in paid:
            first += 1
            continue
        if first < place and slot_of(rows[first].tx_id) != slot_of(row.tx_id):
            yield slice(first, place)
            first = place
        if row.fee != 0:
            yield slice(first, place + 1)
            first = place + 1
    if first < len(rows):
        yield slice(first, len(rows))


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


_sql = sql.beside(__file__)
_deposits = _sql.query("deposits", Deposits)
