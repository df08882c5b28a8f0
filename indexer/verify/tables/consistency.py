"""Check that blocks, the genesis, hashes, references and the order of certificates are consistent: a part of verify.

`certificates` compares the rows of certificates with the packed ones; here they must follow the ledger's rules.
"""

from hashlib import blake2b

import msgspec

from indexer.ledger import reader
from indexer.verify.moments import Moments
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference
from shared import network_state, packed, sql
from shared.ledger import PAID_AFTER_EPOCHS, PoolNo, tx_id_of
from shared.network import Network

_HASH_BYTES = 32


async def check(moments: Moments, network: Network, *, from_origin: bool) -> list[CheckResult]:
    """Run all checks of this module, each in its own snapshot."""
    epochs = (network.byron_slots, network.byron_epochs, network.epoch_slots)
    return [
        CheckResult("chain", await moments.all(_chain, MAX_SHOWN)),
        CheckResult("era_start", await moments.all(_eras, MAX_SHOWN, network.byron_slots)),
        CheckResult(
            "epoch_boundary_block",
            await moments.all(_boundaries, MAX_SHOWN, network.byron_slots, network.byron_epoch_slots),
        ),
        CheckResult("hash", await moments.all(_hashes, MAX_SHOWN)),
        CheckResult("genesis_output", await _wrong_genesis_outputs(moments)),
        CheckResult("reference", await moments.all(_references, MAX_SHOWN)),
        CheckResult("script", await moments.all(_scripts, MAX_SHOWN)),
        CheckResult("stake_event", await moments.all(_stake_events, MAX_SHOWN, *epochs, from_origin)),
        CheckResult("pool_reaping", await moments.all(_reapings, MAX_SHOWN, *epochs)),
        CheckResult("pool_update", await _wrong_parameters(moments)),
        CheckResult("pool_retirement", await moments.all(_retirements, MAX_SHOWN, *epochs, from_origin)),
        CheckResult("reward", await moments.all(_rewards, MAX_SHOWN)),
        CheckResult("reward_epoch", await moments.all(_reward_epochs, MAX_SHOWN, *epochs)),
        CheckResult("stake_snapshot", await moments.all(_stake_snapshots, MAX_SHOWN, *epochs)),
        CheckResult("pool_earning", await _wrong_earnings(moments, network)),
        CheckResult("ledger_state", await moments.all(_ledger_state, MAX_SHOWN, *epochs)),
        CheckResult("rollback_depth", await moments.all(_rollbacks, MAX_SHOWN, network_state.ROLLBACK_BOUNDS)),
    ]


async def check_equal(moments: Moments) -> list[CheckResult]:
    """Name the byte strings that several rows have, which `indexes` has noticed."""
    return [
        CheckResult("address", await moments.all(_numbers, MAX_SHOWN)),
        CheckResult("hash", await moments.all(_equal_hashes, MAX_SHOWN)),
    ]


async def _wrong_genesis_outputs(moments: Moments) -> list[Difference]:
    """Genesis outputs whose hash is not that of their address, or whose tx_id does not follow from their order."""
    found = []
    for place, output in enumerate(await moments.all(_genesis_outputs)):
        expected = blake2b(output.address, digest_size=_HASH_BYTES).hexdigest()
        if output.tx_hash.hex() != expected:
            found.append(Difference("tx_hash of the genesis output of", output.address, output.tx_hash.hex(), expected))
        key = tx_id_of(-1 - place, 0)
        if output.tx_id != key:
            what = f"tx_id of the genesis output {output.tx_hash.hex()} of"
            found.append(Difference(what, output.address, str(output.tx_id), str(key)))
    return found[:MAX_SHOWN]


async def _wrong_parameters(moments: Moments) -> list[Difference]:
    """Updates of pools whose parameters can't be unpacked."""
    found = []
    for update in await moments.all(_updates):
        try:
            packed.unpack_pool_parameters(update.parameters)
        except packed.UNREADABLE as error:
            what = f"parameters of pool_no {update.pool_no} at tx_id {update.tx_id}"
            found.append(Difference(what, None, str(error), "packed bytes"))
    return found[:MAX_SHOWN]


async def _wrong_earnings(moments: Moments, network: Network) -> list[Difference]:
    """Earnings of pools that can't be, and those of the last epoch that differ from what the reader adds up."""
    found = await moments.all(_pool_earnings, MAX_SHOWN)
    async with moments.next() as moment:
        last = await _last_round.one(moment.db)
        if last is None:
            return found
        stored = await _earnings_of.all(moment.db, last - PAID_AFTER_EPOCHS)
        earned = await reader.earnings(moment.db, network, last)
    stored_of, earned_of = ({each.pool_no: each for each in rows} for rows in (stored, earned))
    for pool_no in sorted(stored_of.keys() | earned_of.keys()):
        ours, theirs = stored_of.get(pool_no), earned_of.get(pool_no)
        if ours != theirs:
            found.append(Difference(f"pool_earning of pool_no {pool_no}", None, _said(ours), _said(theirs)))
    return found[:MAX_SHOWN]


def _said(earning: reader.Earning | None) -> str:
    return "none" if earning is None else f"{earning.lovelace} for {earning.delegators} delegators"


class _GenesisOutput(msgspec.Struct, frozen=True):
    tx_id: int
    tx_hash: bytes
    address: bytes


class _Update(msgspec.Struct, frozen=True):
    tx_id: int
    pool_no: PoolNo
    parameters: bytes


_sql = sql.beside(__file__)
_genesis_outputs = _sql.query("genesis_outputs", _GenesisOutput)
_updates = _sql.query("updates", _Update)
_chain = _sql.query("check_chain", Difference)
_eras = _sql.query("check_eras", Difference)
_boundaries = _sql.query("check_boundaries", Difference)
_hashes = _sql.query("check_hashes", Difference)
_numbers = _sql.query("check_numbers", Difference)
_equal_hashes = _sql.query("check_equal_hashes", Difference)
_scripts = _sql.query("check_scripts", Difference)
_references = _sql.query("check_references", Difference)
_stake_events = _sql.query("check_stake_events", Difference)
_reapings = _sql.query("check_reapings", Difference)
_retirements = _sql.query("check_retirements", Difference)
_rewards = _sql.query("check_rewards", Difference)
_reward_epochs = _sql.query("check_reward_epochs", Difference)
_stake_snapshots = _sql.query("check_stake_snapshots", Difference)
_pool_earnings = _sql.query("check_pool_earnings", Difference)
_last_round = _sql.values("last_round", int)
_earnings_of = _sql.query("earnings_of", reader.Earning)
_ledger_state = _sql.query("check_ledger_state", Difference)
_rollbacks = _sql.query("check_rollbacks", Difference)
