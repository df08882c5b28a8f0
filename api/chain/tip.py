"""The last indexed block of a chain: `last_updated` in answers."""

from collections.abc import Sequence

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


class ListRow(msgspec.Struct, frozen=True):
    """A row of a list, with the tip of its snapshot."""

    tip_slot_no: int
    tip_hash: bytes


def of_rows(rows: Sequence[ListRow]) -> Tip:
    """The tip in the snapshot of a list. An empty page has one row, too.

    Raises Refusal 503 if there is no row: the network is not served yet.
    """
    if not rows:
        raise errors.network_not_available()
    return Tip(rows[0].tip_slot_no, rows[0].tip_hash)


_sql = sql.beside(__file__)
_tip = _sql.query("tip", Tip)


async def read(db: sql.Connection) -> Tip:
    """The tip in the connection's snapshot. Raises Refusal 503 if the network is not served yet."""
    row = await _tip.one(db)
    if row is None:
        raise errors.network_not_available()
    return row
