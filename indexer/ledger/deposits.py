"""Whether governance has changed the deposits that every network began with, by the parameters of the stored epochs."""

import msgspec

from shared import sql
from shared.network import POOL_DEPOSIT, STAKE_DEPOSIT


async def changed(db: sql.Connection) -> bool:
    """Whether a stored epoch has another deposit of a stake credential or of a pool than the genesis."""
    found = await _changed.one(db, STAKE_DEPOSIT, POOL_DEPOSIT)
    assert found is not None, "EXISTS is one row"
    return found.any


class _Changed(msgspec.Struct, frozen=True):
    any: bool


_sql = sql.beside(__file__)
_changed = _sql.query("changed", _Changed)
