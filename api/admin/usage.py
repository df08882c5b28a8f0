"""Usage: the requests of a partner's credentials and accounts, with their outcomes and durations."""

import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from api import errors
from api.admin.credentials import CredentialId
from api.admin.period import Period
from api.admin.users import UserId
from api.answers import Answer, Instant, Page, Paging, TotalPaging
from api.ask import AdminAsk
from api.parameters import Integer, Offset
from shared import sql


class UsageQuestion(Period, frozen=True, kw_only=True):
    """A page of a list, for a period."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0


class CredentialPeriod(Period, frozen=True, kw_only=True):
    """A credential and a period."""

    id: CredentialId


class UserPeriod(Period, frozen=True, kw_only=True):
    """An account and a period."""

    id: UserId


class ListedUsage(msgspec.Struct, frozen=True):
    """The requests of one of the caller's credentials."""

    credential_id: UUID
    credential_name: str
    api_key_prefix: str
    user_account_id: UUID
    user_account_name: str
    total_requests: int
    successful_requests: int
    failed_requests: int
    last_used_at: Instant | None


class CredentialUsage(msgspec.Struct, frozen=True):
    """The requests of a credential in a period. Status 2xx and 3xx count as successful, 4xx and 5xx as failed."""

    credential_id: UUID
    credential_name: str
    api_key_prefix: str
    user_account_id: UUID
    user_account_name: str
    total_requests: int
    successful_requests: int
    failed_requests: int
    period_start: Instant
    period_end: Instant


class Day(msgspec.Struct, frozen=True):
    """The requests of one day (UTC)."""

    date: datetime.date
    total_requests: int
    successful_requests: int
    failed_requests: int


class CredentialUsageDetail(msgspec.Struct, frozen=True):
    """The requests of a credential in a period, in total and for each day with requests, newest first."""

    summary: CredentialUsage
    daily: list[Day]


class UserUsage(msgspec.Struct, frozen=True):
    """The requests of an account in a period. `credential_count` does not include revoked and expired credentials."""

    user_account_id: UUID
    user_name: str
    external_id: str | None
    total_requests: int
    successful_requests: int
    failed_requests: int
    avg_response_time_ms: float
    credential_count: int
    period_start: Instant
    period_end: Instant


class _CredentialRow(msgspec.Struct, frozen=True):
    credential_id: UUID
    credential_name: str
    api_key_prefix: str
    user_account_id: UUID
    user_account_name: str
    created_at: datetime.datetime


class _UserRow(msgspec.Struct, frozen=True):
    user_account_id: UUID
    user_name: str
    external_id: str | None
    total_requests: int
    successful_requests: int
    failed_requests: int
    took_us: int
    credential_count: int


_sql = sql.beside(__file__)
_credentials_totals = _sql.query("credentials_totals", ListedUsage)
_credentials_usage = _sql.query("credentials_usage", ListedUsage)
_credential_count = _sql.values("credential_count", int)
_credential = _sql.query("credential", _CredentialRow)
_days = _sql.query("days", Day)
# No row: the account is foreign or missing.
_user_usage = _sql.query("user_usage", _UserRow, which="user_account.id = $4", page="")
# Most requests first, then newest, ties by id.
_users_usage = _sql.query(
    "user_usage",
    _UserRow,
    which="user_account.status = 'active'",
    page="ORDER BY total_requests DESC, user_account.created_at DESC, user_account.id DESC LIMIT $4 OFFSET $5",
)
_active_user_count = _sql.values("active_user_count", int)


async def list_usage_by_credential(ask: AdminAsk[UsageQuestion, None]) -> Page[ListedUsage, TotalPaging]:
    """List the usage of every credential of the caller, most requests first.

    The list includes revoked and unused credentials. Without dates, all requests are counted.
    """
    page = ask.question
    async with ask.snapshot() as db:
        if page.start_date is None and page.end_date is None:
            used = await _credentials_totals.all(db, ask.key.id, page.limit, page.offset)
        else:
            used = await _credentials_usage.all(db, ask.key.id, page.start_date, page.end_date, page.limit, page.offset)
        total = await _credential_count.only(db, ask.key.id)
    return Page(data=used, pagination=TotalPaging(page.limit, page.offset, total))


async def get_credential_usage(ask: AdminAsk[CredentialPeriod, None]) -> Answer[CredentialUsageDetail]:
    """Read the usage of one credential, in total and by day.

    The default period is from the credential's creation to now.
    """
    async with ask.snapshot() as db:
        credential = await _credential.one(db, ask.question.id, ask.key.id)
        if credential is None:
            raise errors.credential_not_found()
        start, end = ask.question.resolved(credential.created_at)
        days = await _days.all(db, credential.credential_id, start, end)
    summary = CredentialUsage(
        credential_id=credential.credential_id,
        credential_name=credential.credential_name,
        api_key_prefix=credential.api_key_prefix,
        user_account_id=credential.user_account_id,
        user_account_name=credential.user_account_name,
        total_requests=sum(day.total_requests for day in days),
        successful_requests=sum(day.successful_requests for day in days),
        failed_requests=sum(day.failed_requests for day in days),
        period_start=start,
        period_end=end,
    )
    return Answer(data=CredentialUsageDetail(summary, days))


async def get_user_usage(ask: AdminAsk[UserPeriod, None]) -> Answer[UserUsage]:
    """Read the usage of one user account. The default period is the last 30 days."""
    start, end = ask.question.resolved()
    async with ask.connection() as db:
        row = await _user_usage.one(db, ask.key.id, start, end, ask.question.id)
    if row is None:
        raise errors.user_account_not_found()
    return Answer(data=_shown(row, start, end))


async def list_usage_by_user(ask: AdminAsk[UsageQuestion, None]) -> Page[UserUsage, Paging]:
    """List the usage of the caller's active accounts, most requests first. The default period is the last 30 days."""
    page = ask.question
    start, end = page.resolved()
    async with ask.snapshot() as db:
        rows = await _users_usage.all(db, ask.key.id, start, end, page.limit, page.offset)
        total = await _active_user_count.only(db, ask.key.id)
    shown = [_shown(row, start, end) for row in rows]
    return Page(data=shown, pagination=Paging(page.limit, page.offset, total, page.offset + len(rows) < total))


def _shown(row: _UserRow, start: datetime.datetime, end: datetime.datetime) -> UserUsage:
    average_ms = row.took_us / row.total_requests / 1000 if row.total_requests else 0.0
    return UserUsage(
        user_account_id=row.user_account_id,
        user_name=row.user_name,
        external_id=row.external_id,
        total_requests=row.total_requests,
        successful_requests=row.successful_requests,
        failed_requests=row.failed_requests,
        avg_response_time_ms=round(average_ms, 3),
        credential_count=row.credential_count,
        period_start=start,
        period_end=end,
    )
