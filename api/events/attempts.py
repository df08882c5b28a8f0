"""What follows from an attempt to send an event to a webhook: its state, and when it is tried again.

Attempts follow the schedule of Standard Webhooks: ten for each event, over 75 h 35 min, with jitter. An endpoint that
answers 410 Gone wants no more events.
"""

import random
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal

import msgspec

State = Literal["active", "paused", "failing", "ended"]
Result = Literal["delivered", "failed", "gone", "not_kept"]
Fault = Literal["unreachable", "timeout", "tls", "invalid_response", "internal", "events_not_kept"]
"""Why an attempt had no answer: in one word, since more would tell a caller about private networks."""

_MINUTE_S, _HOUR_S = 60.0, 3_600.0
PAUSES_S = (
    5.0,
    5 * _MINUTE_S,
    30 * _MINUTE_S,
    2 * _HOUR_S,
    5 * _HOUR_S,
    10 * _HOUR_S,
    14 * _HOUR_S,
    20 * _HOUR_S,
    24 * _HOUR_S,
)
"""The pauses after the first attempt, after the second, and so on, which jitter makes longer or shorter."""

ATTEMPTS = len(PAUSES_S) + 1
"""How often an event is sent, if no attempt succeeds."""

JITTER = 0.1


class Standing(msgspec.Struct, frozen=True):
    """How a webhook stands after an attempt; `failures` are those of the next event, which may be sent in `pause_s`."""

    result: Result
    state: State
    failures: int
    pause_s: float = 0.0


NOT_KEPT = Standing("not_kept", "failing", 0)
"""That of a webhook whose next event is too old to be kept."""


def after(status: int | None, failures: int, uniform: Callable[[float, float], float] = random.uniform) -> Standing:
    """The standing after an answer (None if there was none) to an event that so many attempts have failed to send."""
    if status is not None and 200 <= status < 300:
        return Standing("delivered", "active", 0)
    if status == HTTPStatus.GONE:
        return Standing("gone", "ended", failures + 1)
    failures += 1
    if failures >= ATTEMPTS:
        return Standing("failed", "failing", failures)
    return Standing("failed", "active", failures, PAUSES_S[failures - 1] * uniform(1 - JITTER, 1 + JITTER))
