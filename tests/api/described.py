"""What the tests know of /openapi.json: the values in its examples, and who may call which of its paths."""

from typing import Any

import msgspec

from api.reference.openapi import document
from api.routes import ROUTES
from tests.api.chains import hash_of
from tests.api.payments import ALICE

VALUES = {
    **dict.fromkeys(("block", "epoch"), "latest"),
    **dict.fromkeys(("hash", "tx_hash"), hash_of("a").hex()),
    "index": "0",
    "address": ALICE,
}

# The caller of the fuzzer's requests, by path pattern. Every path of the table matches one pattern.
CALLERS = {
    "^/v1/(?!admin/)": "API key",
    "^/v1/admin/(?!admin-keys)": "partner",
    "^/v1/admin/admin-keys": "operator",
    "^/(?!v1/|blockfrost/)": "nobody",
    "^/blockfrost/": "API key",
}


def served() -> Any:
    """The document as clients get it."""
    return msgspec.json.decode(msgspec.json.encode(document(ROUTES, VALUES)))
