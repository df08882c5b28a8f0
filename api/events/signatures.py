"""Messages of webhooks, as the specification of Standard Webhooks has them: id, time and signature in headers.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from standardwebhooks import Webhook

from shared.version import VERSION

SECRET_BYTES = 32


def new_secret() -> bytes:
    """A random secret."""
    return secrets.token_bytes(SECRET_BYTES)


def show_secret(secret: bytes) -> str:
    """A secret as receivers are given it."""
    return f"whsec_{base64.b64encode(secret).decode()}"


def message_id(subscription_id: UUID, number: int) -> str:
    """The id of an event, the same in each attempt."""
    return f"evt_{subscription_id}_{number}"


def headers(name: str, at: datetime, body: str, with_secrets: Iterable[bytes]) -> dict[str, str]:
    """The headers of a message with the id `name`, signed with each secret."""
    # NOTE: the library takes any time for UTC, whatever its zone.
    at = at.astimezone(UTC)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"Ledgerline/{VERSION}",
        "webhook-id": name,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(Webhook(secret).sign(name, at, body) for secret in with_secrets),
    }
