"""What the indexer reads from an answer of Ogmios, compared with the answer as plain JSON."""

from typing import Any

import msgspec

from indexer.blocks.eras import EraSummary
from indexer.ledger.answers import (
    Nonces,
    Parameters,
    PoolView,
    Share,
    Summaries,
    TreasuryAndReserves,
    live_stakes_of,
    nonce_of,
    stake_snapshot_of,
    summaries_by_hash,
)
from indexer.ogmios import frames
from shared.encoding import bech32_payload

Json = dict[str, Any]


def check_next_block(raw: bytes) -> None:
    """Every field of our Structs has the value that the answer has."""
    assert disagreements(frames.read(raw), msgspec.json.decode(raw)["result"], "result") == []


def disagreements(decoded: Any, said: Any, where: str) -> list[str]:
    """The differences of a decoded Struct from its JSON, except for fields that the Struct lacks."""
    if isinstance(decoded, msgspec.Raw):
        return [] if not bytes(decoded) else disagreements(msgspec.json.decode(decoded), said, where)
    parts = _parts(decoded, said)
    if parts is None:
        return [] if decoded == said else [f"{where}: {decoded!r} for {said!r}"]
    return [line for name, ours, theirs in parts for line in disagreements(ours, theirs, f"{where}{name}")]


def _parts(decoded: Any, said: Any) -> list[tuple[str, Any, Any]] | None:
    """The parts of a value by name, decoded and in JSON; None for a value that is compared as a whole."""
    if isinstance(decoded, msgspec.Struct):
        names = zip(decoded.__struct_fields__, decoded.__struct_encode_fields__, strict=True)
        return [(f".{in_json}", getattr(decoded, name), said[in_json]) for name, in_json in names if in_json in said]
    if isinstance(decoded, dict) and isinstance(said, dict) and decoded.keys() == said.keys():
        return [(f".{key}", decoded[key], said[key]) for key in said]
    if isinstance(decoded, list) and isinstance(said, list) and len(decoded) == len(said):
        return [(f"[{place}]", *pair) for place, pair in enumerate(zip(decoded, said, strict=True))]
    return None


KINDS: dict[str, Any] = {
    "rewardAccountSummaries": Summaries,
    "treasuryAndReserves": TreasuryAndReserves,
    "nonces": Nonces,
    "protocolParameters": Parameters,
    "stakePools": dict[str, PoolView],
    "liveStakeDistribution": dict[str, Share],
    "eraSummaries": list[EraSummary],
}
"""The queries of the ledger's state whose answers are compared, and what the indexer reads them as."""


def check_query(query: str, raw: bytes) -> int:
    """Compare what the indexer takes from an answer to one of KINDS; returns the number of values, 0 of a refusal."""
    found = frames.read_result(raw, f"queryLedgerState/{query}", KINDS[query])
    if isinstance(found, frames.Fault):
        return 0
    said = msgspec.json.decode(raw)["result"]
    match query:
        case "rewardAccountSummaries":
            rewards = {hash_: frames.lovelace(each.rewards) for hash_, each in summaries_by_hash(found).items()}
            assert rewards == {bytes.fromhex(s["credential"]): s["rewards"]["ada"]["lovelace"] for s in said}
        case "treasuryAndReserves":
            assert frames.lovelace(found.reserves) == said["reserves"]["ada"]["lovelace"]
            assert frames.lovelace(found.treasury) == said["treasury"]["ada"]["lovelace"]
        case "nonces":
            nonce = nonce_of(found)
            assert said["epochNonce"] == ("neutral" if nonce is None else nonce.hex())
        case "protocolParameters":
            assert found.desired_number_of_stake_pools == said["desiredNumberOfStakePools"]
            assert frames.lovelace(found.stake_pool_deposit) == said["stakePoolDeposit"]["ada"]["lovelace"]
        case "stakePools":
            assert found.keys() == said.keys()
            views = {bech32_payload(pool): view for pool, view in said.items() if "stake" in view}
            staked = {pool: view["stake"]["ada"]["lovelace"] for pool, view in views.items()}
            assert stake_snapshot_of(found, {}, {}) == (staked if any(staked.values()) else {})
        case "liveStakeDistribution":
            assert live_stakes_of(found, 0).keys() == {bech32_payload(pool) for pool in said}
        case "eraSummaries":
            assert [summary.start.slot for summary in found] == [summary["start"]["slot"] for summary in said]
    return len(said)
