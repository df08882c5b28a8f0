"""Compare the stored numbers of the fingerprints of assets with their policies and names: a part of verify.

Postgres can't compute the digest, so processes do.
"""

import asyncpg
import msgspec

from indexer.verify.moments import Moment
from indexer.verify.results import MAX_SHOWN, Difference
from shared import sql
from shared.ledger import AssetNo, fingerprint_digest, fingerprint_number

_RANGE_ASSETS = 50_000


class AssetRange(msgspec.Struct, frozen=True):
    """A range of assets; `next_asset_no` is not in it."""

    first_asset_no: int
    next_asset_no: int


async def ranges(db: asyncpg.Connection) -> list[AssetRange]:
    """All assets, in ranges of some thousand."""
    return await _ranges.all(db, _RANGE_ASSETS)


async def wrong(moment: Moment, part: AssetRange) -> list[Difference]:
    """The assets of a range whose fingerprint is not that of their policy and name."""
    found = []
    for row in await _assets.all(moment.db, part.first_asset_no, part.next_asset_no):
        if row.asset is None:
            found.append(Difference(f"policy of asset_no {row.asset_no}", None, None, "a row"))
            continue
        expected = fingerprint_number(fingerprint_digest(row.asset))
        if row.fingerprint != expected:
            found.append(
                Difference(f"fingerprint of asset_no {row.asset_no}", None, str(row.fingerprint), str(expected))
            )
    return found[:MAX_SHOWN]


class _Asset(msgspec.Struct, frozen=True):
    asset_no: AssetNo
    asset: bytes | None
    fingerprint: int


_sql = sql.beside(__file__)
_ranges = _sql.query("ranges", AssetRange)
_assets = _sql.query("assets", _Asset)
