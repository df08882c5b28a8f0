"""Client of a Ledgerline service: Cardano transactions, assets and pools, and the administration of API keys."""

from ledgerline_client import types
from ledgerline_client.async_client import AsyncLedgerline
from ledgerline_client.client import Ledgerline
from ledgerline_client.exchange import UNSET, LedgerlineError
from ledgerline_client.webhooks import WebhookError, verify_webhook

__all__ = [
    "UNSET",
    "AsyncLedgerline",
    "Ledgerline",
    "LedgerlineError",
    "WebhookError",
    "types",
    "verify_webhook",
]
