"""How the rewards of this epoch come about, for queries: what its end would distribute if it ended now."""

from fractions import Fraction
from typing import Any

from devnet import parameters
from devnet.ledger import Ledger

Json = dict[str, Any]


def rewards(ledger: Ledger) -> Json:
    """The answer to `rewardsProvenance` since Ogmios 6.13. Leaders take no share on this chain."""
    pot, active = ledger.reward_pot(), ledger.active_stakes()
    shares = pot.shares(ledger.blocks_made, ledger.stake_snapshots[1])
    total = parameters.MAX_SUPPLY - ledger.reserves
    return {
        "totalStake": parameters.ada(total),
        "activeStake": parameters.ada(sum(active.values())),
        "fees": parameters.ada(pot.fees),
        "incentives": parameters.ada(pot.incentives),
        "treasuryTax": parameters.ada(pot.tax),
        "totalRewards": parameters.ada(pot.rewards),
        "efficiency": "1/1",
        "stakePools": {
            id_: {
                "relativeStake": _ratio(Fraction(active[id_], total)),
                "blocksMade": ledger.blocks_made[id_],
                "totalRewards": parameters.ada(shares.get(id_, 0)),
                "leaderReward": parameters.ada(0),
                "delegators": [
                    {"from": who.origin, "credential": who.hash, "stake": parameters.ada(lovelace)}
                    for who, lovelace in members.items()
                ],
            }
            for id_, members in ledger.stake_snapshots[1].items()
        },
    }


def performances(ledger: Ledger) -> Json:
    """The answer to `stakePoolsPerformances`, which was called `rewardsProvenance` before Ogmios 6.13."""
    active = ledger.active_stakes()
    return {
        "desiredNumberOfStakePools": parameters.DESIRED_POOLS,
        "stakePoolPledgeInfluence": parameters.PLEDGE_INFLUENCE,
        "totalRewardsInEpoch": parameters.ada(ledger.reward_pot().rewards),
        "activeStakeInEpoch": parameters.ada(sum(active.values())),
        "totalStakeInEpoch": parameters.ada(parameters.MAX_SUPPLY - ledger.reserves),
        "stakePools": {id_: _performance(ledger, id_, active) for id_ in active if id_ in ledger.pools},
    }


def _performance(ledger: Ledger, id_: str, active: dict[str, int]) -> Json:
    pool = ledger.pools[id_].parameters
    members = ledger.stake_snapshots[1][id_]
    owned = sum(lovelace for who, lovelace in members.items() if who.hash in pool["owners"] and not who.is_script)
    # Blocks made, divided by those expected of this share of the stake.
    expected = Fraction(ledger.blocks_made.total() * active[id_], max(sum(active.values()), 1))
    return {
        "id": id_,
        "stake": parameters.ada(active[id_]),
        "ownerStake": parameters.ada(owned),
        "approximatePerformance": float(ledger.blocks_made[id_] / expected) if expected else 0.0,
        "parameters": {name: pool[name] for name in ("cost", "margin", "pledge")},
    }


def _ratio(value: Fraction) -> str:
    return "{}/{}".format(*value.as_integer_ratio())
