"""Whether governance has changed the deposits that every network began with, by the parameters of the stored epochs."""

from shared import sql
from shared.network import POOL_DEPOSIT, STAKE_DEPOSIT


async def changed(db: sql.Connection) -> bool:
    """Whether a stored epoch has another deposit of a stake credential or of a pool than the genesis."""
    return await _changed.only(db, STAKE_DEPOSIT, POOL_DEPOSIT)


_changed = sql.beside(__file__).values("changed", bool)
