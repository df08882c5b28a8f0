"""The subscriptions of a partner's credentials and their webhooks, which only a credential's own key can change."""

from typing import Annotated
from uuid import UUID

from api import errors
from api.admin import audit
from api.admin.credentials import OneCredential
from api.answers import Page, Paging
from api.ask import AdminAsk
from api.events import subscriptions, webhooks
from api.events.subscriptions import Subscription
from api.events.webhooks import SubscriptionWebhook
from api.parameters import Integer, Offset
from shared import sql


class SubscriptionsOfCredential(OneCredential, frozen=True, kw_only=True):
    """A page of the subscriptions of a credential."""

    limit: Annotated[int, Integer(1, 100)] = 20
    offset: Offset = 0


_sql = sql.beside(__file__)
_owned = _sql.values("owned", UUID)


async def list_credential_subscriptions(
    ask: AdminAsk[SubscriptionsOfCredential, None],
) -> Page[Subscription, Paging]:
    """List the subscriptions of a credential, newest first."""
    page = ask.question
    async with ask.commit() as db:
        if await _owned.one(db, page.id, ask.key.id) is None:
            raise errors.credential_not_found()
        data, total = await subscriptions.of_credential(db, page.id, page.limit, page.offset)
        await audit.record(db, ask, "credential.viewed", page.id)
    more = page.offset + len(data) < total
    return Page(data=data, pagination=Paging(page.limit, page.offset, total, more))


async def list_credential_webhooks(
    ask: AdminAsk[SubscriptionsOfCredential, None],
) -> Page[SubscriptionWebhook, Paging]:
    """List the webhooks of a credential's subscriptions, newest subscription first, with their last attempts."""
    page = ask.question
    async with ask.commit() as db:
        if await _owned.one(db, page.id, ask.key.id) is None:
            raise errors.credential_not_found()
        data, total = await webhooks.of_credential(db, page.id, page.limit, page.offset)
        await audit.record(db, ask, "credential.viewed", page.id)
    more = page.offset + len(data) < total
    return Page(data=data, pagination=Paging(page.limit, page.offset, total, more))
