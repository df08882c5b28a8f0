"""The node's answers about its ledger and its eras, in the forms of Ogmios 6.11 to 7."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from indexer.blocks.eras import EraSummary, disagreement_of
from indexer.ledger.answers import (
    PoolView,
    Proposal,
    Share,
    Summaries,
    deposits_of,
    live_stakes_of,
    stake_snapshot_of,
    summaries_by_hash,
)
from indexer.ledger.reader import taken_from_accounts
from indexer.ogmios import frames
from shared.encoding import bech32_encode
from shared.network import MAINNET, MAX_SUPPLY, PREPROD, PREVIEW
from shared.packed import Extra
from tests.chain.decoding import KINDS, check_query
from tests.chain.ogmios import VERSIONS, answers

HASH = bytes(range(28))
HASHES = [bytes([number]) * 28 for number in range(4)]
POOLS = [bech32_encode("pool", pool) for pool in HASHES]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("query", KINDS)
def test_an_answer_of_ogmios_is_read(query: str, version: tuple[int, int]) -> None:
    told = [answer for answer in answers(version) if answer["method"] == f"queryLedgerState/{query}"]
    assert sum(check_query(query, msgspec.json.encode(answer)) for answer in told) > 0


def test_rewards_are_read_as_ogmios_wrote_them_before_6_13() -> None:
    old = {HASH.hex(): {"delegate": {"id": "pool1"}, "rewards": {"ada": {"lovelace": 7}}, "deposit": {}}}
    (summary,) = summaries_by_hash(msgspec.convert(old, Summaries)).items()
    assert (summary[0], frames.lovelace(summary[1].rewards)) == (HASH, 7)
    assert summaries_by_hash(msgspec.convert({}, Summaries)) == summaries_by_hash(msgspec.convert([], Summaries)) == {}


def test_invalid_ids_are_unreadable_and_name_the_answer() -> None:
    summaries = msgspec.convert({"xyz": {"rewards": {"ada": {"lovelace": 1}}}}, Summaries)
    with pytest.raises(frames.Unreadable, match="reward account summaries"):
        summaries_by_hash(summaries)
    stake: dict[str, Any] = {"ada": {"lovelace": 1}}
    with pytest.raises(frames.Unreadable, match="stake pools"):
        stake_snapshot_of({"pool": PoolView(stake)}, {}, {})
    with pytest.raises(frames.Unreadable, match="proposals"):
        deposits_of([Proposal(stake, "stake")])
    for share in ("1/0", "x"):
        with pytest.raises(frames.Unreadable, match="live stake distribution"):
            live_stakes_of({POOLS[0]: Share(share)}, 0)


def test_live_stakes_are_shares_of_the_circulating_supply() -> None:
    """As in the ledger (poolsByTotalStakeFraction): of maximum supply less reserves, in lowest terms."""
    stake, reserves = 67_123_456_789_012, 8_300_000_000_000_001
    share = Fraction(stake, MAX_SUPPLY - reserves)
    assert live_stakes_of({POOLS[1]: Share(str(share))}, reserves) == {HASHES[1]: stake}


def test_voting_stakes_less_deposits_of_proposals_are_the_snapshot() -> None:
    def ada(lovelace: int) -> dict[str, Any]:
        return {"ada": {"lovelace": lovelace}}

    accounts = [bech32_encode("stake_test", b"\xe0" + key) for key in HASHES]
    pools = {POOLS[0]: PoolView(ada(107)), POOLS[1]: PoolView(ada(0)), POOLS[2]: PoolView(ada(9)), POOLS[3]: PoolView()}
    deposits = deposits_of(
        [Proposal(ada(50), accounts[0]), Proposal(ada(50), accounts[0]), Proposal(ada(50), accounts[1])]
    )
    delegations = {b"\xe0" + HASHES[0]: HASHES[0], b"\xe0" + HASHES[1]: HASHES[1]}
    assert stake_snapshot_of(pools, deposits, delegations) == {HASHES[0]: 7, HASHES[1]: 0, HASHES[2]: 9}
    assert stake_snapshot_of(dict.fromkeys(POOLS, PoolView(ada(0))), deposits, delegations) == {}


def test_withdrawals_less_credits_give_the_earlier_reward() -> None:
    one, two = HASHES[:2]
    extras = [Extra(withdrawals={one: 5}), Extra(withdrawals={one: 2, two: 0}, credits={two: 3}), Extra()]
    assert taken_from_accounts(extras) == {one: 7, two: -3}


def _era(first_epoch: int, last_epoch: int | None, slots: int, slot_ms: int, **bounds: tuple[int, int]) -> EraSummary:
    def bound(epoch: int, at: tuple[int, int]) -> dict[str, Any]:
        slot, seconds = at
        return {"time": {"seconds": seconds}, "slot": slot, "epoch": epoch}

    said = {
        "start": bound(first_epoch, bounds["start"]),
        "parameters": {"epochLength": slots, "slotLength": {"milliseconds": slot_ms}, "safeZone": 1},
    }
    if last_epoch is not None:
        said["end"] = bound(last_epoch, bounds["end"])
    return msgspec.convert(said, EraSummary)


def test_the_eras_of_the_three_networks_agree() -> None:
    mainnet_shelley = (4_492_800, 89_856_000)
    agreeing = [
        (MAINNET, _era(0, 208, 21_600, 20_000, start=(0, 0), end=mainnet_shelley)),
        (MAINNET, _era(208, 236, 432_000, 1_000, start=mainnet_shelley, end=(16_588_800, 101_952_000))),
        (MAINNET, _era(507, None, 432_000, 1_000, start=(133_660_800, 219_024_000))),
        (PREPROD, _era(4, 5, 432_000, 1_000, start=(86_400, 1_728_000), end=(518_400, 2_160_000))),
        (PREVIEW, _era(0, 0, 4_320, 20_000, start=(0, 0), end=(0, 0))),
        (PREVIEW, _era(3, None, 86_400, 1_000, start=(259_200, 259_200))),
    ]
    for network, era in agreeing:
        assert disagreement_of(era, network) is None


@pytest.mark.parametrize(
    ("era", "disagreement"),
    [
        (_era(3, None, 86_400, 1_000, start=(259_201, 259_201)), "epoch 3 begins at slot 259201, not 259200"),
        (_era(3, None, 86_400, 1_000, start=(259_200, 259_199)), "slot 259200 begins 259199.0 s after the start"),
        (_era(3, None, 86_401, 1_000, start=(259_200, 259_200)), "an epoch has 86401 slots of 1.0 s, not 86400 of 1 s"),
        (_era(3, None, 86_400, 200, start=(259_200, 259_200)), "an epoch has 86400 slots of 0.2 s"),
        (_era(0, 1, 86_400, 1_000, start=(0, 0), end=(5, 5)), "epoch 1 begins at slot 5, not 86400"),
    ],
)
def test_an_era_that_differs_is_named(era: EraSummary, disagreement: str) -> None:
    assert disagreement in (disagreement_of(era, PREVIEW) or "")


def test_a_start_time_is_read_as_an_instant() -> None:
    said = b'{"jsonrpc":"2.0","method":"queryNetwork/startTime","result":"2022-10-25T00:00:00Z","id":null}'
    assert frames.read_result(said, "queryNetwork/startTime", datetime) == datetime(2022, 10, 25, tzinfo=UTC)
    assert PREVIEW.start_time == datetime(2022, 10, 25, tzinfo=UTC)
