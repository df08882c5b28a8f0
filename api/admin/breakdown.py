"""Usage for billing: requests by period, endpoint and class of status, with percentiles of the response time."""

import csv
import io
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Annotated, Literal, TypedDict
from uuid import UUID

import msgspec
from aiohttp import web

from api import errors
from api.admin.credentials import CredentialId
from api.admin.period import Period
from api.admin.users import UserId
from api.answers import Instant, Page, TotalPaging
from api.ask import AdminAsk
from api.http.sending import SentStream
from api.parameters import Choice, Integer, Offset
from api.usage import durations
from shared import sql

MEDIA_TYPES = ("text/csv", "application/x-ndjson")
_PERCENTS = (50, 95, 99)
_ROWS_AT_ONCE, _CREDENTIALS_AT_ONCE = 2_000, 500
_NO_ID = UUID(int=0)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

Granularity = Annotated[Literal["hour", "day", "month"], Choice("hour", "day", "month")]
GroupBy = Annotated[
    Literal["endpoint_and_status", "endpoint", "status", "none"],
    Choice("endpoint_and_status", "endpoint", "status", "none"),
]


class _Parts(Period, frozen=True, kw_only=True):
    granularity: Granularity = "day"
    group_by: GroupBy = "endpoint_and_status"
    limit: Annotated[int, Integer(1, 1000)] = 100
    offset: Offset = 0


class CredentialParts(_Parts, frozen=True, kw_only=True):
    """A page of the parts of a credential's usage."""

    id: CredentialId


class UserParts(_Parts, frozen=True, kw_only=True):
    """A page of the parts of an account's usage."""

    id: UserId


class Export(Period, frozen=True, kw_only=True):
    """The usage to export, and how."""

    granularity: Granularity = "day"
    format: Annotated[Literal["csv", "ndjson"], Choice("csv", "ndjson")] = "csv"


class UsagePart(msgspec.Struct, frozen=True):
    """The requests of one period, to one endpoint and with one class of status.

    `endpoint` and `status_class` are each null unless `group_by` includes them. Percentiles are accurate to within
    12.5 %. `delivered_events` are the events of subscriptions in these answers; those that a webhook has acknowledged
    have the endpoint `webhook`, and no requests. `stream_minutes` are the minutes for which streams of events were
    open, begun ones included.
    """

    period_start: Instant
    endpoint: str | None
    status_class: str | None
    total_requests: int
    avg_response_time_ms: float
    p50_response_time_ms: float
    p95_response_time_ms: float
    p99_response_time_ms: float
    delivered_events: int
    stream_minutes: int


class _Figures(TypedDict):
    total_requests: int
    avg_response_time_ms: float
    p50_response_time_ms: float
    p95_response_time_ms: float
    p99_response_time_ms: float
    delivered_events: int
    stream_minutes: int


class ExportedUsage(msgspec.Struct, frozen=True):
    """A line of an export."""

    user_account_id: UUID
    external_id: str | None
    credential_id: UUID
    credential_name: str
    period_start: Instant
    endpoint: str
    status_class: str
    total_requests: int
    avg_response_time_ms: float
    p50_response_time_ms: float
    p95_response_time_ms: float
    p99_response_time_ms: float
    delivered_events: int
    stream_minutes: int


class _PartRow(msgspec.Struct, frozen=True):
    total: int
    period_start: datetime | None  # null, like everything else, beyond the last page
    endpoint: str | None
    status_class: int | None
    requests: int
    took_us: int
    durations: list[int]
    events: int
    stream_minutes: int


class _UsedRow(msgspec.Struct, frozen=True):
    credential_id: UUID
    credential_name: str
    user_account_id: UUID
    external_id: str | None


class _ExportRow(msgspec.Struct, frozen=True):
    period_start: datetime
    endpoint_no: int
    endpoint: str
    status_class: int
    requests: int
    took_us: int
    durations: list[int]
    events: int
    stream_minutes: int


_sql = sql.beside(__file__)
_credential = _sql.values("credential", list[UUID])
_user_credentials = _sql.values("user_credentials", list[UUID])
_parts = _sql.query("parts", _PartRow)
_used_credentials = _sql.query("used_credentials", _UsedRow)
_export = _sql.query("export", _ExportRow)


async def list_credential_usage_breakdown(ask: AdminAsk[CredentialParts, None]) -> Page[UsagePart, TotalPaging]:
    """List the usage of one credential by period, newest first, then by endpoint and status.

    Periods without usage are left out. A request appears within five seconds. Whole hours are counted: the
    first and the last hour of the period are included completely. The default period is the last 30 days.
    """
    return await _listed(ask, _credential, errors.credential_not_found())


async def list_user_usage_breakdown(ask: AdminAsk[UserParts, None]) -> Page[UsagePart, TotalPaging]:
    """List the usage of all credentials of an account by period, newest first, then by endpoint and status.

    Periods without usage are left out. A request appears within five seconds. Whole hours are counted: the
    first and the last hour of the period are included completely. The default period is the last 30 days.
    """
    return await _listed(ask, _user_credentials, errors.user_account_not_found())


async def export_usage(ask: AdminAsk[Export, None]) -> web.Response:
    """Download the usage of every credential by period, endpoint and status, as CSV or as JSON lines.

    Periods without usage are left out. A request appears within five seconds. Whole hours are counted: the
    first and the last hour of the period are included completely. The default period is the last 30 days. The answer is
    a stream; if it ends without its last chunk, it is incomplete.
    """
    question = ask.question
    exported = _exported(ask, *_whole_hours(question))  # NOTE: a refusal can't be sent once the stream has begun
    lines = _csv_lines(exported) if question.format == "csv" else _json_lines(exported)
    media_type = MEDIA_TYPES[question.format != "csv"]
    name = f'attachment; filename="usage.{question.format}"'
    headers = {"Content-Type": f"{media_type};charset=utf-8", "Content-Disposition": name}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(ask.services.downloads.turn(ask.key.id))
        return web.Response(body=SentStream(lines, stack.pop_all()), headers=headers)


async def _listed(
    ask: AdminAsk[CredentialParts, None] | AdminAsk[UserParts, None],
    owned: sql.Query[list[UUID]],
    missing: errors.Refusal,
) -> Page[UsagePart, TotalPaging]:
    page = ask.question
    start, end = _whole_hours(page)
    by_endpoint, by_status = page.group_by.startswith("endpoint"), page.group_by.endswith("status")
    async with ask.snapshot() as db:
        ids = await owned.one(db, page.id, ask.key.id)
        if ids is None:
            raise missing
        rows = await _parts.all(db, ids, start, end, page.granularity, by_endpoint, by_status, page.limit, page.offset)
    parts = [
        UsagePart(row.period_start, row.endpoint, _shown_class(row.status_class), **_figures(row))
        for row in rows
        if row.period_start is not None
    ]
    return Page(data=parts, pagination=TotalPaging(page.limit, page.offset, rows[0].total))


async def _exported(ask: AdminAsk[Export, None], start: datetime, end: datetime) -> AsyncIterator[list[ExportedUsage]]:
    """Every line of an export in parts, by credential and time.

    Each part is a separate read, so a slow client holds no connection and no snapshot.
    """
    last_id = _NO_ID
    while True:
        async with ask.connection(answer_begun=True) as db:
            credentials = await _used_credentials.all(db, ask.key.id, last_id, start, end, _CREDENTIALS_AT_ONCE)
        for credential in credentials:
            async for rows in _exported_of(ask, credential.credential_id, start, end):
                yield [_line(credential, row) for row in rows]
        if len(credentials) < _CREDENTIALS_AT_ONCE:
            return
        last_id = credentials[-1].credential_id


async def _exported_of(
    ask: AdminAsk[Export, None], credential_id: UUID, start: datetime, end: datetime
) -> AsyncIterator[list[_ExportRow]]:
    period, endpoint_no, status_class = _LONG_AGO, 0, 0
    while True:
        async with ask.connection(answer_begun=True) as db:
            rows = await _export.all(
                db,
                credential_id,
                max(start, period),
                end,
                ask.question.granularity,
                period,
                endpoint_no,
                status_class,
                _ROWS_AT_ONCE,
            )
        yield rows
        if len(rows) < _ROWS_AT_ONCE:
            return
        period, endpoint_no, status_class = rows[-1].period_start, rows[-1].endpoint_no, rows[-1].status_class


def _line(credential: _UsedRow, row: _ExportRow) -> ExportedUsage:
    return ExportedUsage(
        credential.user_account_id,
        credential.external_id,
        credential.credential_id,
        credential.credential_name,
        row.period_start,
        row.endpoint,
        f"{row.status_class}xx",
        **_figures(row),
    )


async def _csv_lines(parts: AsyncIterator[list[ExportedUsage]]) -> AsyncIterator[bytes]:
    yield csv_of([ExportedUsage.__struct_fields__])
    async for lines in parts:
        if lines:
            yield csv_of([list(msgspec.to_builtins(line).values()) for line in lines])


async def _json_lines(parts: AsyncIterator[list[ExportedUsage]]) -> AsyncIterator[bytes]:
    encoder = msgspec.json.Encoder()
    async for lines in parts:
        if lines:
            yield encoder.encode_lines(lines)


def csv_of(rows: Sequence[Sequence[object]]) -> bytes:
    """Lines of CSV (RFC 4180). Text that a spreadsheet would take for a formula gets an apostrophe as prefix."""
    text = io.StringIO()
    csv.writer(text).writerows([[_harmless(value) for value in row] for row in rows])
    return text.getvalue().encode()


def _harmless(value: object) -> object:
    return _FORMULA.sub(r"\1'", value) if isinstance(value, str) else value


# NOTE: anywhere in a text, since spreadsheets may split at other characters than commas. Some ignore white space and
# quotes before a formula, or take full-width signs for plain ones.
_FORMULA = re.compile(r"""(^|[,;|\t\r\n])(?=[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20])""")


def _figures(row: _PartRow | _ExportRow) -> _Figures:
    p50_ms, p95_ms, p99_ms = durations.percentiles_ms(row.durations, _PERCENTS)
    return _Figures(
        total_requests=row.requests,
        avg_response_time_ms=round(row.took_us / max(row.requests, 1) / 1000, 3),
        p50_response_time_ms=p50_ms,
        p95_response_time_ms=p95_ms,
        p99_response_time_ms=p99_ms,
        delivered_events=row.events,
        stream_minutes=row.stream_minutes,
    )


def _shown_class(status_class: int | None) -> str | None:
    return None if status_class is None else f"{status_class}xx"


def _whole_hours(period: Period) -> tuple[datetime, datetime]:
    """The start of a period's first hour, and the end of the period."""
    start, end = period.resolved()
    return start.replace(minute=0, second=0, microsecond=0), end
