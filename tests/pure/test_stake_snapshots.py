"""The snapshots that verify adds up are those of a ledger that keeps every account by itself."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from indexer.verify.keys import ints
from indexer.verify.tables.stake import Moves, Snapshots, Start
from shared.ledger import PoolNo
from shared.network import PREVIEW

ACCOUNTS, POOLS, EPOCHS = 6, 3, 8


@pytest.mark.parametrize("seed", range(20))
def test_snapshots_are_those_of_one_account_at_a_time(seed: int) -> None:
    draw = Random(seed)
    reaped = {epoch_no: [PoolNo(draw.randint(1, POOLS))] for epoch_no in range(EPOCHS) if draw.random() < 0.3}
    first_epoch_no = draw.randint(0, 2)
    balances, pools, expected = Counter[int](), dict[int, int](), dict[int, dict[int, int]]()

    def moved(epoch_no: int) -> Moves:
        some = [(draw.randint(1, ACCOUNTS), draw.randint(-9, 99)) for _ in range(draw.randint(0, 5))]
        changed = [(draw.randint(1, ACCOUNTS), draw.randint(0, POOLS)) for _ in range(draw.randint(0, 4))]
        balances.update({number: 0 for number, _ in some})
        for number, lovelace in some:
            balances[number] += lovelace
        pools.update(changed)
        columns = [ints([row[place] for row in rows]) for rows in (some, changed) for place in (0, 1)]
        return Moves(epoch_no, *columns)

    def begin(epoch_no: int) -> None:
        stake = Counter[int]()
        for number, pool_no in pools.items():
            stake[pool_no] += balances[number]
        expected[epoch_no + 1] = {pool_no: each for pool_no, each in stake.items() if pool_no and each}
        for number in [number for number, pool_no in pools.items() if pool_no in reaped.get(epoch_no, ())]:
            pools[number] = 0

    start = Start(
        ACCOUNTS, POOLS, PREVIEW.epoch_start(first_epoch_no) + 5, PREVIEW.epoch_start(first_epoch_no + EPOCHS) + 5
    )
    genesis = moved(-1)
    snapshots = Snapshots(PREVIEW, start, reaped, genesis)
    for epoch_no in (-1, 0):
        begin(epoch_no)
    for epoch_no in range(first_epoch_no, first_epoch_no + EPOCHS + 1):
        if epoch_no > first_epoch_no:
            begin(epoch_no)
        for _ in range(draw.randint(0, 2)):
            snapshots.add(moved(epoch_no))
    found = {
        epoch_no: {int(pool_no): int(stake[pool_no]) for pool_no in np.flatnonzero(stake)}
        for epoch_no, stake in snapshots.taken().items()
    }
    assert found == expected
