"""Verification of webhooks, by the specification of Standard Webhooks: docs/http-api.md has what they contain."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

TOLERANCE_S = 300
_PREFIX, _VERSION = "whsec_", "v1,"


class WebhookError(Exception):
    """A request that is not a webhook of the service, or an old one that somebody sends again. Answer it with 400."""


def verify_webhook(
    body: bytes, headers: Mapping[str, str], secrets: str | Iterable[str], *, now_s: float | None = None
) -> Any:
    """The content of a webhook, if it was signed with one of the secrets in the last five minutes.

    `body` is the request's as received, `headers` are its headers. While a secret is rotated, both are valid. Raises
    WebhookError. A webhook may arrive more than once: its `webhook-id` tells.
    """
    sent = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp, signatures = (sent[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as missing:
        raise WebhookError(f"the header {missing} is missing") from None
    if not (timestamp.isascii() and timestamp.isdecimal()):
        raise WebhookError("webhook-timestamp is not a number of seconds")
    if abs((time.time() if now_s is None else now_s) - int(timestamp)) > TOLERANCE_S:
        raise WebhookError("webhook-timestamp is more than five minutes from now")
    signed = f"{message_id}.{timestamp}.".encode() + body
    candidates = [each.removeprefix(_VERSION) for each in signatures.split() if each.startswith(_VERSION)]
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        expected = base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256))
        if any(hmac.compare_digest(expected, text.encode()) for text in candidates):
            return json.loads(body)
    raise WebhookError("no signature is of one of the secrets")


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error as cause:
        raise ValueError("a secret of webhooks is whsec_ and base64") from cause
