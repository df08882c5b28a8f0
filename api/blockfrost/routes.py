"""The table of the façade: the paths of Blockfrost that are answered, each with the scope of its native twin."""

from collections.abc import Callable, Sequence
from functools import partial

from api import errors
from api.blockfrost import addresses, blocks, epochs, network, refusals, service, submission, transactions
from api.blockfrost.shape import ROOT
from api.errors import Refusal
from api.route import Handler, Route

Errors = Sequence[Callable[[], Refusal]]

_OF_AN_ADDRESS = (errors.invalid_address, errors.foreign_address, refusals.never_used)
_OF_A_TRANSACTION = (
    partial(errors.no_node, "preview"),
    partial(errors.node_not_available, "it does not answer"),
    errors.invalid_transaction,
    partial(errors.transaction_too_large, 16_384),
    errors.foreign_transaction,
)
_OF_THE_LEDGER = (
    errors.transaction_not_signed,
    partial(errors.transaction_expired, 133_660_800, 133_664_400),
    partial(errors.signatures_refused, "Some signatures are missing. (3101)"),
    partial(errors.inputs_not_unspent, "Unknown output references as inputs. (3117)"),
    partial(errors.outside_validity_interval, "Outside of its validity interval. (3118)"),
    partial(errors.fee_too_small, "Insufficient fee. (3122)"),
    partial(errors.value_not_conserved, "In and out value not conserved. (3123)"),
    partial(errors.transaction_refused, "Some outputs have too little ada. (3125)"),
)


def _open(path: str, handler: Handler) -> Route:
    """A path that anyone may read."""
    return Route("GET", ROOT + path, _operation(path), handler, "open")


def _get(path: str, handler: Handler, scope: str, errors: Errors = ()) -> Route:
    return Route("GET", ROOT + path, _operation(path), handler, "api key", scope=scope, errors=errors)


def _list(path: str, handler: Handler, scope: str, errors: Errors = ()) -> Route:
    """A list with an order."""
    by = "position on the chain"
    return Route("GET", ROOT + path, _operation(path), handler, "api key", scope=scope, errors=errors, sorted_by=by)


def _post(path: str, handler: Handler, errors: Errors) -> Route:
    raw = "application/cbor"
    return Route("POST", ROOT + path, _operation(path), handler, "api key", scope="submit", errors=errors, raw=raw)


def _operation(path: str) -> str:
    return f"blockfrost{path.replace('/', '_').replace('{', '').replace('}', '')}"


FACADE: tuple[Route, ...] = (
    # The service and the network -------------------------------------------------------------------------------------
    _open("", service.root),
    _open("/", service.root),
    _open("/health", service.is_healthy),
    _open("/health/clock", service.clock),
    _get("/network", network.info, "network", (refusals.supply_not_known,)),
    _get("/genesis", network.genesis, "network", (errors.genesis_not_known,)),
    # Blocks and epochs -----------------------------------------------------------------------------------------------
    _get("/blocks/{block}", blocks.info, "network", (errors.block_not_found,)),
    _get("/blocks/{block}/next", blocks.following, "network", (errors.block_not_found,)),
    _get("/blocks/{block}/previous", blocks.preceding, "network", (errors.block_not_found,)),
    _list("/blocks/{block}/txs", blocks.transactions, "network", (errors.block_not_found,)),
    _get("/epochs/{epoch}", epochs.info, "network", (errors.epoch_not_found,)),
    _get(
        "/epochs/{epoch}/parameters",
        epochs.parameters,
        "network",
        (errors.epoch_not_found, errors.parameters_not_known),
    ),
    # Transactions ----------------------------------------------------------------------------------------------------
    _get("/txs/{hash}", transactions.info, "transactions", (errors.transaction_not_found,)),
    _get("/txs/{hash}/utxos", transactions.inputs_and_outputs, "transactions", (errors.transaction_not_found,)),
    _post("/tx/submit", submission.submit, (*_OF_A_TRANSACTION, *_OF_THE_LEDGER)),
    _post("/utils/txs/evaluate", submission.evaluate, _OF_A_TRANSACTION),
    # Addresses -------------------------------------------------------------------------------------------------------
    _list("/addresses/{address}/utxos", addresses.unspent, "accounts", _OF_AN_ADDRESS),
    _list(
        "/addresses/{address}/utxos/{asset}",
        addresses.unspent_of_asset,
        "accounts",
        (*_OF_AN_ADDRESS, errors.invalid_asset, errors.asset_not_found),
    ),
)
