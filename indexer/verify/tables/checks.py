"""Compare derived tables with those that they follow from, in SQL. Other modules compare more.

If a table differs, so may those that follow from it. The first one explains them.
"""

import msgspec

from indexer.store import holders, outputs, supplies
from indexer.store.buckets import Buckets
from indexer.verify.moments import Moments
from indexer.verify.results import MAX_SHOWN, CheckResult, Difference
from shared import sql

Check = tuple[str, sql.Query[Difference]]
"""A derived table, and a statement that compares it: the first $1 differences."""

_sql = sql.beside(__file__)


def _check(name: str) -> Check:
    return name, _sql.query(f"check_{name}", Difference)


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


_OUTPUT_LISTS = tuple(outputs.BUCKETS.values())
_OUTPUT_ASSETS = ("utxo_asset", "account_utxo_asset", "credential_utxo_asset")

CHECKS: tuple[Check, ...] = (
    *map(_check, ("tip", "address", "policy")),
    _check("minted_asset"),
    _bucket_check(supplies.BUCKETS, "supply %s, name %s", "-rank, encode(name, 'hex')"),
    _check("dropped_output"),
    *(_bucket_check(buckets, "tx_id %s, output_index %s") for buckets in _OUTPUT_LISTS),
    *map(_asset_check, _OUTPUT_ASSETS, _OUTPUT_LISTS),
    *(
        _bucket_check(buckets, f"quantity %s, {buckets.tie.removeprefix('lowest_')} %s")
        for buckets in holders.BUCKETS.values()
    ),
)
"""The derived tables that are compared here, besides assets and mints."""


async def check(moments: Moments) -> list[CheckResult]:
    """Run all checks of this module, each in its own snapshot."""
    found = [CheckResult(name, await moments.all(query, MAX_SHOWN)) for name, query in CHECKS]
    return found + [
        CheckResult(row.of_table, [Difference(row.what, row.address, row.indexed, row.recomputed)])
        for row in await moments.all(_assets, MAX_SHOWN)
    ]


class _OfAsset(msgspec.Struct, frozen=True):
    of_table: str
    what: str
    address: bytes | None
    indexed: str | None
    recomputed: str | None


_assets = _sql.query("check_assets", _OfAsset)
