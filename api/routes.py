"""THE table: every method and path, who answers, and who may call. Start reading here.

Question, body and answer of a route are those of its handler's annotations (`route.py`).
"""

from api import errors
from api.chain import transactions
from api.route import Route

ROUTES = (
    # Transactions ----------------------------------------------------------------------------------------------------
    Route(
        "GET",
        "/v1/tx/address/{address}",
        transactions.detailed,
        "api key",
        errors=(errors.invalid_address, errors.foreign_address),
    ),
    Route(
        "GET",
        "/v1/tx/history/{address}",
        transactions.history,
        "api key",
        errors=(errors.invalid_address, errors.foreign_address),
    ),
    Route(
        "GET",
        "/v1/tx/hash/{hash}",
        transactions.by_hash,
        "api key",
        errors=(errors.transaction_not_found,),
    ),
)
