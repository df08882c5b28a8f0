"""Notices: what events tell of that is in no block. Whoever causes one adds it in the commit that causes it.

The follower of the network appends it to the logs that ask for its kind (docs/decisions/0079).
"""

from uuid import UUID

from shared import sql
from shared.network import Network

MAX_BODY_CHARACTERS = 65_536

_sql = sql.beside(__file__)
_add = _sql.command("add")


async def add(db: sql.Connection, network: Network, kind: str, body: str, owner: UUID | None = None) -> None:
    """Add a notice of a kind of event. `body` is the JSON of the object that the event tells.

    `owner` is the credential or the account whose subscriptions are told, as the kind says; None: those of all.
    """
    assert len(body) <= MAX_BODY_CHARACTERS, "the object of a notice is small"
    await _add.run(db, network.network_id, owner, kind, body)
