"""The table of the façade: the paths that are answered, with the scope of their native twins, and those that are
refused with a reason.
"""

from collections.abc import Callable, Sequence
from functools import partial

from api import errors
from api.blockfrost import (
    accounts,
    addresses,
    assets,
    blocks,
    certificates,
    epochs,
    network,
    not_answered,
    pools,
    refusals,
    scripts,
    service,
    submission,
    transactions,
)
from api.blockfrost.shape import ROOT
from api.chain import submission as native
from api.errors import Refusal
from api.route import Handler, Route

Errors = Sequence[Callable[[], Refusal]]

_OF_AN_ADDRESS = (errors.invalid_address, errors.foreign_address, refusals.never_used)
_OF_AN_ACCOUNT = (errors.invalid_stake_address, errors.foreign_stake_address, refusals.never_used)
_OF_AN_ASSET = (errors.invalid_asset, errors.asset_not_found)
_TOO_LONG = partial(errors.answer_too_large, "count", 25)
_OF_A_POLICY = (errors.fingerprint_instead_of_policy_id, refusals.policy_not_found)
_OF_AN_EVALUATION = (*native.NODE_REFUSALS, *native.CBOR_REFUSALS)
_OF_A_SUBMISSION = (*_OF_AN_EVALUATION, errors.transaction_not_signed, *native.LEDGER_REFUSALS)


def _open(path: str, handler: Handler) -> Route:
    """A path that anyone may read."""
    return Route("GET", ROOT + path, _operation(path), handler, "open")


def _get(path: str, handler: Handler, scope: str, errors: Errors = ()) -> Route:
    return Route("GET", ROOT + path, _operation(path), handler, "api key", scope=scope, errors=errors)


def _list(path: str, handler: Handler, scope: str, errors: Errors, by: str = "position on the chain") -> Route:
    """A list with an order."""
    return Route("GET", ROOT + path, _operation(path), handler, "api key", scope=scope, errors=errors, sorted_by=by)


def _post(path: str, handler: Handler, errors: Errors, raw_media_type: str = "application/cbor") -> Route:
    return Route(
        "POST",
        ROOT + path,
        _operation(path),
        handler,
        "api key",
        scope="submit",
        errors=errors,
        raw_media_type=raw_media_type,
    )


def _operation(path: str) -> str:
    return f"blockfrost{path.replace('/', '_').replace('{', '').replace('}', '')}"


_BLOCK, _TX, _POOL = (errors.block_not_found,), (errors.transaction_not_found,), (errors.pool_not_found,)
_SCRIPT, _DATUM = (errors.script_not_found,), (errors.datum_not_found,)

FACADE: tuple[Route, ...] = (
    # The service and the network -------------------------------------------------------------------------------------
    _open("", service.root),
    _open("/", service.root),
    _open("/health", service.is_healthy),
    _open("/health/clock", service.clock),
    _get("/network", network.info, "network", (refusals.supply_not_known,)),
    _get("/genesis", network.genesis, "network", (errors.genesis_not_known,)),
    # Blocks and epochs -----------------------------------------------------------------------------------------------
    _get("/blocks/{block}", blocks.info, "network", _BLOCK),
    _get("/blocks/{block}/next", blocks.following, "network", _BLOCK),
    _get("/blocks/{block}/previous", blocks.preceding, "network", _BLOCK),
    _list("/blocks/{block}/txs", blocks.transactions, "network", _BLOCK),
    _get("/epochs/{epoch}", epochs.info, "network", (errors.epoch_not_found,)),
    _get(
        "/epochs/{epoch}/parameters",
        epochs.parameters,
        "network",
        (errors.epoch_not_found, errors.parameters_not_known),
    ),
    # Transactions ----------------------------------------------------------------------------------------------------
    _get("/txs/{hash}", transactions.info, "transactions", _TX),
    _get("/txs/{hash}/utxos", transactions.inputs_and_outputs, "transactions", _TX),
    _get("/txs/{hash}/metadata", transactions.metadata, "transactions", _TX),
    _get("/txs/{hash}/metadata/cbor", transactions.metadata_cbor, "transactions", _TX),
    _get("/txs/{hash}/cbor", submission.as_cbor, "submit", (*_TX, errors.transaction_not_submitted)),
    _get("/txs/{hash}/withdrawals", transactions.withdrawals, "transactions", _TX),
    _get("/txs/{hash}/stakes", certificates.stakes, "transactions", _TX),
    _get("/txs/{hash}/delegations", certificates.delegations, "transactions", _TX),
    _get("/txs/{hash}/pool_updates", certificates.pool_updates, "transactions", _TX),
    _get("/txs/{hash}/pool_retires", certificates.pool_retirements, "transactions", _TX),
    _post("/tx/submit", submission.submit, _OF_A_SUBMISSION),
    _post("/utils/txs/evaluate", submission.evaluate, _OF_AN_EVALUATION),
    _post("/utils/txs/evaluate/utxos", submission.evaluate_with_outputs, _OF_AN_EVALUATION, raw_media_type=""),
    # Addresses and accounts ------------------------------------------------------------------------------------------
    _get(
        "/addresses/{address}",
        addresses.info,
        "accounts",
        (*_OF_AN_ADDRESS, partial(refusals.too_many_assets, addresses.MOST_ASSETS)),
    ),
    _list("/addresses/{address}/utxos", addresses.unspent, "accounts", (*_OF_AN_ADDRESS, _TOO_LONG)),
    _list(
        "/addresses/{address}/utxos/{asset}",
        addresses.unspent_of_asset,
        "accounts",
        (*_OF_AN_ADDRESS, *_OF_AN_ASSET, _TOO_LONG),
    ),
    _list("/addresses/{address}/txs", addresses.transaction_hashes, "transactions", _OF_AN_ADDRESS),
    _list("/addresses/{address}/transactions", addresses.transactions, "transactions", _OF_AN_ADDRESS),
    _get("/accounts/{stake_address}", accounts.info, "accounts", _OF_AN_ACCOUNT),
    _list("/accounts/{stake_address}/addresses", accounts.addresses, "accounts", _OF_AN_ACCOUNT),
    _list("/accounts/{stake_address}/addresses/assets", accounts.assets, "accounts", _OF_AN_ACCOUNT),
    _list("/accounts/{stake_address}/utxos", accounts.unspent, "accounts", (*_OF_AN_ACCOUNT, _TOO_LONG)),
    _list("/accounts/{stake_address}/delegations", accounts.delegations, "accounts", _OF_AN_ACCOUNT),
    _list("/accounts/{stake_address}/withdrawals", accounts.withdrawals, "accounts", _OF_AN_ACCOUNT),
    # Assets ----------------------------------------------------------------------------------------------------------
    _get("/assets/{asset}", assets.info, "assets", _OF_AN_ASSET),
    _list("/assets/{asset}/addresses", assets.holders, "assets", _OF_AN_ASSET, "quantity"),
    _list("/assets/{asset}/history", assets.mints, "assets", _OF_AN_ASSET),
    _list("/assets/{asset}/txs", assets.transaction_hashes, "assets", _OF_AN_ASSET),
    _list("/assets/{asset}/transactions", assets.transactions, "assets", _OF_AN_ASSET),
    _list("/assets/policy/{policy}", assets.of_policy, "assets", _OF_A_POLICY, "supply"),
    # Stake pools -----------------------------------------------------------------------------------------------------
    _list("/pools", pools.listed, "pools", (), "first registration"),
    _list("/pools/extended", pools.extended, "pools", (), "first registration"),
    _get("/pools/{poolId}", pools.info, "pools", _POOL),
    _get("/pools/{poolId}/metadata", pools.metadata, "pools", _POOL),
    _get("/pools/{poolId}/relays", pools.relays, "pools", _POOL),
    _list("/pools/{pool}/delegators", pools.delegators, "pools", _POOL, "stake, largest first in either order"),
    # Scripts and datums ----------------------------------------------------------------------------------------------
    _get("/scripts/{scriptHash}", scripts.info, "transactions", _SCRIPT),
    _get("/scripts/{scriptHash}/json", scripts.as_json, "transactions", _SCRIPT),
    _get("/scripts/{scriptHash}/cbor", scripts.as_cbor, "transactions", _SCRIPT),
    _get("/scripts/datum/{datumHash}", scripts.datum, "transactions", _DATUM),
    _get("/scripts/datum/{datumHash}/cbor", scripts.datum_cbor, "transactions", _DATUM),
    # The others ------------------------------------------------------------------------------------------------------
    *not_answered.routes(),
)
