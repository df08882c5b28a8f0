"""How far a chain is indexed: `last_updated` of its answers."""

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
        """As answers tell it."""
        return LastUpdated(self.slot_no, self.block_hash.hex(), network.slot_time(self.slot_no))


_tip = sql.query("tip", Tip)


async def read(db: sql.Connection) -> Tip:
    """The tip as the connection's snapshot sees it. Raises Refusal 503 where the network is not served yet."""
    found = await _tip.one(db)
    if found is None:
        raise errors.network_not_available()
    return found
