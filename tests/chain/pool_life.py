"""A pool's whole life as a scripted chain, with the expected answer after each block."""

from collections.abc import Callable
from typing import Any

from devnet.addresses import stake_part
from devnet.blocks import Block
from tests.chain.harness import Json
from tests.chain.scripted import ADA, Scripted, delegate, join, leave, retire

EPOCH = 86_400
Step = tuple[Callable[[Scripted], Block], dict[str, Any]]


def life_of(chain: Scripted) -> list[Step]:
    """Each step is a block and the pool's expected fields after it. Those of the model are compared separately."""
    pool, other = chain.cast.pools[0], chain.cast.pools[1]
    ann, bob, eve = (chain.cast.stakers[number] for number in (0, 1, 6))
    assert eve.origin == "script"
    home = next(address for address in chain.cast.people if stake_part(address) == bob)
    born = {"status": "active", "retiring_epoch": None}

    def at(epoch: int, second: int, *transactions: list[Json], made: bool = False) -> Callable[[Scripted], Block]:
        return lambda c: c.block(epoch * EPOCH + second, *transactions, by=pool if made else None)

    def pay(epoch: int, second: int, lovelace: int) -> Callable[[Scripted], Block]:
        return lambda c: c.pay(epoch * EPOCH + second, home, lovelace)

    return [
        (at(0, 10, [chain.registration(pool)], [chain.registration(other)]), born | {"delegator_count": 0}),
        (at(0, 20, [join(ann), delegate(ann, pool)], [join(bob)], made=True), {"delegator_count": 1}),
        (pay(0, 30, 1_000 * ADA), {"live_stake": "0", "blocks_minted": 1}),
        (at(0, 40, [delegate(bob, pool)]), {"live_stake": str(1_000 * ADA), "delegator_count": 2, "active_stake": "0"}),
        (at(1, 0, [chain.registration(pool, "1/20", 7)]), {"margin": 0.05, "pledge": "7", "blocks_epoch": 0}),
        (pay(1, 10, 500 * ADA), {"live_stake": str(1_500 * ADA), "active_stake": "0"}),
        (at(2, 0), {"active_stake": str(1_000 * ADA), "blocks_epoch": 0}),
        (at(2, 10, [join(eve), delegate(eve, other), delegate(eve, pool)]), {"delegator_count": 3}),
        (at(2, 15, [leave(eve), join(eve), delegate(eve, other), leave(eve)]), {"delegator_count": 2}),
        (at(2, 20, [retire(pool, 4)]), {"status": "retiring", "retiring_epoch": 4}),
        (at(2, 30, [retire(pool, 5)]), {"status": "retiring", "retiring_epoch": 5}),
        (at(3, 0, [chain.registration(pool)]), born | {"active_stake": str(1_500 * ADA)}),
        (at(4, 0), born | {"delegator_count": 2}),
        (at(5, 5), born | {"delegator_count": 2}),
        (at(5, 10, [retire(pool, 8), chain.registration(pool), retire(pool, 7)]), {"status": "retiring"}),
        (at(6, 86_390), {"status": "retiring", "retiring_epoch": 7, "delegator_count": 2}),
        (
            at(7, 0),
            {
                "status": "retired",
                "retiring_epoch": None,
                "delegator_count": 0,
                "live_stake": "0",
                "active_stake": str(1_500 * ADA),
            },
        ),
        (at(8, 0), {"status": "retired", "active_stake": str(1_500 * ADA)}),
        (at(9, 0, [delegate(ann, other)]), {"status": "retired", "active_stake": "0", "delegator_count": 0}),
        (at(9, 10, [chain.registration(pool)]), born | {"delegator_count": 0, "live_stake": "0"}),
        (at(9, 20, [delegate(bob, pool)]), {"delegator_count": 1, "live_stake": str(1_500 * ADA)}),
        # An epoch without blocks lies between: the next block crosses both its boundaries.
        (at(11, 3, [leave(bob)]), {"active_stake": str(1_500 * ADA), "delegator_count": 0, "live_stake": "0"}),
    ]
