"""The envelope of every answer: data, message, pagination, last_updated."""

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from api.errors import Refusal

Data = TypeVar("Data")
PagingT = TypeVar("PagingT")

CONTENT_TYPE = "application/json;charset=utf-8"

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A UTC time, ISO 8601 ending in Z in answers."""

Quantity = Annotated[int, msgspec.Meta(extra_json_schema={"format": "uint64"})]
"""A quantity of the ledger, or a slot that a transaction names. It may exceed 2^53."""

Change = Annotated[int, msgspec.Meta(extra_json_schema={"format": "int64"})]
"""A quantity, negative if it was removed."""

Digits = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^-?[0-9]+$"})]
"""A quantity as a decimal string."""

Json = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""A JSON object as text that is not parsed again."""

Success = Annotated[bool, msgspec.Meta(extra_json_schema={"const": True})]
Failed = Annotated[bool, msgspec.Meta(extra_json_schema={"const": False})]


class Answer(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """A successful answer."""

    success: Success = True
    data: Data


class Confirmation(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """A successful change, with a message."""

    success: Success = True
    data: Data
    message: str


class Issued(msgspec.Struct, frozen=True):
    """Data with a new key, which only this answer contains. Its first field is the record that the key belongs to."""


class Page(msgspec.Struct, Generic[Data, PagingT], frozen=True, kw_only=True):
    """A page of a list."""

    success: Success = True
    data: list[Data]
    pagination: PagingT


class ObjectPage(msgspec.Struct, Generic[Data, PagingT], frozen=True, kw_only=True):
    """A page of a list inside an object."""

    success: Success = True
    data: Data
    pagination: PagingT


class LastUpdated(msgspec.Struct, frozen=True):
    """The last indexed block, read in the same snapshot as the data."""

    slot_no: int
    block_hash: str
    block_time: Instant


class ChainAnswer(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """Data of a chain, with its last indexed block."""

    success: Success = True
    data: Data
    last_updated: LastUpdated


class LedgerAnswer(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """Data of the node's ledger or of callers, which may change while the last indexed block does not."""

    success: Success = True
    data: Data
    last_updated: LastUpdated


class ChainBulk(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """Data of a chain for each of several ids, in their order; null for an id that does not exist."""

    success: Success = True
    data: list[Data | None]
    last_updated: LastUpdated


class Unchanged(ChainAnswer[None], frozen=True, kw_only=True):
    """Replaces an answer that the caller already has: its tip is still the last indexed block."""

    data: None = None


class ChainPage(msgspec.Struct, Generic[Data, PagingT], frozen=True, kw_only=True):
    """A page of a list from a chain, with the last indexed block."""

    success: Success = True
    data: list[Data]
    pagination: PagingT
    last_updated: LastUpdated


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error."""

    success: Failed = False
    error: str


class Paging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """The position of a page in its list."""

    limit: int
    offset: int
    total: int
    has_more: bool


class TotalPaging(msgspec.Struct, frozen=True):
    """The position of a page, for lists that report only their length."""

    limit: int
    offset: int
    total: int


class MorePaging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """The position of a page, for lists that report only whether there are more results."""

    limit: int
    offset: int
    has_more: bool


class PlacePaging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """The position of a page in a list that can be continued after its last entry.

    `next_cursor` is the `cursor` of the next page, with `offset` 0. It is absent on the last page.
    """

    limit: int
    offset: int
    has_more: bool
    next_cursor: str | msgspec.UnsetType = msgspec.UNSET


class CursorPaging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """The position of a page in the transactions of an address or an account.

    `next_cursor` is the `fromSlot` of the next page, with `offset` 0. It is absent on the last page, and on a page that
    ends inside a slot; in the latter case, continue with `offset` + `limit`.
    """

    limit: int
    offset: int
    total: int
    has_more: bool
    next_cursor: int | msgspec.UnsetType = msgspec.UNSET


class LogPaging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """The position of a page in a log: `next` is the `after` of the next page."""

    limit: int
    after: int
    next: int
    has_more: bool


def json_of(value: Any) -> msgspec.Raw | msgspec.UnsetType:
    """A value as JSON with integers of any size; unset for None."""
    return msgspec.UNSET if value is None else msgspec.Raw(encode(value))


encode = msgspec.json.Encoder().encode


def failure(refusal: Refusal) -> bytes:
    """The body of an error."""
    return encode(Failure(error=refusal.message))
