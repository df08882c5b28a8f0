"""Client of a Ledgerline service: Cardano transactions, assets and pools, and the administration of API keys."""

from ledgerline_client import types
from ledgerline_client.async_client import AsyncLedgerline
from ledgerline_client.client import Ledgerline
from ledgerline_client.exchange import UNSET, LedgerlineError

__all__ = ["UNSET", "AsyncLedgerline", "Ledgerline", "LedgerlineError", "types"]
