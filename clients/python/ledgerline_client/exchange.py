"""What both clients share: the requests of operations, their answers, and the rules of retries and pages.

Integers in answers are exact.
"""

import json as jsons
import random
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

import httpx

Key = Literal["api_key", "admin_key", "none"]
Values = Mapping[str, Any]

MAX_TRIES = 6
MAX_PAUSE_S = 65.0
"""A rate limit resets within a minute. A longer pause, until a quota resets, is left to the caller."""

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout)  # any method may be repeated
UNANSWERED = (*NOT_SENT, httpx.NetworkError, httpx.RemoteProtocolError)  # it may have been executed


class Unset(Enum):
    """The default of a body's fields: it is not sent. None is sent as null, which clears a field."""

    UNSET = "unset"


UNSET = Unset.UNSET


class LedgerlineError(Exception):
    """A refusal: its status, its text, its stable code, and the id to quote to the operator.

    `retry_after_s` is the number of seconds to wait before a retry, None if the service does not give one.
    """

    def __init__(self, response: httpx.Response) -> None:
        try:
            message = response.json()["error"]
        except (ValueError, KeyError, TypeError):
            message = response.reason_phrase
        super().__init__(f"{response.status_code} {message}")
        self.status, self.message = response.status_code, str(message)
        self.code = response.headers.get("Error-Code")
        self.request_id = response.headers.get("X-Request-Id")
        self.retry_after_s = _retry_after_s(response)


class Requests:
    """The requests of operations, and the pauses between their retries.

    Each request has the current `api_key` or `admin_key` of the client: set it after a rotation.
    """

    def __init__(self, url: str, *, api_key: str | None, admin_key: str | None) -> None:
        self._url = url.rstrip("/")
        self.api_key, self.admin_key = api_key, admin_key

    def request_of(
        self,
        method: str,
        path: str,
        in_path: Values,
        query: Values,
        body: Values | None,
        key: Key,
        idempotency_key: str | None,
    ) -> dict[str, Any]:
        """The arguments of `httpx.request`. Query parameters that are None and fields that are UNSET are left out."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        if key != "none":
            given = self.api_key if key == "api_key" else self.admin_key
            if given is None:
                raise ValueError(f"this operation needs {key}=..., but the client has none")
            headers["Authorization"] = f"Bearer {given}"
        filled = path.format(**{name: quote(str(value), safe="") for name, value in in_path.items()})
        sent = {name: _text(value) for name, value in query.items() if value is not None}
        request = {"method": method, "url": self._url + filled, "params": sent, "headers": headers}
        if body is not None:
            request["json"] = {name: value for name, value in body.items() if value is not UNSET}
        return request

    @staticmethod
    def pause_s(response: httpx.Response | None, tries: int) -> float:
        """The pause before a retry: the one that the service requests, otherwise twice as long each time."""
        asked_s = None if response is None else _retry_after_s(response)
        return (0.25 * 2**tries if asked_s is None else asked_s) + random.uniform(0, 0.1)


class LineCutter:
    """Splits a download into lines at newlines only: other Unicode line separators may be part of a name."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def cut(self, part: bytes) -> list[str]:
        """The lines that a part completes."""
        *ended, rest = part.split(b"\n")
        if not ended:
            self._begun.append(rest)
            return []
        ended[0] = b"".join([*self._begun, ended[0]])
        self._begun = [rest]
        return [f"{line.decode()}\n" for line in ended]

    def rest(self) -> list[str]:
        """The last line, if it has no line end."""
        line = b"".join(self._begun).decode()
        return [line] if line else []


STREAM = "/v1/subscriptions/{id}/events/stream"
_EVENTS = ("apply", "undo", "reset", "notice")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


class EventReader:
    """Reads the lines of streams of one subscription, and knows from where and when the next one begins."""

    def __init__(self, after: int | None, after_block: str | None) -> None:
        self.place: dict[str, Any] = {"after": after, "after_block": after_block}
        self._pause_s = _FIRST_PAUSE_S
        self._name = self._data = self._number = ""

    def read(self, line: str) -> Any:
        """The event that a line completes, None if it completes none."""
        field, _, value = line.rstrip("\n").partition(": ")
        match field:
            case "event":
                self._name = value
            case "data":
                self._data = value
            case "id":
                self._number = value
            case "":
                return self._completed()
        return None

    def _completed(self) -> Any:
        name, data, number = self._name, self._data, self._number
        self._name = self._data = self._number = ""
        if number:
            self.place = {"after": int(number)}
            self._pause_s = _FIRST_PAUSE_S
        return jsons.loads(data) if name in _EVENTS else None

    def pause_s(self, refused: LedgerlineError | None) -> float:
        """The pause before the next stream: longer after each one that has told nothing.

        Raises the refusal of a stream if the next one would be refused as well.
        """
        if refused is not None and refused.status < 500 and refused.status != 429:
            raise refused
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return random.uniform(pause_s / 2, pause_s)


def new_idempotency_key() -> str:
    """A key with which an operation is executed once, however often its request is sent."""
    return str(uuid4())


def may_repeat(repeatable: bool, response: httpx.Response) -> bool:
    """Whether a retry may help soon and is safe. A refusal with 429 has no effect."""
    if (_retry_after_s(response) or 0) > MAX_PAUSE_S:
        return False
    return response.status_code == 429 or (response.status_code == 503 and repeatable)


def _retry_after_s(response: httpx.Response) -> int | None:
    asked = response.headers.get("Retry-After", "")
    return int(asked) if asked.isdecimal() else None


def answer_of(response: httpx.Response, json: bool) -> Any:
    if response.status_code >= 400:
        raise LedgerlineError(response)
    return jsons.loads(response.content) if json else response.text


def next_place(page: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any] | None:
    """The position of the next page of a list, None after the last one.

    Lists continue at a cursor, if any, at the same cost for any depth. The cursor of histories is a slot.
    """
    pagination = page["pagination"]
    if "next" in pagination:
        return {"after": pagination["next"], "after_block": None} if pagination["hasMore"] else None
    cursor = pagination.get("next_cursor")
    if cursor is not None:
        return {"cursor" if isinstance(cursor, str) else "fromSlot": cursor}
    offset = pagination["offset"] + pagination["limit"]
    more = pagination["hasMore"] if "hasMore" in pagination else offset < pagination["total"]
    return {**place, "offset": offset} if more else None


def _text(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
