"""The paths of Blockfrost that are not answered, and why. docs/blockfrost.md lists them."""

from collections.abc import Iterator
from typing import Annotated

from api.ask import KeyAsk
from api.blockfrost import refusals
from api.blockfrost.shape import ROOT
from api.parameters import Question, Text
from api.route import Route, get

_MAX_PART_LENGTH = 200
_Part = Annotated[str, Text(_MAX_PART_LENGTH)]


class Anything(Question, frozen=True, kw_only=True):
    """The variable segments of a path."""

    a: _Part = ""
    b: _Part = ""
    c: _Part = ""


_CBOR = "only the CBOR of transactions submitted here is kept: see /txs/{hash}/cbor"
_WITNESSES = "redeemers and required signers are not kept"
_REWARDS = "rewards and stake of past epochs are not kept for each account"
_SUMS = "totals received and sent are not kept"
_ALL = "the index keeps no such list"
_GOVERNANCE = "governance is not indexed"
_MEMPOOL = "the mempool of the node is not shown"
_EPOCH = "epochs have no list of their blocks or stakes"

REASONS = {
    "/network/eras": "era summaries are not kept",
    "/blocks/slot/{a}": "blocks are found by hash or number",
    "/blocks/epoch/{a}/slot/{b}": "blocks are found by hash or number",
    "/blocks/{a}/addresses": "blocks have no list of their addresses",
    "/blocks/{a}/txs/cbor": _CBOR,
    "/epochs/{a}/next": _EPOCH,
    "/epochs/{a}/previous": _EPOCH,
    "/epochs/{a}/blocks": _EPOCH,
    "/epochs/{a}/blocks/{b}": _EPOCH,
    "/epochs/{a}/stakes": _EPOCH,
    "/epochs/{a}/stakes/{b}": _EPOCH,
    "/txs/{a}/mirs": "certificates that move instantaneous rewards are not kept",
    "/txs/{a}/redeemers": _WITNESSES,
    "/txs/{a}/required_signers": _WITNESSES,
    "/addresses/{a}/extended": "it would require the metadata of every asset: see /assets/{asset}",
    "/addresses/{a}/total": _SUMS,
    "/accounts/{a}/rewards": _REWARDS,
    "/accounts/{a}/history": _REWARDS,
    "/accounts/{a}/registrations": "registrations are not listed separately: see /txs/{hash}/stakes",
    "/accounts/{a}/mirs": "certificates that move instantaneous rewards are not kept",
    "/accounts/{a}/addresses/total": _SUMS,
    "/accounts/{a}/transactions": "the list of an account does not name addresses: see GET /v1/accounts",
    "/assets": _ALL,
    "/assets/{a}/utxos": "outputs are listed by address: see /addresses/{address}/utxos/{asset}",
    "/pools/retired": _ALL,
    "/pools/retiring": _ALL,
    "/pools/{a}/history": "rewards and stake of past epochs are not kept for each pool",
    "/pools/{a}/blocks": "pools have no list of their blocks",
    "/pools/{a}/updates": "pools have no list of their certificates",
    "/pools/{a}/votes": _GOVERNANCE,
    "/scripts": _ALL,
    "/scripts/{a}/redeemers": _WITNESSES,
    "/scripts/{a}/utxos": "outputs are listed by address: see /addresses/{address}/utxos",
    "/metadata/txs/labels": "metadata is not indexed by label",
    "/metadata/txs/labels/{a}": "metadata is not indexed by label",
    "/metadata/txs/labels/{a}/cbor": "metadata is not indexed by label",
    "/mempool": _MEMPOOL,
    "/mempool/{a}": _MEMPOOL,
    "/mempool/addresses/{a}": _MEMPOOL,
    "/governance/dreps": _GOVERNANCE,
    "/governance/dreps/{a}": _GOVERNANCE,
    "/governance/dreps/{a}/{b}": _GOVERNANCE,
    "/governance/proposals": _GOVERNANCE,
    "/governance/proposals/{a}": _GOVERNANCE,
    "/governance/proposals/{a}/{b}": _GOVERNANCE,
    "/governance/proposals/{a}/{b}/{c}": _GOVERNANCE,
    "/governance/committee": _GOVERNANCE,
    "/governance/committee/{a}": _GOVERNANCE,
    "/governance/committee/{a}/{b}": _GOVERNANCE,
    "/metrics": "see GET /v1/key for a key's own use",
    "/metrics/endpoints": "see GET /v1/key for a key's own use",
    "/utils/addresses/xpub/{a}/{b}/{c}": "derive addresses in the wallet",
}


def routes() -> Iterator[Route]:
    """A route for each of these paths, so that the answer gives the reason."""
    for path, reason in REASONS.items():
        yield _refusing(path, reason)


def _refusing(path: str, reason: str) -> Route:
    async def refuse(ask: KeyAsk[Anything]) -> None:  # noqa: ARG001 - every handler takes the ask
        """Say why this path is not answered."""
        raise refusals.not_answered(reason)

    return get(ROOT + path, refuse, "", lambda: refusals.not_answered(reason))
