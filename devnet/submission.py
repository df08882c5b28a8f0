"""Answers to `submitTransaction` and `evaluateTransaction`."""

import asyncio
from typing import Any

import msgspec

from devnet.node import Node
from devnet.refusal import Refusal

METHODS = ("submitTransaction", "evaluateTransaction")
_LONGEST_HEX = 2 * 1024**2


class _Cbor(msgspec.Struct):
    cbor: str


class _Params(msgspec.Struct):
    transaction: _Cbor


_params = msgspec.json.Decoder(_Params)


async def answer(node: Node, method: str, params: msgspec.Raw) -> Any:
    """The result of either method. Raises Refusal."""
    # NOTE: in a thread, since the first call imports pycardano.
    tx = await asyncio.to_thread(_read, _params.decode(params).transaction.cbor, node.dialect.version)
    if method == "evaluateTransaction":
        if tx.runs_plutus:
            reason = "this devnet has no Plutus evaluator"
            raise Refusal(3004, "Unable to create the evaluation context from the transaction.", {"reason": reason})
        return []
    node.submit(tx)
    return {"transaction": {"id": tx.id}}


def _read(text: str, version: tuple[int, int]) -> Any:
    from devnet import submitted

    try:
        if len(text) > _LONGEST_HEX:
            raise ValueError
        cbor = bytes.fromhex(text)
    except ValueError:
        raise Refusal(-32602, "Invalid request: failed to decode payload from base16.") from None
    return submitted.read(cbor, version)
