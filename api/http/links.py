"""`Link: <…>; rel="next"`: the next page of a list, so that callers need not know how pages work (RFC 8288)."""

import re
from urllib.parse import quote, unquote_plus

from msgspec import UNSET

from api.answers import CursorPaging, LogPaging, MorePaging, Paging, PlacePaging, TotalPaging

_SAFE = "%/?&=:@!$'()*+,;"  # besides those that `quote` keeps
_IS_SAFE = re.compile(rf"[0-9A-Za-z_.~{_SAFE}-]*")
_POSITIONS = ("after_block",)  # where only the first page begins
_WITH_CURSOR = (CursorPaging, PlacePaging)
AnyPaging = Paging | TotalPaging | MorePaging | CursorPaging | PlacePaging | LogPaging


def to_next_page(raw_path: str, raw_query: str, page: AnyPaging) -> str | None:
    """The header's value, relative to the request's own address; None on the last page."""
    more = page.offset + page.limit < page.total if isinstance(page, TotalPaging) else page.has_more
    if not more:
        return None
    moved = _moved(page)
    parts = [f"{name}={value}" for name, value in moved.items()]
    if raw_query:
        replaced = {*moved, *_POSITIONS}
        kept = [part for part in raw_query.split("&") if part and unquote_plus(part.partition("=")[0]) not in replaced]
        parts = kept + parts
    address = f"{raw_path}?{'&'.join(parts)}"
    if not _IS_SAFE.fullmatch(address):
        address = quote(address, safe=_SAFE)  # a `>` would end the URI
    return f'<{address}>; rel="next"'


def _moved(page: AnyPaging) -> dict[str, object]:
    """The parameters of the next page that differ."""
    if isinstance(page, LogPaging):
        return {"after": page.next}
    cursor = page.next_cursor if isinstance(page, _WITH_CURSOR) else UNSET
    name = "fromSlot" if isinstance(page, CursorPaging) else "cursor"
    return {"offset": page.offset + page.limit} if cursor is UNSET else {name: cursor, "offset": 0}
