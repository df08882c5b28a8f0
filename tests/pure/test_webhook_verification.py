"""The Python client verifies webhooks as the specification of Standard Webhooks says."""

import base64
import json

import pytest
from ledgerline_client import WebhookError, verify_webhook

# The example of the specification, with its signature.
SECRET, AT_S, BODY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1_614_265_330, b'{"test": 2432232314}'
HEADERS = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": str(AT_S),
    "Webhook-Signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
OTHER = f"whsec_{base64.b64encode(b'o' * 24).decode()}"


def test_the_example_of_the_specification_is_verified() -> None:
    assert verify_webhook(BODY, HEADERS, SECRET, now_s=AT_S + 299) == json.loads(BODY)
    assert verify_webhook(BODY, HEADERS, [OTHER, SECRET], now_s=AT_S)
    several = f"v1a,AAAA v1,{'A' * 43}= {HEADERS['Webhook-Signature']}"
    assert verify_webhook(BODY, {**HEADERS, "Webhook-Signature": several}, SECRET, now_s=AT_S)


@pytest.mark.parametrize(
    ("changed", "body", "secret", "now_s"),
    [
        ({}, BODY + b" ", SECRET, AT_S),
        ({}, BODY, OTHER, AT_S),
        ({}, BODY, SECRET, AT_S + 301),
        ({}, BODY, SECRET, AT_S - 301),
        ({"Webhook-Id": "msg_other"}, BODY, SECRET, AT_S),
        ({"Webhook-Timestamp": str(AT_S + 1)}, BODY, SECRET, AT_S),
        ({"Webhook-Timestamp": "now"}, BODY, SECRET, AT_S),
        ({"Webhook-Signature": "v1,é v2,x"}, BODY, SECRET, AT_S),
        ({"Webhook-Signature": ""}, BODY, SECRET, AT_S),
    ],
)
def test_anything_else_is_refused(changed: dict[str, str], body: bytes, secret: str, now_s: float) -> None:
    with pytest.raises(WebhookError):
        verify_webhook(body, {**HEADERS, **changed}, secret, now_s=now_s)


def test_a_missing_header_is_named() -> None:
    with pytest.raises(WebhookError, match="webhook-signature"):
        verify_webhook(BODY, {"webhook-id": "x", "webhook-timestamp": "1"}, SECRET)
