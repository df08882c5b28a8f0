"""The envelope of every answer: data, message, page, last_updated."""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

import msgspec

from api.errors import Refusal

Data = TypeVar("Data")
PagingT = TypeVar("PagingT")

CONTENT_TYPE = "application/json;charset=utf-8"

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
"""A UTC time; answers write it in ISO 8601, ending in Z."""

Success = Annotated[bool, msgspec.Meta(extra_json_schema={"const": True})]
Failed = Annotated[bool, msgspec.Meta(extra_json_schema={"const": False})]


class Answer(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """A success."""

    success: Success = True
    data: Data


class Told(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """A success that says what was done."""

    success: Success = True
    data: Data
    message: str


class Page(msgspec.Struct, Generic[Data, PagingT], frozen=True, kw_only=True):
    """Part of a list."""

    success: Success = True
    data: list[Data]
    pagination: PagingT


class ObjectPage(msgspec.Struct, Generic[Data, PagingT], frozen=True, kw_only=True):
    """Part of a list that lies inside an object."""

    success: Success = True
    data: Data
    pagination: PagingT


class LastUpdated(msgspec.Struct, frozen=True):
    """The last block that the index holds, read in the snapshot of the data."""

    slot_no: int
    block_hash: str
    block_time: Instant


class ChainAnswer(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """A success read from a chain, and how far that chain is indexed."""

    success: Success = True
    data: Data
    last_updated: LastUpdated


class ChainPage(msgspec.Struct, Generic[Data, PagingT], frozen=True, kw_only=True):
    """Part of a list read from a chain, and how far that chain is indexed."""

    success: Success = True
    data: list[Data]
    pagination: PagingT
    last_updated: LastUpdated


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal or a fault."""

    success: Failed = False
    error: str


class Paging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """Where a page lies in its list."""

    limit: int
    offset: int
    total: int
    has_more: bool


class TotalPaging(msgspec.Struct, frozen=True):
    """Where a page lies, for lists that say only how long they are."""

    limit: int
    offset: int
    total: int


class MorePaging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """Where a page lies, for lists that say only whether they go on."""

    limit: int
    offset: int
    has_more: bool


class CursorPaging(msgspec.Struct, frozen=True, rename={"has_more": "hasMore"}):
    """Where a page lies in an address' transactions.

    `next_cursor` is the `fromSlot` of the next page (with offset 0). It is absent on the last page, and where the page
    ends inside a slot: then the next page is at `offset` + `limit`.
    """

    limit: int
    offset: int
    total: int
    has_more: bool
    next_cursor: int | msgspec.UnsetType = msgspec.UNSET


encode = msgspec.json.Encoder().encode


def failure(refusal: Refusal) -> bytes:
    """The body of an answer that is no success."""
    return encode(Failure(error=refusal.message))
