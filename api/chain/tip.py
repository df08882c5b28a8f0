"""The last indexed block of a chain: `last_updated` in answers."""

import msgspec

from api import errors
from api.answers import LastUpdated
from shared import sql
from shared.network import Network


class Tip(msgspec.Struct, frozen=True):
    """The last committed block."""

    slot_no: int
    block_hash: bytes

    def last_updated(self, network: Network) -> LastUpdated:
        """The tip in the form of an answer."""
        return LastUpdated(self.slot_no, self.block_hash.hex(), network.slot_time(self.slot_no))


_sql = sql.beside(__file__)
_tip = _sql.query("tip", Tip)


async def read(db: sql.Connection) -> Tip:
    """The tip in the connection's snapshot. Raises Refusal 503 if the network is not served yet."""
    found = await _tip.one(db)
    if found is None:
        raise errors.network_not_available()
    return found
