"""The paths of Blockfrost that are not answered, and why. docs/blockfrost.md lists them."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated

from api.ask import KeyAsk
from api.blockfrost import refusals
from api.blockfrost.shape import ROOT
from api.parameters import Question, Text
from api.route import Route, get, post

_MAX_PART_LENGTH = 200
_Part = Annotated[str, Text(_MAX_PART_LENGTH)]


class Anything(Question, frozen=True, kw_only=True):
    """The variable segments of a path."""

    a: _Part = ""
    b: _Part = ""
    c: _Part = ""


_GOVERNANCE = "governance is not indexed"
_IPFS = "this service has no storage for files"
_NUTLINK = "oracles of Nutlink are not indexed"
_COMMITTEE, _DREP = "/governance/committee", "/governance/dreps/{drep_id}"
_BY_ID, _BY_TX = "/governance/proposals/{gov_action_id}", "/governance/proposals/{tx_hash}/{cert_index}"
_OF_A_PROPOSAL = ("", "/parameters", "/withdrawals", "/votes", "/metadata")

REASONS = {
    "/pools/{pool_id}/votes": _GOVERNANCE,
    **dict.fromkeys((_COMMITTEE, f"{_COMMITTEE}/votes", f"{_COMMITTEE}/{{cc_id}}/votes"), _GOVERNANCE),
    **dict.fromkeys(("/governance/dreps", _DREP), _GOVERNANCE),
    **{f"{_DREP}/{part}": _GOVERNANCE for part in ("delegators", "metadata", "updates", "votes")},
    "/governance/proposals": _GOVERNANCE,
    **{proposal + part: _GOVERNANCE for proposal in (_BY_ID, _BY_TX) for part in _OF_A_PROPOSAL},
    **{f"/nutlink/{{address}}{part}": _NUTLINK for part in ("", "/tickers", "/tickers/{ticker}")},
    "/nutlink/tickers/{ticker}": _NUTLINK,
    "/ipfs/add": _IPFS,
    "/ipfs/gateway/{IPFS_path}": _IPFS,
    "/ipfs/pin/list": _IPFS,
    **{f"/ipfs/pin/{verb}/{{IPFS_path}}": _IPFS for verb in ("add", "list", "remove")},
}
"""Why, by the paths of Blockfrost's document."""

POSTED = frozenset(("/ipfs/add", "/ipfs/pin/add/{IPFS_path}", "/ipfs/pin/remove/{IPFS_path}"))
"""Those that are sent with POST."""


def routes() -> Iterator[Route]:
    """A route for each of these paths, so that the answer gives the reason."""
    for path, reason in REASONS.items():
        yield _refusing(post if path in POSTED else get, path, reason)


def _refusing(word: Callable[..., Route], path: str, reason: str) -> Route:
    async def refuse(ask: KeyAsk[Anything]) -> None:  # noqa: ARG001 - every handler takes the ask
        """Say why this path is not answered."""
        raise refusals.not_answered(reason)

    return word(ROOT + _lettered(path), refuse, "", lambda: refusals.not_answered(reason))


def _lettered(path: str) -> str:
    """A path whose parameters are named a, b and c in turn, as in Anything."""
    letters = iter("abc")
    return re.sub(r"\{\w+\}", lambda _: f"{{{next(letters)}}}", path)
