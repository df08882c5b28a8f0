"""Comparisons of derived tables, most with recomputed ones. stake.py, epochs.py and certificates.py compare others."""

from indexer.store import holders, outputs, supplies
from indexer.store.buckets import Buckets
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


def _bucket_check(buckets: Buckets, place: str, start: str = "") -> Check:
    """`place` says in words where a bucket begins; `start` are the expressions for it, if not rank and tie."""
    ours, counted = ([f"{side}.{column}" for column in buckets.columns] for side in ("b", "counted"))
    start = start or f"{buckets.rank}, {buckets.tie}"
    query = _sql.query(
        "check_buckets",
        Difference,
        bucket=buckets.table,
        counted=buckets.counted,
        key=buckets.key,
        rank=buckets.rank,
        tie=buckets.tie,
        place=f"format('{buckets.table} of {buckets.key} %s from {place}', {buckets.key}, {start})",
        b_says=_says(ours),
        counted_says=_says(counted),
        b_sums=", ".join(f"coalesce({column}, 0)" if buckets.sparse else column for column in ours),
        counted_sums=", ".join(counted),
    )
    return buckets.table, query


def _says(sums: list[str]) -> str:
    return " || ' outputs with ' || ".join(f"{column}::text" for column in sums)


def _asset_check(table: str, buckets: Buckets) -> Check:
    parts = {"owner_no": buckets.key, "asset": table, "long_lists": buckets.long_lists}
    return table, _sql.query("check_utxo_asset", Difference, **parts)


_OUTPUT_LISTS = (outputs.BUCKETS["utxo_bucket"], outputs.BUCKETS["account_utxo_bucket"])

CHECKS: tuple[Check, ...] = (
    *map(_check, ("tip", "address", "policy", "asset")),
    _bucket_check(supplies.BUCKETS, "supply %s, name %s", "-rank, encode(name, 'hex')"),
    _history_check("address_tx", "address_no", "address", "recomputed_address"),
    _history_check("account_tx", "stake_no", "stake", "recomputed_account"),
    *map(_check, ("account_withdrawal", "asset_tx", "mint", "spender", "dropped_output", "utxo")),
    *(_bucket_check(buckets, "tx_id %s, output_index %s") for buckets in _OUTPUT_LISTS),
    *map(_asset_check, ("utxo_asset", "account_utxo_asset"), _OUTPUT_LISTS),
    *map(_check, ("holder", "policy_holder", "account_holder", "policy_account_holder")),
    *(
        _bucket_check(buckets, f"quantity %s, {buckets.tie.removeprefix('lowest_')} %s")
        for buckets in holders.BUCKETS.values()
    ),
    *map(_check, ("stake", "address_count", "reference_output")),
)
"""The derived tables that are compared here, in dependency order: the first difference explains those after it."""

WITHOUT_CHECKSUM = {
    *("tip", "address", "asset_bucket", "dropped_output"),
    *("utxo_bucket", "account_utxo_bucket", "utxo_asset", "account_utxo_asset"),
    *("holder_bucket", "policy_holder_bucket", "account_holder_bucket", "policy_account_holder_bucket"),
}
"""Those of CHECKS whose tables have no checksum, and whose statements need no recomputed table."""
