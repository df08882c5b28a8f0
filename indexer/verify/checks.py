"""Comparisons of derived tables, most with recomputed ones. stake.py, epochs.py and certificates.py compare others."""

from indexer.verify.results import Difference
from shared import sql

Check = tuple[str, sql.Query[Difference]]
"""A derived table, and a statement that compares it: the first $1 differences."""

_sql = sql.beside(__file__)


def _check(name: str) -> Check:
    return name, _sql.query(f"check_{name}", Difference)


def _history_check(history: str, owner_no: str, owner: str, recomputed: str) -> Check:
    parts = {"history": history, "owner_no": owner_no, "owner": owner, "recomputed": recomputed}
    return history, _sql.query("check_txs", Difference, **parts)


def _list_check(kind: str, table: str, owner_no: str) -> Check:
    parts = {"owner_no": owner_no, kind: table}
    return table, _sql.query(f"check_utxo_{kind}", Difference, **parts)


def _holder_bucket_check(holder: str, held_no: str, owner_no: str) -> Check:
    query = _sql.query("check_holder_bucket", Difference, holder=holder, held_no=held_no, owner_no=owner_no)
    return f"{holder}_bucket", query


CHECKS: tuple[Check, ...] = (
    *map(_check, ("tip", "address", "policy", "asset", "asset_bucket")),
    _history_check("address_tx", "address_no", "address", "recomputed_address"),
    _history_check("account_tx", "stake_no", "stake", "recomputed_account"),
    *map(_check, ("account_withdrawal", "asset_tx", "mint", "spender", "dropped_output", "utxo")),
    _list_check("bucket", "utxo_bucket", "address_no"),
    _list_check("bucket", "account_utxo_bucket", "stake_no"),
    _list_check("asset", "utxo_asset", "address_no"),
    _list_check("asset", "account_utxo_asset", "stake_no"),
    *map(_check, ("holder", "policy_holder", "account_holder", "policy_account_holder")),
    _holder_bucket_check("holder", "asset_no", "address_no"),
    _holder_bucket_check("policy_holder", "policy_no", "address_no"),
    _holder_bucket_check("account_holder", "asset_no", "account_no"),
    _holder_bucket_check("policy_account_holder", "policy_no", "account_no"),
    *map(_check, ("stake", "address_count", "reference_output")),
)
"""The derived tables that are compared here, in dependency order: the first difference explains those after it."""

WITHOUT_CHECKSUM = {
    *("tip", "address", "asset_bucket", "dropped_output"),
    *("utxo_bucket", "account_utxo_bucket", "utxo_asset", "account_utxo_asset"),
    *("holder_bucket", "policy_holder_bucket", "account_holder_bucket", "policy_account_holder_bucket"),
}
"""Those of CHECKS whose tables have no checksum, and whose statements need no recomputed table."""
