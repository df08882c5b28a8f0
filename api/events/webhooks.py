"""The webhook of a subscription: where its events are sent to, with which secret, and how that goes."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.answers import Answer, Confirmation, Instant, Issued
from api.ask import EventsAsk
from api.events import signatures, subscriptions
from api.events.attempts import Fault, State
from api.events.subscriptions import OneSubscription
from api.parameters import MAX_SAFE_INTEGER, Body, Integer, Text
from api.sources import egress
from shared import sql
from shared.sql import Connection

MAX_URL = 2_048
FORMER_SECRET_HOURS = 24
"""For how long a secret signs as well after another has replaced it."""

_URL_EXPECTED = (
    f"url must be a public https:// URL of at most {MAX_URL} characters, without user and password, and with one of "
    f"the ports {', '.join(map(str, egress.PORTS))}"
)


class WebhookSettings(Body, frozen=True, kw_only=True):
    """Where events are sent to.

    A new webhook is sent the events after the number `after` or, without it, all that are kept. With `after`, one that
    is there goes on from that number.
    """

    url: Annotated[str, Text(MAX_URL, message=_URL_EXPECTED)]
    after: Annotated[int | None, Integer(0, MAX_SAFE_INTEGER)] = None


class WebhookReplay(Body, frozen=True, kw_only=True):
    """From where on events are sent again: `after` is the number before the first of them."""

    after: Annotated[int, Integer(0, MAX_SAFE_INTEGER)]


class WebhookAttempt(msgspec.Struct, frozen=True):
    """An attempt to send the event with this number; `attempt` counts those of one event.

    Without an answer, `status` is null, and `error` says why.
    """

    number: int
    attempt: int
    tried_at: Instant
    took_ms: int
    status: int | None
    error: Fault | None


class _AttemptRow(WebhookAttempt, frozen=True):
    subscription_no: int


class _Row(msgspec.Struct, frozen=True):
    subscription_no: int
    id: UUID
    url: str
    state: State
    created_at: Instant
    delivered_number: int
    last_number: int
    failures: int
    next_attempt_at: Instant | None
    former_secret_until: Instant | None


class SubscriptionWebhook(msgspec.Struct, frozen=True):
    """A webhook.

    Events up to `delivered_number` are delivered; `last_number` is that of the subscription's last event. `failures` is
    how many attempts to send the next event have failed, `next_attempt_at` when the next attempt follows. `attempts`
    are the last 20, the newest first. `id` is that of the subscription.

    It is `active`, `paused` on request, `failing` after ten failed attempts to send an event, or `ended` because the
    endpoint has answered 410. Only an active one is sent events.
    """

    id: UUID
    url: str
    state: State
    created_at: Instant
    delivered_number: int
    last_number: int
    failures: int
    next_attempt_at: Instant | None
    former_secret_until: Instant | None
    attempts: list[WebhookAttempt]
    secret: str | UnsetType = UNSET


class IssuedWebhookSecret(Issued, frozen=True):
    """A webhook and its new secret, which no later answer shows again."""

    webhook: SubscriptionWebhook
    secret: str


class _Subscription(msgspec.Struct, frozen=True):
    subscription_no: int
    last_number: int


_sql = sql.beside(__file__)
_of_caller = _sql.text("of_caller")
_subscription = _sql.query("subscription", _Subscription)
_one = _sql.query("webhooks", _Row, and_page="AND id = $2")
_page = _sql.query("webhooks", _Row, and_page="ORDER BY subscription_no DESC LIMIT $2 OFFSET $3")
_count = _sql.values("count", int)
_attempts = _sql.query("attempts", _AttemptRow)
_create = _sql.values("create", bool)
_change = _sql.command("change")
_rotate = _sql.command("rotate", of_caller=_of_caller)
_replay = _sql.command("replay", of_caller=_of_caller)
_pause = _sql.command("pause", of_caller=_of_caller)
_resume = _sql.command("resume", of_caller=_of_caller)
_delete = _sql.command("delete", of_caller=_of_caller)
_is_kept = _sql.values("is_kept", bool)


async def set_webhook(ask: EventsAsk[OneSubscription, WebhookSettings]) -> Confirmation[SubscriptionWebhook]:
    """Set the webhook of a subscription, and make it active.

    The answer contains the secret if the webhook is new; no later answer does.
    """
    url, after = ask.body.url, ask.body.after
    try:
        egress.parsed(url, egress.webhook_rules(local=ask.services.settings.webhooks_local))
    except egress.Refused:
        raise errors.invalid_parameter(_URL_EXPECTED) from None
    own = ask.key.credential_id, ask.question.id
    secret = signatures.new_secret()
    async with ask.commit() as db:
        subscription = await _subscription.one(db, *own)
        if subscription is None:
            raise errors.subscription_not_found()
        if after is not None:
            await _check_position(db, subscription, after)
        kept = await subscriptions.before_first_kept(db, subscription.subscription_no)
        begins_after = kept if after is None else after
        created = await _create.one(db, subscription.subscription_no, url, secret, begins_after)
        if created is None:
            await _change.run(db, subscription.subscription_no, url, after)
        webhook = await read(db, *own)
    if created is None:
        return Confirmation(data=webhook, message="Webhook changed")
    shown = msgspec.structs.replace(webhook, secret=signatures.show_secret(secret))
    return Confirmation(data=shown, message="Webhook created")


async def get_webhook(ask: EventsAsk[OneSubscription, None]) -> Answer[SubscriptionWebhook]:
    """Read the webhook of a subscription, and its last attempts."""
    async with ask.reading() as db:
        return Answer(data=await read(db, ask.key.credential_id, ask.question.id))


async def delete_webhook(ask: EventsAsk[OneSubscription, None]) -> Confirmation[SubscriptionWebhook]:
    """Delete the webhook of a subscription. Its log stays."""
    own = ask.key.credential_id, ask.question.id
    async with ask.commit() as db:
        webhook = await read(db, *own)
        await _delete.run(db, *own)
    return Confirmation(data=webhook, message="Webhook deleted")


async def rotate_webhook_secret(ask: EventsAsk[OneSubscription, None]) -> Confirmation[IssuedWebhookSecret]:
    """Replace the secret of a webhook. For 24 hours events are signed with both, so that receivers can change over.

    The answer contains the new secret; no later answer does.
    """
    own, secret = (ask.key.credential_id, ask.question.id), signatures.new_secret()
    async with ask.commit() as db:
        await read(db, *own)
        await _rotate.run(db, *own, secret, FORMER_SECRET_HOURS)
        webhook = await read(db, *own)
    issued = IssuedWebhookSecret(webhook, signatures.show_secret(secret))
    return Confirmation(data=issued, message="Secret replaced")


async def replay_webhook(ask: EventsAsk[OneSubscription, WebhookReplay]) -> Confirmation[SubscriptionWebhook]:
    """Send the events after a number again, each with the id that it had. A failing webhook becomes active.

    A number that is not delivered yet skips the events up to it.
    """
    own, after = (ask.key.credential_id, ask.question.id), ask.body.after
    async with ask.commit() as db:
        subscription = await _subscription.one(db, *own)
        if subscription is None:
            raise errors.subscription_not_found()
        await _refuse_ended(db, own)
        await _check_position(db, subscription, after)
        await _replay.run(db, *own, after)
        webhook = await read(db, *own)
    return Confirmation(data=webhook, message="Events will be sent again")


async def pause_webhook(ask: EventsAsk[OneSubscription, None]) -> Confirmation[SubscriptionWebhook]:
    """Send no more events to a webhook until it is resumed. It is harmless to repeat this."""
    return await _set_state(ask, _pause, "Webhook paused")


async def resume_webhook(ask: EventsAsk[OneSubscription, None]) -> Confirmation[SubscriptionWebhook]:
    """Go on sending events to a webhook that is paused or failing, with the next event, at once."""
    return await _set_state(ask, _resume, "Webhook resumed")


async def read(db: Connection, credential_id: UUID, subscription_id: UUID) -> SubscriptionWebhook:
    """The webhook of a credential's subscription. Raises Refusal."""
    row = await _one.one(db, credential_id, subscription_id)
    if row is None:
        if await _subscription.one(db, credential_id, subscription_id) is None:
            raise errors.subscription_not_found()
        raise errors.webhook_not_found()
    return (await _shown(db, [row]))[0]


async def of_credential(
    db: Connection, credential_id: UUID, limit: int, offset: int
) -> tuple[list[SubscriptionWebhook], int]:
    """A page of the webhooks of a credential, those of the newest subscriptions first, and their number."""
    rows = await _page.all(db, credential_id, limit, offset)
    return await _shown(db, rows), await _count.only(db, credential_id)


async def _shown(db: Connection, rows: Sequence[_Row]) -> list[SubscriptionWebhook]:
    attempts: dict[int, list[WebhookAttempt]] = {row.subscription_no: [] for row in rows}
    for each in await _attempts.all(db, list(attempts)):
        attempt = WebhookAttempt(each.number, each.attempt, each.tried_at, each.took_ms, each.status, each.error)
        attempts[each.subscription_no].append(attempt)
    return [
        SubscriptionWebhook(
            id=row.id,
            url=row.url,
            state=row.state,
            created_at=row.created_at,
            delivered_number=row.delivered_number,
            last_number=row.last_number,
            failures=row.failures,
            next_attempt_at=row.next_attempt_at,
            former_secret_until=row.former_secret_until,
            attempts=attempts[row.subscription_no],
        )
        for row in rows
    ]


async def _set_state(
    ask: EventsAsk[OneSubscription, None], change: sql.Command, message: str
) -> Confirmation[SubscriptionWebhook]:
    own = ask.key.credential_id, ask.question.id
    async with ask.commit() as db:
        await _refuse_ended(db, own)
        await change.run(db, *own)
        webhook = await read(db, *own)
    return Confirmation(data=webhook, message=message)


async def _refuse_ended(db: Connection, own: tuple[UUID, UUID]) -> None:
    webhook = await read(db, *own)
    if webhook.state == "ended":
        raise errors.webhook_ended()


async def _check_position(db: Connection, subscription: _Subscription, after: int) -> None:
    """Raise Refusal unless the event after this number is kept, or the next one."""
    if after > subscription.last_number:
        raise errors.invalid_parameter(
            f"after must be at most {subscription.last_number}, the number of the last event"
        )
    if not await _is_kept.only(db, subscription.subscription_no, after):
        first = await subscriptions.before_first_kept(db, subscription.subscription_no) + 1
        raise errors.events_not_kept(first)
