"""Answers to queries of the network (at the node's tip) and of the ledger state (at the acquired point or the tip)."""

from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any

import msgspec

from devnet import addresses, parameters, provenance
from devnet.addresses import LedgerCredential
from devnet.ledger import Ledger
from devnet.networks import BYRON_EPOCH_SLOTS, BYRON_SLOT_S, Network
from devnet.node import Node
from devnet.refusal import Refusal
from devnet.votes import StakeAccount, whom

Json = dict[str, Any]

_ERAS = tuple(parameters.PROTOCOL_MAJOR)


class _Id(msgspec.Struct):
    id: str


class _OutputReference(msgspec.Struct):
    transaction: _Id
    index: int


class Params(msgspec.Struct, rename="camel"):
    """The parameters of all queries."""

    era: str | None = None
    keys: list[str] = []
    scripts: list[str] = []
    include_stake: bool = False
    stake_pools: list[_Id] | None = None
    proposals: list[Json] | None = None
    output_references: list[_OutputReference] | None = None
    addresses: list[str] | None = None
    point: Json | str | None = None


_params = msgspec.json.Decoder(Params)


class LedgerQuery:
    """A query's parameters, the node, and the index of the block whose ledger state is queried."""

    def __init__(self, node: Node, params: Params, index: int) -> None:
        self.node, self.params, self.index = node, params, index

    @property
    def network(self) -> Network:
        return self.node.chain.network

    @property
    def version(self) -> tuple[int, int]:
        return self.node.dialect.version

    @property
    def ledger(self) -> Ledger:
        return self.node.ledger_after(self.index)

    @property
    def era(self) -> str:
        return self.node.blocks[self.index].era if self.index >= 0 else self.node.chain.eras[0][0]

    @property
    def epoch(self) -> int:
        return self.network.epoch_of(self.node.blocks[self.index].slot) if self.index >= 0 else 0


def answer(node: Node, acquired: Any, method: str, params: msgspec.Raw) -> Any:
    """The result of a query by a client that acquired that point, or None. Raises Refusal and msgspec.DecodeError."""
    query = LedgerQuery(node, _params.decode(params), len(node.blocks) - 1)
    if method in NETWORK:
        return NETWORK[method](query)
    first, end = _VERSIONS.get(method, ((6, 0), (99, 0)))
    if method not in LEDGER or not first <= query.version < end:
        raise Refusal(-32601, "Invalid request: unknown method in 'method' (beware names are case-sensitive).")
    if acquired is not None:
        index = node.index_of(acquired)
        if index is None:
            raise Refusal(2003, "Acquired ledger state is not available anymore.", "Point too old.")
        query.index = index
    if query.era == "byron" and method not in _KNOWN_IN_BYRON:
        raise Refusal(2002, "This query isn't available in the current era.")
    return LEDGER[method](query)


def acquirable(node: Node, params: msgspec.Raw) -> Any:
    """The point that `acquireLedgerState` names. Raises Refusal if it is not on the chain, and msgspec.DecodeError."""
    point = _params.decode(params).point
    if node.index_of(point) is None:
        raise Refusal(2000, "Failed to acquire requested point.", "Unknown point.")
    return point


def health(node: Node) -> Json:
    """The content of `/health`. The node is always synchronised with itself."""
    tip = node.tip
    return {
        "startTime": _text(node.chain.network.start_time),
        "lastKnownTip": "origin" if tip is None else {"slot": tip.slot, "id": tip.id, "height": tip.height},
        "lastTipUpdate": None if tip is None else _text(node.chain.network.time_of(tip.slot)),
        "networkSynchronization": 1.0,
        "currentEra": None if tip is None else tip.era,
        "currentEpoch": None if tip is None else node.chain.network.epoch_of(tip.slot),
        "metrics": {"activeConnections": node.connections},
        "connectionStatus": "connected",
        "network": node.chain.network.name,
        "version": "v{}.{}.0".format(*node.dialect.version),
    }


def _start_time(query: LedgerQuery) -> str:
    return _text(query.network.start_time)


def _block_height(query: LedgerQuery) -> Any:
    return query.node.blocks[-1].height if query.node.blocks else "origin"


def _tip(query: LedgerQuery) -> Any:
    return msgspec.Raw(query.node.point_json(query.index))


def _genesis_configuration(query: LedgerQuery) -> Json:
    era = query.params.era or ""
    if era == "shelley" and query.node.syncing and query.era == "byron":
        raise Refusal(2002, "This query isn't available in the current era.")
    genesis = query.node.chain.genesis
    configuration = parameters.genesis_configuration(era, query.network, genesis, query.version)
    if configuration is None:
        raise Refusal(-32602, f"Invalid request: no genesis of era {era!r}.")
    return configuration


def _epoch(query: LedgerQuery) -> int:
    return query.epoch


def _era_start(query: LedgerQuery) -> Json:
    return _bound(query.network, dict(query.node.chain.eras)[query.era])


def _era_summaries(query: LedgerQuery) -> list[Json]:
    """Every era up to the current one, including those without a block; the current one has no end."""
    network, known = query.network, list(query.node.chain.eras)
    skipped = [(name, known[0][1]) for name in _ERAS[: _ERAS.index(known[0][0])]]
    eras = [(name, first) for name, first in [*skipped, *known] if _ERAS.index(name) <= _ERAS.index(query.era)]
    summaries = []
    for place, (name, first) in enumerate(eras):
        summary: Json = {"start": _bound(network, first), "parameters": _era_parameters(network, name)}
        if place + 1 < len(eras):
            summary["end"] = _bound(network, eras[place + 1][1])
        summaries.append(summary)
    return summaries


def _protocol_parameters(query: LedgerQuery) -> Json:
    chain = query.node.chain
    begun = [major for major, first in parameters.versions(chain.eras, chain.forks) if first <= query.epoch]
    return parameters.protocol_parameters(query.era, query.version, max(begun, default=None))


def _reward_account_summaries(query: LedgerQuery) -> Any:
    """A list since 6.13, before that an object by credential; `stakePool` was called `delegate` before 6.12."""
    ledger = query.ledger
    accounts = {who: ledger.accounts[who] for who in _asked_credentials(query) if who in ledger.accounts}
    if query.version >= (6, 13):
        return [
            {"from": who.origin, "credential": who.hash, **_summary(account, "stakePool")}
            for who, account in accounts.items()
        ]
    pool_field = "stakePool" if query.version >= (6, 12) else "delegate"
    return {who.hash: _summary(account, pool_field) for who, account in accounts.items()}


def _asked_credentials(query: LedgerQuery) -> list[LedgerCredential]:
    """The credentials in the parameters, without duplicates."""
    asked = [
        *(_credential("verificationKey", text) for text in query.params.keys),
        *(_credential("script", text) for text in query.params.scripts),
    ]
    return list(dict.fromkeys(asked))


def _delegate_representatives(query: LedgerQuery) -> list[Json]:
    """The predefined representatives and those that are registered, or those of them that are named.

    Their power is that at the beginning of the epoch. Delegators are the accounts that delegate to them or, if there
    are none, their set, which until protocol 10 may have accounts that have moved on.
    """
    if _ERAS.index(query.era) < _ERAS.index("conway"):
        raise Refusal(2002, "This query isn't available in the current era.")
    ledger = query.ledger
    asked = _asked_credentials(query)
    delegators: dict[str | LedgerCredential, list[LedgerCredential]] = {}
    for credential, account in ledger.accounts.items():
        if account.representative is not None:
            delegators.setdefault(whom(account.representative), []).append(credential)
    summaries: list[Json] = [
        {"type": kind, "stake": parameters.ada(ledger.voting_power[kind])}
        | {"delegators": _delegators(delegators.get(kind, []))}
        for kind in ("abstain", "noConfidence")
    ]
    for who, known in ledger.representatives.items():
        if asked and who not in asked:
            continue
        summary: Json = {"type": "registered", "from": who.origin, "id": who.hash}
        summary["mandate"] = {"epoch": ledger.actual_expiry(who)}
        summary["deposit"] = parameters.ada(known.deposit)
        summary["stake"] = parameters.ada(ledger.voting_power[who])
        if known.anchor is not None:
            summary["metadata"] = known.anchor
        summaries.append(summary | {"delegators": _delegators(delegators.get(who) or sorted(known.delegators))})
    return summaries


def _delegators(accounts: list[LedgerCredential]) -> list[Json]:
    return [{"from": who.origin, "credential": who.hash} for who in accounts]


def _stake_pools(query: LedgerQuery) -> Json:
    """All pools, or those requested, by id; on request with their voting stake, which needs Conway.

    A pool that has just been reaped still votes: versions since 6.13 list it, with its id alone.
    """
    ledger = query.ledger
    include_stake = query.params.include_stake
    if include_stake:
        _since_conway(query)
    asked = query.params.stake_pools
    known: dict[str, Json] = {id_: dict(pool.parameters) for id_, pool in ledger.pools.items()}
    if include_stake:
        if query.version >= (6, 13):
            known = {id_: {"id": id_} for id_ in ledger.voting_stakes} | known
        for id_, pool in known.items():
            pool["stake"] = parameters.ada(ledger.voting_stakes.get(id_, 0))
    return known if asked is None else {pool.id: known[pool.id] for pool in asked if pool.id in known}


def _live_stake_distribution(query: LedgerQuery) -> Json:
    """Live stake as a fraction of all lovelace in circulation; pools without stake are omitted."""
    ledger = query.ledger
    circulating = parameters.MAX_SUPPLY - ledger.reserves
    return {
        id_: {
            "stake": "{}/{}".format(*Fraction(stake, circulating).as_integer_ratio()),
            "vrf": ledger.pools[id_].parameters["vrfVerificationKeyHash"],
        }
        for id_, stake in ledger.live_stakes().items()
        if stake
    }


def _governance_proposals(query: LedgerQuery) -> list[Json]:
    """The proposals under vote in this epoch: those that existed when it began. Votes are omitted."""
    _since_conway(query)
    asked = query.params.proposals
    return [
        {
            "proposal": {"transaction": {"id": transaction}, "index": index},
            **proposal.content,
            "since": {"epoch": proposal.first_epoch},
            "until": {"epoch": proposal.last_epoch},
            "votes": [],
        }
        for (transaction, index), proposal in query.ledger.voted_on.items()
        if asked is None or {"transaction": {"id": transaction}, "index": index} in asked
    ]


def _constitution(query: LedgerQuery) -> Json:
    """That of the genesis: this chain enacts no proposal."""
    _since_conway(query)
    return parameters.CONSTITUTION


def _constitutional_committee(query: LedgerQuery) -> Json:
    """The genesis has no members, so that the ledger recognises none of those that have declared something."""
    _since_conway(query)
    return {
        "members": [
            {"id": who.hash, "from": who.origin, "status": "unrecognized", "delegate": delegate}
            for who, delegate in query.ledger.committee.items()
        ],
        "quorum": parameters.COMMITTEE_QUORUM,
    }


def _proposed_protocol_parameters(_query: LedgerQuery) -> list[Json]:
    """Updates by genesis keys, which this chain has none of."""
    return []


def _rewards_provenance(query: LedgerQuery) -> Json:
    return provenance.rewards(query.ledger) if query.version >= (6, 13) else provenance.performances(query.ledger)


def _stake_pools_performances(query: LedgerQuery) -> Json:
    return provenance.performances(query.ledger)


def _since_conway(query: LedgerQuery) -> None:
    if _ERAS.index(query.era) < _ERAS.index("conway"):
        raise Refusal(2002, "This query isn't available in the current era.")


def _utxo(query: LedgerQuery) -> list[Json]:
    """Unspent outputs: those named, those at the addresses named, or all."""
    ledger, params = query.ledger, query.params
    if params.output_references is not None:
        named = [(reference.transaction.id, reference.index) for reference in params.output_references]
        references = [reference for reference in dict.fromkeys(named) if reference in ledger.unspent]
    elif params.addresses is not None:
        references = [
            reference for address in dict.fromkeys(params.addresses) for reference in ledger.wallets.get(address, ())
        ]
    else:
        references = list(ledger.unspent)
    output = query.node.dialect.output
    return [
        {"transaction": {"id": id_}, "index": index, **output(ledger.unspent[id_, index])} for id_, index in references
    ]


def _treasury_and_reserves(query: LedgerQuery) -> Json:
    ledger = query.ledger
    return {"treasury": parameters.ada(ledger.treasury), "reserves": parameters.ada(ledger.reserves)}


def _nonces(query: LedgerQuery) -> Json:
    """Made-up nonces: that of an epoch follows from its number, the others from the block."""
    evolving = addresses.blake2b_256(f"nonce after {query.index}".encode())
    return {
        "epochNonce": addresses.blake2b_256(f"nonce of {query.epoch}".encode()),
        "candidateNonce": evolving,
        "evolvingNonce": evolving,
        "lastEpochLastAncestor": "neutral",
    }


NETWORK: dict[str, Callable[[LedgerQuery], Any]] = {
    "queryNetwork/startTime": _start_time,
    "queryNetwork/tip": _tip,
    "queryNetwork/blockHeight": _block_height,
    "queryNetwork/genesisConfiguration": _genesis_configuration,
}
LEDGER: dict[str, Callable[[LedgerQuery], Any]] = {
    "queryLedgerState/tip": _tip,
    "queryLedgerState/epoch": _epoch,
    "queryLedgerState/eraStart": _era_start,
    "queryLedgerState/eraSummaries": _era_summaries,
    "queryLedgerState/protocolParameters": _protocol_parameters,
    "queryLedgerState/rewardAccountSummaries": _reward_account_summaries,
    "queryLedgerState/delegateRepresentatives": _delegate_representatives,
    "queryLedgerState/stakePools": _stake_pools,
    "queryLedgerState/liveStakeDistribution": _live_stake_distribution,
    "queryLedgerState/governanceProposals": _governance_proposals,
    "queryLedgerState/treasuryAndReserves": _treasury_and_reserves,
    "queryLedgerState/nonces": _nonces,
    "queryLedgerState/utxo": _utxo,
    "queryLedgerState/constitution": _constitution,
    "queryLedgerState/constitutionalCommittee": _constitutional_committee,
    "queryLedgerState/proposedProtocolParameters": _proposed_protocol_parameters,
    "queryLedgerState/rewardsProvenance": _rewards_provenance,
    "queryLedgerState/stakePoolsPerformances": _stake_pools_performances,
}
# The versions that have a query, if not all do: the first, and the first that no longer does.
_VERSIONS = {
    "queryLedgerState/proposedProtocolParameters": ((6, 0), (6, 14)),
    "queryLedgerState/stakePoolsPerformances": ((6, 13), (99, 0)),
}
_KNOWN_IN_BYRON = {f"queryLedgerState/{name}" for name in ("tip", "epoch", "eraStart", "eraSummaries")}


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _bound(network: Network, epoch: int) -> Json:
    slot = network.epoch_start(epoch)
    return {"time": {"seconds": network.seconds_at(slot)}, "slot": slot, "epoch": epoch}


def _era_parameters(network: Network, era: str) -> Json:
    if era == "byron":
        length, slot_ms, safe_zone = BYRON_EPOCH_SLOTS, BYRON_SLOT_S * 1_000, 2 * parameters.SECURITY_PARAMETER
    else:
        length, slot_ms, safe_zone = network.epoch_slots, 1_000, 60 * parameters.SECURITY_PARAMETER
    return {"epochLength": length, "slotLength": {"milliseconds": slot_ms}, "safeZone": safe_zone}


def _summary(account: StakeAccount, pool_field: str) -> Json:
    summary: Json = {"rewards": parameters.ada(account.rewards), "deposit": parameters.ada(account.deposit)}
    if account.pool is not None:
        summary[pool_field] = {"id": account.pool}
    if account.representative is not None:
        summary["delegateRepresentative"] = account.representative
    return summary


def _credential(origin: str, text: str) -> LedgerCredential:
    """Parses a credential: hex, bech32 (`stake_vkh1…`, `script1…`), or a stake address. Raises Refusal."""
    try:
        if text.startswith(("stake1", "stake_test1")):
            return addresses.reward_credential(text)
        return LedgerCredential(origin, addresses.raw(text).hex() if "1" in text and len(text) != 56 else text)
    except (ValueError, IndexError):
        raise Refusal(-32602, f"Invalid request: {text!r} is not a credential.") from None
