"""What happens in the blocks of a chain to transactions that were submitted here, by account.

The chain's rows say which transactions a block contains, those of the partners which were submitted. The latter are
kept for some days only, so a log that begins earlier is told less than one that was there.
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal
from uuid import UUID

import msgspec

from api.chain.submitted import SubmittedEvent
from api.events.happenings import BlockRow, Happening
from api.events.subjects import notice_key
from shared import sql
from shared.ledger import slot_of, tx_id_of
from shared.network import Network
from shared.sql import Connection


class _Hash(msgspec.Struct, frozen=True):
    tx_id: int
    tx_hash: bytes


class _Submitted(msgspec.Struct, frozen=True):
    tx_hash: bytes
    user_account_id: UUID
    invalid_hereafter: str | None


class _Ended(_Submitted, frozen=True):
    ends: int  # the same, as a slot


_sql = sql.beside(__file__)
_hashes = _sql.query("hashes", _Hash)
_present = _sql.values("present", bytes)
_submitted = _sql.query("submitted", _Submitted)
_ended = _sql.query("ended", _Ended)


async def read(
    chain: Connection, partners: Connection, network: Network, block_rows: Sequence[BlockRow]
) -> list[list[Happening]]:
    """What happens to them in each of some consecutive blocks: a block contains one, or comes after its interval."""
    if not block_rows:
        return []
    first, last = block_rows[0], block_rows[-1]
    hashes = await _hashes.all(chain, tx_id_of(first.slot_no, 0), tx_id_of(last.slot_no + 1, 0))
    slots = {row.tx_hash: slot_of(row.tx_id) for row in hashes}
    found = [
        (slots[row.tx_hash], _happening(row, "in_block"))
        for row in await _submitted.all(partners, network.network_id, list(slots))
    ]
    ended = await _ended.all(partners, network.network_id, _before(first), last.slot_no)
    present = set(await _present.all(chain, [row.tx_hash for row in ended])) if ended else set()
    found += [(row.ends, _happening(row, "dropped")) for row in ended if row.tx_hash not in present]
    return [
        [happening for slot_no, happening in found if _before(block) < slot_no <= block.slot_no] for block in block_rows
    ]


def _before(block: BlockRow) -> int:
    """The slot of the block before."""
    return -1 if block.previous_slot_no is None else block.previous_slot_no


def _happening(row: _Submitted, change: Literal["in_block", "dropped"]) -> Happening:
    return Happening(notice_key("submitted", row.user_account_id), partial(_object, row, change))


async def _object(row: _Submitted, change: Literal["in_block", "dropped"]) -> SubmittedEvent:
    return SubmittedEvent(change, row.tx_hash.hex(), row.invalid_hereafter)
