"""What a node answers besides its blocks: about the network at its tip, and about the ledger at an acquired point."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from devnet import parameters
from devnet.blocks import Chain, Point
from devnet.networks import BYRON_EPOCH_SLOTS, Network
from devnet.refusal import Refusal

if TYPE_CHECKING:
    from devnet.server import Server
    from devnet.session import Session

Json = dict[str, Any]


class Ledgers:
    """Ledger states along a chain, made when somebody asks."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain


class Question(msgspec.Struct):
    """A query with all that its answer may depend on."""

    node: "Server"
    session: "Session"
    params: Json

    @property
    def network(self) -> Network:
        return self.node.chain.network

    @property
    def version(self) -> tuple[int, int]:
        return self.node.dialect.version


def answer(node: "Server", session: "Session", method: str, params: msgspec.Raw) -> Any:
    if method not in ANSWERS:
        raise Refusal(-32601, "Invalid request: unknown method in 'method' (beware names are case-sensitive).")
    return ANSWERS[method](Question(node, session, msgspec.json.decode(params)))


def health(node: "Server") -> Json:
    """What `/health` says; a devnet is always in step with its own tip."""
    tip = node.tip
    last_tip: Any = "origin" if tip is None else {"slot": tip.slot, "id": tip.id, "height": tip.height}
    return {
        "startTime": _text(node.chain.network.start_time),
        "lastKnownTip": last_tip,
        "lastTipUpdate": None if tip is None else _text(node.chain.network.time_of(tip.slot)),
        "networkSynchronization": 1.0,
        "currentEra": None if tip is None else tip.era,
        "currentEpoch": None if tip is None else node.chain.network.epoch_of(tip.slot),
        "metrics": {"activeConnections": node.connections},
        "connectionStatus": "connected",
        "network": node.chain.network.name,
        "version": "v{}.{}.0".format(*node.dialect.version),
    }


def _text(moment: Any) -> str:
    return str(moment.isoformat().replace("+00:00", "Z"))


def _start_time(question: Question) -> str:
    return _text(question.network.start_time)


def _network_tip(question: Question) -> Any:
    tip = question.node.tip
    return "origin" if tip is None else {"slot": tip.slot, "id": tip.id}


def _block_height(question: Question) -> Any:
    tip = question.node.tip
    return "origin" if tip is None else tip.height


def _genesis_configuration(question: Question) -> Json:
    era = question.params.get("era")
    found = parameters.genesis_configuration(
        str(era), question.network, question.node.chain.genesis, question.version
    )
    if found is None:
        raise Refusal(-32602, f"Invalid request: unknown era {era!r}.")
    return found


ANSWERS: dict[str, Callable[[Question], Any]] = {
    "queryNetwork/startTime": _start_time,
    "queryNetwork/tip": _network_tip,
    "queryNetwork/blockHeight": _block_height,
    "queryNetwork/genesisConfiguration": _genesis_configuration,
}
