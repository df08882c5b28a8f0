"""What this service sends to webhooks, as the section `webhooks` of /openapi.json describes it."""

from typing import Any

Json = dict[str, Any]

_HEADERS = {
    "webhook-id": ("string", "Id of the event, `evt_<subscription>_<number>`: the same in each attempt to send it."),
    "webhook-timestamp": ("integer", "When this attempt was made, in seconds since 1970."),
    "webhook-signature": (
        "string",
        "`v1,` and the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` in base64; two, with a space between "
        "them, for 24 hours after the secret was replaced. The key is what follows `whsec_` in the secret, decoded.",
    ),
}


def section(event: Json, example: Json) -> Json:
    """The section; `event` is the schema of an event."""
    operation = {
        "tags": ["Events"],
        "operationId": "receive_event",
        "summary": "An event of a subscription, sent to its webhook",
        "description": "Messages follow the specification of Standard Webhooks (https://www.standardwebhooks.com). The "
        "next event is sent when this one is answered with 2xx, within 15 seconds; redirects are not followed. "
        "Otherwise it is sent again, ten times in all, over 75 h 35 min.",
        "security": [],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": kind}}
            for name, (kind, text) in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": event, "example": example}}},
        "responses": {
            "2XX": {"description": "The event is delivered. The body is ignored."},
            "410": {"description": "The endpoint wants no more events: the webhook ends."},
            "default": {"description": "The event is sent again later."},
        },
    }
    return {"event": {"post": operation}}
