"""The table of the façade: the paths that are answered, with the scope of their native twins, and those that are
refused with a reason.
"""

from collections.abc import Callable
from functools import partial
from typing import Concatenate, ParamSpec

from api import errors
from api.blockfrost import (
    accounts,
    addresses,
    asset_outputs,
    assets,
    blocks,
    certificates,
    derivation,
    epochs,
    eras,
    labels,
    mempool,
    network,
    not_answered,
    own_use,
    owners,
    pool_blocks,
    pool_history,
    pools,
    redeemers,
    refusals,
    script_outputs,
    scripts,
    service,
    stakes,
    submission,
    totals,
    transactions,
)
from api.blockfrost.shape import ROOT
from api.chain import block_bytes
from api.chain import submission as native
from api.repeats.caching import METADATA_WARNING
from api.route import Route, anyone, get, ordered, post

P = ParamSpec("P")


def _below_root(word: Callable[Concatenate[str, P], Route]) -> Callable[Concatenate[str, P], Route]:
    """A word of `api/route.py`, for paths below ROOT."""

    def row(path: str, /, *rest: P.args, **options: P.kwargs) -> Route:
        return word(ROOT + path, *rest, **options)

    return row


_anyone, _get, _ordered, _post = _below_root(anyone), _below_root(get), _below_root(ordered), _below_root(post)

_ADDRESS = (errors.invalid_address, errors.foreign_address, refusals.never_used)
_ACCOUNT = (errors.invalid_stake_address, errors.foreign_stake_address, refusals.never_used)
_ASSET = (errors.invalid_asset, errors.asset_not_found)
_POLICY = (errors.fingerprint_instead_of_policy_id, refusals.policy_not_found)
_BLOCK, _EPOCH, _POOL = errors.block_not_found, errors.epoch_not_found, errors.pool_not_found
_TX, _SCRIPT, _DATUM = errors.transaction_not_found, errors.script_not_found, errors.datum_not_found
_TOO_LONG = partial(errors.answer_too_large, "count", 25)
_TOO_MANY_ASSETS = partial(refusals.too_many_assets, addresses.MAX_ASSETS)
_LABEL = (refusals.metadata_not_found, _TOO_LONG)
_TOO_MANY_HOLDERS = partial(refusals.too_many_holders, asset_outputs.MAX_HOLDERS)
_TOO_MANY_OUTPUTS = partial(refusals.too_many_outputs, owners.MAX_READ)
_OF_NODE, _OF_MEMPOOL = block_bytes.REFUSALS, block_bytes.NODE_REFUSALS
_STAKES = partial(refusals.stakes_not_known, "210-215")
_CBOR = "application/cbor"

FACADE: tuple[Route, ...] = (
    # The service and the network -------------------------------------------------------------------------------------
    _anyone("/", service.root),
    _anyone("/health", service.is_healthy),
    _anyone("/health/clock", service.clock),
    _get("/metrics", own_use.by_day, ""),
    _get("/metrics/endpoints", own_use.by_endpoint, ""),
    _get("/network", network.info, "network", refusals.supply_not_known),
    _get("/network/eras", eras.listed, "network", refusals.eras_not_known, errors.genesis_not_known),
    _get("/genesis", network.genesis, "network", errors.genesis_not_known),
    # Blocks and epochs -----------------------------------------------------------------------------------------------
    _get("/blocks/slot/{slot_number}", blocks.in_slot, "network", _BLOCK),
    _get("/blocks/epoch/{epoch_number}/slot/{slot_number}", blocks.in_slot_of_epoch, "network", _BLOCK),
    _get("/blocks/{block}", blocks.info, "network", _BLOCK),
    _get("/blocks/{block}/next", blocks.following, "network", _BLOCK),
    _get("/blocks/{block}/previous", blocks.preceding, "network", _BLOCK),
    _ordered("/blocks/{block}/txs", blocks.transactions, "network", _BLOCK),
    _ordered("/blocks/{block}/txs/cbor", blocks.transactions_cbor, "network", _BLOCK, *_OF_NODE),
    _get("/blocks/{block}/addresses", blocks.addresses, "network", _BLOCK),
    _get("/epochs/{epoch}", epochs.info, "network", _EPOCH),
    _get("/epochs/{epoch}/next", epochs.following, "network", _EPOCH),
    _get("/epochs/{epoch}/previous", epochs.preceding, "network", _EPOCH),
    _ordered("/epochs/{epoch}/blocks", epochs.blocks, "network", _EPOCH),
    _ordered("/epochs/{epoch}/blocks/{pool}", pool_blocks.in_epoch, "network", _EPOCH, _POOL),
    _get("/epochs/{epoch}/stakes", stakes.in_epoch, "network", _EPOCH, _STAKES),
    _get("/epochs/{epoch}/stakes/{pool}", stakes.of_pool, "network", _EPOCH, _POOL, _STAKES),
    _get("/epochs/{epoch}/parameters", epochs.parameters, "network", _EPOCH, errors.parameters_not_known),
    # Transactions ----------------------------------------------------------------------------------------------------
    _get("/txs/{hash}", transactions.info, "transactions", _TX),
    _get("/txs/{hash}/utxos", transactions.inputs_and_outputs, "transactions", _TX),
    _get("/txs/{hash}/metadata", transactions.metadata, "transactions", _TX),
    _get("/txs/{hash}/metadata/cbor", transactions.metadata_cbor, "transactions", _TX),
    _get("/txs/{hash}/cbor", submission.as_cbor, "submit", _TX, *_OF_NODE),
    _get("/txs/{hash}/redeemers", redeemers.listed, "transactions", _TX, *_OF_NODE, refusals.prices_not_known),
    _get("/txs/{hash}/required_signers", redeemers.required_signers, "transactions", _TX, *_OF_NODE),
    _get("/txs/{hash}/withdrawals", transactions.withdrawals, "transactions", _TX),
    _get("/txs/{hash}/stakes", certificates.stakes, "transactions", _TX),
    _get("/txs/{hash}/delegations", certificates.delegations, "transactions", _TX),
    _get(
        "/txs/{hash}/mirs",
        certificates.instantaneous_rewards,
        "transactions",
        _TX,
        refusals.instantaneous_rewards_not_known,
    ),
    _get("/txs/{hash}/pool_updates", certificates.pool_updates, "transactions", _TX),
    _get("/txs/{hash}/pool_retires", certificates.pool_retirements, "transactions", _TX),
    _post("/tx/submit", submission.submit, "submit", *native.SUBMISSION, raw_media_type=_CBOR),
    _post("/utils/txs/evaluate", submission.evaluate, "submit", *native.EVALUATION, raw_media_type=_CBOR),
    _post("/utils/txs/evaluate/utxos", submission.evaluate_with_outputs, "submit", *native.EVALUATION),
    # Addresses and accounts ------------------------------------------------------------------------------------------
    _get("/addresses/{address}", addresses.info, "accounts", *_ADDRESS, _TOO_MANY_ASSETS),
    _get(
        "/addresses/{address}/extended",
        addresses.extended,
        "accounts",
        *_ADDRESS,
        _TOO_MANY_ASSETS,
        headers=(METADATA_WARNING,),
    ),
    _ordered("/addresses/{address}/utxos", addresses.unspent, "accounts", *_ADDRESS, _TOO_LONG),
    _ordered(
        "/addresses/{address}/utxos/{asset}",
        addresses.unspent_of_asset,
        "accounts",
        *_ADDRESS,
        *_ASSET,
        _TOO_LONG,
        _TOO_MANY_OUTPUTS,
    ),
    _ordered("/addresses/{address}/txs", addresses.transaction_hashes, "transactions", *_ADDRESS),
    _ordered("/addresses/{address}/transactions", addresses.transactions, "transactions", *_ADDRESS),
    _get("/addresses/{address}/total", totals.of_address, "accounts", *_ADDRESS),
    _get("/accounts/{stake_address}", accounts.info, "accounts", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/addresses", accounts.addresses, "accounts", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/addresses/assets", accounts.assets, "accounts", *_ACCOUNT),
    _get("/accounts/{stake_address}/addresses/total", totals.of_account, "accounts", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/utxos", accounts.unspent, "accounts", *_ACCOUNT, _TOO_LONG),
    _ordered("/accounts/{stake_address}/transactions", accounts.transactions, "transactions", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/registrations", accounts.registered, "accounts", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/history", accounts.history, "accounts", *_ACCOUNT, by="epoch"),
    _ordered("/accounts/{stake_address}/rewards", accounts.rewarded, "accounts", *_ACCOUNT, by="epoch"),
    _ordered("/accounts/{stake_address}/delegations", accounts.delegations, "accounts", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/withdrawals", accounts.withdrawals, "accounts", *_ACCOUNT),
    _ordered("/accounts/{stake_address}/mirs", accounts.instantaneous_rewards, "accounts", *_ACCOUNT),
    _get("/utils/addresses/xpub/{xpub}/{role}/{index}", derivation.derived, "accounts", refusals.invalid_xpub),
    # Assets ----------------------------------------------------------------------------------------------------------
    _ordered("/assets", assets.listed, "assets", by="first mint, then policy id and asset name"),
    _get("/assets/{asset}", assets.info, "assets", *_ASSET),
    _ordered("/assets/{asset}/addresses", assets.holders, "assets", *_ASSET, by="quantity"),
    _ordered("/assets/{asset}/history", assets.mints, "assets", *_ASSET),
    _ordered("/assets/{asset}/txs", assets.transaction_hashes, "assets", *_ASSET),
    _ordered("/assets/{asset}/transactions", assets.transactions, "assets", *_ASSET),
    _ordered("/assets/{asset}/utxos", asset_outputs.listed, "assets", *_ASSET, _TOO_MANY_HOLDERS, _TOO_LONG),
    _ordered("/assets/policy/{policy}", assets.of_policy, "assets", *_POLICY, by="supply"),
    # Stake pools -----------------------------------------------------------------------------------------------------
    _ordered("/pools", pools.listed, "pools", by="first registration"),
    _ordered("/pools/extended", pools.extended, "pools", by="first registration"),
    _ordered("/pools/retiring", pools.retiring, "pools", by="epoch and announcement"),
    _ordered("/pools/retired", pools.retired, "pools", by="epoch and announcement"),
    _get("/pools/{poolId}", pools.info, "pools", _POOL),
    _get("/pools/{poolId}/metadata", pools.metadata, "pools", _POOL),
    _get("/pools/{poolId}/relays", pools.relays, "pools", _POOL),
    _ordered("/pools/{pool}/delegators", pools.delegators, "pools", _POOL, by="stake"),
    _ordered("/pools/{pool}/history", pool_history.listed, "pools", _POOL, by="epoch"),
    _ordered("/pools/{pool}/blocks", pool_blocks.listed, "pools", _POOL),
    _ordered("/pools/{pool}/updates", pools.updates, "pools", _POOL),
    # The mempool -----------------------------------------------------------------------------------------------------
    _ordered("/mempool", mempool.listed, "transactions", *_OF_MEMPOOL, by="arrival at the node"),
    _get("/mempool/{hash}", mempool.info, "transactions", _TX, *_OF_NODE),
    _ordered(
        "/mempool/addresses/{address}",
        mempool.of_address,
        "transactions",
        errors.invalid_address,
        errors.foreign_address,
        *_OF_MEMPOOL,
        by="arrival at the node",
    ),
    # Metadata --------------------------------------------------------------------------------------------------------
    _ordered("/metadata/txs/labels", labels.listed, "transactions", by="label"),
    _ordered("/metadata/txs/labels/{label}", labels.metadata, "transactions", *_LABEL),
    _ordered("/metadata/txs/labels/{label}/cbor", labels.metadata_cbor, "transactions", *_LABEL),
    # Scripts and datums ----------------------------------------------------------------------------------------------
    _ordered("/scripts", scripts.listed, "transactions", by="first transaction, then hash"),
    _get("/scripts/{scriptHash}", scripts.info, "transactions", _SCRIPT),
    _ordered("/scripts/{scriptHash}/utxos", script_outputs.listed, "transactions", _SCRIPT, _TOO_LONG),
    _ordered(
        "/scripts/{scriptHash}/redeemers",
        redeemers.of_script,
        "transactions",
        _SCRIPT,
        *_OF_NODE,
        refusals.prices_not_known,
    ),
    _get("/scripts/{scriptHash}/json", scripts.as_json, "transactions", _SCRIPT),
    _get("/scripts/{scriptHash}/cbor", scripts.as_cbor, "transactions", _SCRIPT),
    _get("/scripts/datum/{datumHash}", scripts.datum, "transactions", _DATUM),
    _get("/scripts/datum/{datumHash}/cbor", scripts.datum_cbor, "transactions", _DATUM),
    # The others ------------------------------------------------------------------------------------------------------
    *not_answered.routes(),
)
