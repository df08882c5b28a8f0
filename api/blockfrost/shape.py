"""The API key of requests below `/blockfrost/`, and the format of all errors there."""

import base64
import binascii
import re
from collections.abc import Sequence
from http import HTTPStatus

import msgspec
from multidict import MultiMapping

from api import answers, errors
from api.errors import Refusal
from api.keys import tokens
from shared import network
from shared.network import Network

FOLDER = "/blockfrost/"
ROOT = f"{FOLDER}api/v0"

_KEY_HEADER = "project_id"
_PREFIXED = re.compile(rf"((?i:bearer) +)({'|'.join(network.by_name)})(?={tokens.API_KEY_PATTERN} *$)")
KEY_HEADERS = f"Authorization, {_KEY_HEADER}"
_NOT_FOUND = (404, "The requested component has not been found.")
_NO_PATH = (400, "Invalid path. Please check https://docs.blockfrost.io/")
_NO_STAKE_ADDRESS = (400, "Invalid or malformed stake address format.")
_REFUSED: dict[str, tuple[int, str]] = {
    "missing_api_key": (403, "Missing project token. Please include project_id in your request."),
    "invalid_api_key": (403, "Invalid project token."),
    "quota_exceeded": (402, "Usage is over limit."),
    "rate_limit_exceeded": (429, "Usage is over limit."),
    **dict.fromkeys(
        (
            "asset_not_found",
            "block_not_found",
            "datum_not_found",
            "epoch_not_found",
            "metadata_not_found",
            "policy_not_found",
            "pool_not_found",
            "script_not_found",
            "transaction_not_found",
            "never_used",
        ),
        _NOT_FOUND,
    ),
    **dict.fromkeys(("not_found", "method_not_allowed"), _NO_PATH),
    **dict.fromkeys(
        ("invalid_address", "foreign_address"), (400, "Invalid address for this network or malformed address format.")
    ),
    "invalid_stake_address": _NO_STAKE_ADDRESS,
    errors.foreign_stake_address().message: _NO_STAKE_ADDRESS,
    "invalid_asset": (400, "Invalid or malformed asset format."),
    "invalid_pool_id": (400, "Invalid or malformed pool id format."),
    "invalid_policy_id": (400, "Invalid or malformed policy format."),
}
"""The refusals, by code or, if a code means several things, by message, whose status or message differs there."""

_NAMES = {402: "Project Over Limit", 429: "Project Over Limit"}


class Failure(msgspec.Struct, frozen=True):
    """An error as Blockfrost words it."""

    status_code: int
    error: str
    message: str


def covers(raw_path: str) -> bool:
    """Whether a path belongs to the façade."""
    return raw_path.startswith(FOLDER)


def plain_path(raw_path: str) -> str:
    """A path without repeated slashes and the last one, which clients add; other paths than the façade's are left."""
    if not covers(raw_path):
        return raw_path
    path = re.sub("/{2,}", "/", raw_path).rstrip("/")
    return f"{ROOT}/" if path == ROOT else path


def authorization(headers: MultiMapping[str]) -> tuple[Sequence[str], Network | None]:
    """The API key as Authorization headers: `project_id`, a bearer token, or the user name of a URL (RFC 7617).

    Blockfrost's project ids begin with the name of their network. A key may, too; that is the second result.
    """
    sent = _authorization(headers)
    named = next((match for text in sent if (match := _PREFIXED.match(text))), None)
    if named is None:
        return sent, None
    return [_PREFIXED.sub(r"\1", text) for text in sent], network.by_name[named[2]]


def failure(refusal: Refusal) -> tuple[int, bytes]:
    """The status and the body of an error."""
    shown = _REFUSED.get(refusal.message) or _REFUSED.get(refusal.code)
    status, message = shown or (refusal.status, refusal.message)
    return status, answers.encode(Failure(status, _NAMES.get(status) or HTTPStatus(status).phrase, message))


def _authorization(headers: MultiMapping[str]) -> Sequence[str]:
    keys = headers.getall(_KEY_HEADER, None)
    if keys is not None:
        return [f"Bearer {key}" for key in keys]
    return [_bearer_of(text) for text in headers.getall("Authorization", ())]


def _bearer_of(text: str) -> str:
    scheme, _, given = text.partition(" ")
    if scheme.lower() != "basic":
        return text
    try:
        return f"Bearer {base64.b64decode(given, validate=True).decode().partition(':')[0]}"
    except (binascii.Error, UnicodeDecodeError):
        return text
