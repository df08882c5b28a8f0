#!/usr/bin/env bash
# standardwebhooks 1.1.0 for Python signs another instant than the one that it is given, unless that one is in UTC.
#
# Expected: a `datetime` with an offset is an instant. 12:00+02:00 and 10:00+00:00 compare equal, so the signature for one is the
# signature for the other. The specification signs `id.timestamp.payload`, the timestamp in seconds since 1970, which is also the
# header `webhook-timestamp`.
# Seen: `Webhook.sign` replaces the offset by UTC and keeps the hours. So it signs for 12:00 UTC, two hours later, and receivers
# refuse the message, whose header has the right seconds: they say that no signature matches, nothing about the time. svix 2.9.1 has
# the same method and does the same, so signing with one and verifying with the other does not show it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install standardwebhooks==1.1.0 svix==2.9.1

cat >"$folder/sign.py" <<'PYTHON'
import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta, timezone

import standardwebhooks
import svix

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
BODY = '{"number":1}'
utc = datetime.now(UTC).replace(microsecond=0)
local = utc.astimezone(timezone(timedelta(hours=2)))
assert local == utc and local.timestamp() == utc.timestamp()


def by_specification(seconds: int) -> str:
    signed = hmac.digest(KEY, f"evt_1.{seconds}.{BODY}".encode(), hashlib.sha256)
    return f"v1,{base64.b64encode(signed).decode()}"


for package in (standardwebhooks, svix):
    webhook = package.Webhook(SECRET)
    shifts = [
        hours
        for hours in (0, 2)
        if webhook.sign("evt_1", local, BODY) == by_specification(int(utc.timestamp()) + hours * 3600)
    ]
    in_utc = webhook.sign("evt_1", utc, BODY) == by_specification(int(utc.timestamp()))
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(local.timestamp())),
        "webhook-signature": webhook.sign("evt_1", local, BODY),
    }
    try:
        webhook.verify(BODY, headers)
        said = "accepted"
    except package.webhooks.WebhookVerificationError as refusal:
        said = f"refused: {refusal}"
    print(f"{package.__name__}: UTC {'right' if in_utc else 'wrong'}, +02:00 late by {shifts} hours, {said}")
PYTHON

"$folder/venv/bin/python" "$folder/sign.py" | tee "$folder/said"
# What was seen:
#   standardwebhooks: UTC right, +02:00 late by [2] hours, refused: No matching signature found
#   svix: UTC right, +02:00 late by [2] hours, refused: No matching signature found
if [ "$(grep --count "UTC right, +02:00 late by \[2\] hours, refused: No matching signature" "$folder/said")" != 2 ]; then
    echo "changed: the instant is signed, or UTC is wrong as well"
    exit 1
fi
