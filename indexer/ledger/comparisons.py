"""What the index and its node both know of the ledger, compared: SUBJECTS is the table of it.

A row of the table says how the index and the node are asked about one sort of thing, how a thing is named, and what is
compared of it. `verify --against-node`, the indexer's comparison in each epoch, the metrics and the status page follow
from it.

Both sides are those of one block: ours are read in a snapshot of the database, and the node has acquired the ledger
state of its tip. Things that may be many are compared in batches; each batch may have its own snapshot and block.
"""

import operator
from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Any

import asyncpg
import msgspec
from msgspec import UNSET, UnsetType

from indexer.blocks.certificates import parameters_of, parse_pool_id, party_of
from indexer.blocks.eras import EraSummary
from indexer.ledger import answers, deposits, reader
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios
from indexer.store import writer as store
from shared import address, packed, sql
from shared.encoding import bech32_encode
from shared.ledger import PoolNo, StakeNo, tx_id_of
from shared.network import STAKE_DEPOSIT, Network
from shared.network_state import Comparison, Difference

MOST_NAMED = 5
"""The most differences of one kind that are named."""

_ERA_ENDS_WITHIN_EPOCHS = 5
_LOWEST_TX_ID = -(1 << 63)


class At(msgspec.Struct, frozen=True):
    """A snapshot of the index, which stays open while it is used.

    `read` is true once the rewards of the tip's epoch are read, except those of accounts that have changed since;
    `all_read` includes these. About `sample` percent of the accounts are compared.
    """

    db: asyncpg.Connection
    network: Network
    position: store.IndexPosition
    epoch_no: int
    current: bool
    read: bool
    all_read: bool
    deposits_changed: bool
    sample: float = 100.0

    @property
    def from_origin(self) -> bool:
        return self.position.first_block_no == 0


class Batch(msgspec.Struct, frozen=True):
    """Some things of the index by key, and where the next batch begins; None after the last one."""

    found: dict[Any, Any]
    then: int | None = None


class Kind(msgspec.Struct, frozen=True):
    """One value of a thing, UNSET if it is unknown or means nothing; how two are compared, and shown if they differ."""

    name: str
    value: Callable[[Any], Any]
    show: Callable[[Any, Any], tuple[str, str]] = lambda ours, node: (_text(ours), _text(node))
    same: Callable[[Any, Any], bool] = operator.eq


class Subject(msgspec.Struct, frozen=True):
    """One sort of thing.

    `ours` reads a batch in a snapshot; None if the index does not know it yet. `node` asks for the same things and
    returns those that it has by key; None if it refuses the question. A thing that one side lacks is `absent`.
    """

    kinds: tuple[Kind, ...]
    ours: Callable[[At, int], Awaitable[Batch | None]]
    node: Callable[[Ogmios, At, list[Any]], Awaitable[dict[Any, Any] | None]]
    name: Callable[[Any], str]
    absent: Any = UNSET


class Tally:
    """Adds up the comparisons of batches by kind."""

    def __init__(self) -> None:
        self._compared: dict[str, int] = {}
        self._differing: dict[str, int] = {}
        self._named: dict[str, list[Difference]] = {}

    def compare(self, subject: Subject, at: At, ours: dict[Any, Any], node: dict[Any, Any]) -> None:
        """Compare things by key. An index that does not begin at the origin lacks things, so only its own count."""
        keys = ours.keys() | node.keys() if at.from_origin else ours.keys()
        for kind in subject.kinds:
            compared = 0
            for key in keys:
                left = _value(kind, ours.get(key, subject.absent))
                right = _value(kind, node.get(key, subject.absent))
                if left is UNSET or right is UNSET:
                    continue
                compared += 1
                if not kind.same(left, right):
                    self._add(kind.name, Difference(subject.name(key), *kind.show(left, right)))
            self._compared[kind.name] = self._compared.get(kind.name, 0) + compared

    def comparisons(self, epoch_no: int) -> list[Comparison]:
        """One for each kind that was compared."""
        return [
            Comparison(name, epoch_no, compared, self._differing.get(name, 0), self._named.get(name, []))
            for name, compared in self._compared.items()
        ]

    def _add(self, kind: str, difference: Difference) -> None:
        self._differing[kind] = self._differing.get(kind, 0) + 1
        named = self._named.setdefault(kind, [])
        named.append(difference)
        named.sort(key=lambda each: each.name)  # the order of a set changes
        del named[MOST_NAMED:]


async def at_tip(db: asyncpg.Connection, network: Network, sample: float = 100.0) -> At | None:
    """The open snapshot of the index at its tip; None unless the index is live."""
    position, state = await store.position(db), await _state.one(db)
    if position is None or position.phase != "live":
        return None
    assert state is not None, "always one row"
    epoch_no = network.epoch_of(position.slot_no)
    current = state.epoch_no == epoch_no
    read = current and state.complete_epoch_no == epoch_no and state.next_stake_no is None
    changed = await deposits.changed(db)
    return At(db, network, position, epoch_no, current, read, read and not state.due, changed, sample)


def _value(kind: Kind, thing: Any) -> Any:
    return UNSET if thing is UNSET else kind.value(thing)


def _text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case bytes():
            return value.hex()
    return msgspec.json.encode(value).decode()


# Accounts: 1.3 million on mainnet -------------------------------------------------------------------------------------


class Account(msgspec.Struct, frozen=True):
    """A reward account."""

    registered: bool
    pool_id: bytes | UnsetType | None = UNSET
    representative: bytes | UnsetType | None = UNSET
    deposit: int | UnsetType = UNSET
    rewards: int | UnsetType = UNSET


async def _our_accounts(at: At, first_stake_no: int) -> Batch | None:
    """Accounts that have a certificate or a reward, by their 29 bytes.

    A deposit is that of the protocol parameters when the account was registered. It is known as long as no epoch's
    stored parameters have another one than the genesis: all networks began with the same.
    """
    rows = await _accounts.all(at.db, StakeNo(first_stake_no), reader.BATCH_ACCOUNTS, at.sample)
    found = {
        row.raw: Account(
            True,
            UNSET if row.pool_id is None and not (row.certified or at.from_origin) else row.pool_id,
            UNSET if row.representative is None and not at.from_origin else row.representative,
            UNSET if at.deposits_changed else STAKE_DEPOSIT,
            row.rewards if at.read and not row.due else UNSET,
        )
        if row.registered
        else Account(False)
        for row in rows
    }
    return Batch(found, rows[-1].stake_no + 1 if rows else None)


async def _accounts_of_node(node: Ogmios, _: At, accounts: list[bytes]) -> dict[bytes, Account]:
    """Those of the accounts that are registered."""
    return {
        raw: Account(
            True,
            None if summary.pool is None else parse_pool_id(summary.pool.id),
            party_of(summary.delegate_representative),
            UNSET if summary.deposit is None else frames.lovelace(summary.deposit),
            frames.lovelace(summary.rewards),
        )
        for raw, summary in (await reader.summaries_of(node, accounts)).items()
    }


# Outputs of the genesis, with its vouchers: 14,000 on mainnet ---------------------------------------------------------


async def _our_genesis_outputs(at: At, first: int) -> Batch:
    """Outputs of the genesis by transaction hash and address; None: it is no longer unspent."""
    rows = await _genesis_outputs.all(at.db, first, reader.BATCH_ACCOUNTS)
    found = {(row.tx_hash, row.address): row.lovelace if row.unspent else None for row in rows}
    return Batch(found, first + len(rows) if rows else None)


async def _genesis_outputs_of_node(
    node: Ogmios, _: At, outputs: list[tuple[bytes, bytes]]
) -> dict[tuple[bytes, bytes], int] | None:
    """Those of the outputs that are unspent, with their lovelace, in all eras but Byron's."""
    addresses = dict(outputs)
    references = [{"transaction": {"id": tx_hash.hex()}, "index": 0} for tx_hash in addresses]
    found = await reader.or_none(
        node, "queryLedgerState/utxo", list[answers.UnspentOutput], outputReferences=references
    )
    if found is None:
        return None
    unspent = {bytes.fromhex(each.transaction.id): frames.lovelace(each.value) for each in found}
    return {(tx_hash, addresses[tx_hash]): lovelace for tx_hash, lovelace in unspent.items()}


# Pools ----------------------------------------------------------------------------------------------------------------


class Pool(msgspec.Struct, frozen=True):
    """A pool, and the parameters in effect."""

    registered: bool
    parameters: packed.PoolParameters | UnsetType = UNSET


async def _our_pools(at: At, _: int) -> Batch:
    """Registered pools by pool_id.

    The parameters of a first registration are in effect at once, those of a later one from the next epoch on (Shelley
    ledger specification, POOL and POOLREAP). A registration after a retirement is a first one again. An index that does
    not begin at the origin can't tell a first one in this epoch.
    """
    network, epoch_first = at.network, tx_id_of(at.network.epoch_start(at.epoch_no), 0)
    pools = await _pools.all(at.db)
    since = [_LOWEST_TX_ID if pool.reaped is None else tx_id_of(network.epoch_start(pool.reaped), 0) for pool in pools]
    rows = await _pool_updates.all(at.db, [pool.pool_no for pool in pools], since, epoch_first)
    return Batch(
        {
            row.pool_id: Pool(True, _in_one_form(packed.unpack_pool_parameters(row.parameters)))
            if row.began or at.from_origin
            else Pool(True)
            for row in rows
        }
    )


async def _pools_of_node(node: Ogmios, at: At, _: list[bytes]) -> dict[bytes, Pool] | None:
    """The registered pools, in all eras but Byron's."""
    pools = await reader.or_none(node, "queryLedgerState/stakePools", dict[str, frames.StakePool])
    if pools is None:
        return None
    try:
        return {
            parse_pool_id(id_): Pool(True, _in_one_form(parameters_of(pool, at.network))) for id_, pool in pools.items()
        }
    except ValueError as error:
        raise frames.Unreadable(f"stake pools: {error}") from error


def _in_one_form(parameters: packed.PoolParameters) -> packed.PoolParameters:
    """The same parameters, with owners as a set and the margin in lowest terms, as the ledger keeps them."""
    return msgspec.structs.replace(
        parameters, owners=sorted(set(parameters.owners)), margin=str(Fraction(parameters.margin))
    )


def _show_parameters(ours: packed.PoolParameters, node: packed.PoolParameters) -> tuple[str, str]:
    """The parameters that differ."""
    names = [name for name in ours.__struct_fields__ if getattr(ours, name) != getattr(node, name)]
    one, other = (", ".join(f"{name} {_text(_plain(getattr(each, name)))}" for name in names) for each in (ours, node))
    return one, other


def _plain(value: Any) -> Any:
    return [each.hex() if isinstance(each, bytes) else each for each in value] if isinstance(value, list) else value


# Stakes ---------------------------------------------------------------------------------------------------------------


async def _our_live_stakes(at: At, _: int) -> Batch | None:
    """Live stakes by pool_id, once all rewards are read."""
    return Batch({row.pool_id: row.lovelace for row in await _live_stakes.all(at.db)}) if at.all_read else None


async def _live_stakes_of_node(node: Ogmios, _: At, __: list[bytes]) -> dict[bytes, int] | None:
    shares = await reader.or_none(node, "queryLedgerState/liveStakeDistribution", dict[str, answers.Share])
    treasury = await reader.or_none(node, "queryLedgerState/treasuryAndReserves", answers.TreasuryAndReserves)
    if shares is None or treasury is None:
        return None
    return answers.live_stakes_of(shares, frames.lovelace(treasury.reserves))


async def _our_snapshot(at: At, _: int) -> Batch | None:
    """The stakes by pool_id in the snapshot from the beginning of the epoch, once its rewards are read.

    NOTE: rewards in a snapshot can follow from the node's own, less the outputs. If the outputs are more than what the
    node has, the snapshot differs by that.
    """
    if not at.read:
        return None
    rows = await _snapshot.all(at.db, at.epoch_no + 1)
    return Batch({row.pool_id: row.outputs + max(row.rewards, 0) for row in rows})


async def _snapshot_of_node(node: Ogmios, at: At, _: list[bytes]) -> dict[bytes, int] | None:
    """The same from the node, None before the second epoch of Conway."""
    return await reader.reported_snapshot(at.network, node, at.db, at.epoch_no) or None


# Figures --------------------------------------------------------------------------------------------------------------


async def _our_pots(at: At, _: int) -> Batch | None:
    """Reserves and treasury as read in this epoch, in which they do not change."""
    row = await _pots.one(at.db)
    known = {} if row is None else {"reserves": row.reserves, "treasury": row.treasury}
    return Batch({name: lovelace for name, lovelace in known.items() if lovelace is not None}) if at.current else None


async def _pots_of_node(node: Ogmios, _: At, __: list[str]) -> dict[str, int] | None:
    pots = await reader.or_none(node, "queryLedgerState/treasuryAndReserves", answers.TreasuryAndReserves)
    if pots is None:
        return None
    return {"reserves": frames.lovelace(pots.reserves), "treasury": frames.lovelace(pots.treasury)}


async def _our_parameters(at: At, _: int) -> Batch | None:
    """Protocol parameters of this epoch by name, and the copy of one of them."""
    row = await _parameters.one(at.db, at.epoch_no)
    if row is None or not at.current:
        return None
    of_state = {} if row.desired_pools is None else {_DESIRED_POOLS: row.desired_pools}
    return Batch(msgspec.json.decode(row.parameters) | of_state)


async def _parameters_of_node(node: Ogmios, _: At, __: list[str]) -> dict[str, Any] | None:
    answer = await reader.or_none(node, "queryLedgerState/protocolParameters", msgspec.Raw)
    if answer is None:
        return None
    found: dict[str, Any] = msgspec.json.decode(answers.in_names_of_7(answer))
    return found | {_DESIRED_POOLS: answers.parameters_of(answer).desired_number_of_stake_pools}


_DESIRED_POOLS = "desired_pools of ledger_state"


async def _our_configurations(at: At, _: int) -> Batch | None:
    found = {row.era: msgspec.json.decode(row.configuration) for row in await _configurations.all(at.db)}
    return Batch(found) if at.current else None


async def _configurations_of_node(node: Ogmios, _: At, __: list[str]) -> dict[str, Any]:
    """By era; UNSET for one that the node does not tell. NOTE: Ogmios 6 does not know Dijkstra's."""
    found = {era: await reader.configuration_of(node, era) for era in reader.GENESIS_ERAS}
    return {era: UNSET if told is None else msgspec.json.decode(told) for era, told in found.items()}


def _same_configuration(ours: Any, node: Any) -> bool:
    """Whether the members that both have are equal. NOTE: Ogmios 7 tells more than Ogmios 6."""
    if isinstance(ours, dict) and isinstance(node, dict):
        return all(_same_configuration(ours[name], node[name]) for name in ours.keys() & node.keys())
    return bool(ours == node)


def _show_configuration(ours: Any, node: Any) -> tuple[str, str]:
    """The members that differ."""
    if isinstance(ours, dict) and isinstance(node, dict):
        names = [name for name in ours if name in node and not _same_configuration(ours[name], node[name])]
        return _text({name: ours[name] for name in names}), _text({name: node[name] for name in names})
    return _text(ours), _text(node)


async def _our_epochs(at: At, _: int) -> Batch:
    """The first slot of each epoch, and its time in seconds since the network's start."""
    network = at.network
    found = {}
    for epoch in range(at.epoch_no + _ERA_ENDS_WITHIN_EPOCHS):
        slot_no = network.epoch_start(epoch)
        found[epoch] = [(slot_no, (network.slot_time(slot_no) - network.start_time).total_seconds())]
    return Batch(found)


async def _epochs_of_node(node: Ogmios, _: At, __: list[int]) -> dict[int, Any] | None:
    """The same for the epochs in which eras begin or end: what all these eras say."""
    eras = await reader.or_none(node, "queryLedgerState/eraSummaries", list[EraSummary])
    if eras is None:
        return None
    found: dict[int, set[tuple[int, float]]] = {}
    for bound in (bound for era in eras for bound in (era.start, era.end) if bound is not None):
        found.setdefault(bound.epoch, set()).add((bound.slot, float(bound.time.seconds)))
    return {epoch: sorted(starts) for epoch, starts in found.items()}


# The table ------------------------------------------------------------------------------------------------------------


def _whole(thing: Any) -> Any:
    return thing


def _named(key: str) -> str:
    return key


def _pool_name(pool_id: bytes) -> str:
    return bech32_encode("pool", pool_id)


def _representative_name(representative: bytes) -> str:
    """The id of a representative (CIP-129), or the word for one that always votes the same."""
    if len(representative) == 1:
        return packed.FIXED_REPRESENTATIVES.get(representative[0], representative.hex())
    return bech32_encode("drep", bytes((0x22 | representative[0],)) + representative[1:])


ACCOUNTS = Subject(
    (
        Kind("account_registration", lambda account: account.registered),
        Kind(
            "account_pool",
            lambda account: account.pool_id,
            lambda ours, node: (_pool_or_none(ours), _pool_or_none(node)),
        ),
        Kind(
            "account_representative",
            lambda account: account.representative,
            lambda ours, node: (_representative_or_none(ours), _representative_or_none(node)),
        ),
        Kind("account_deposit", lambda account: account.deposit),
        Kind("account_rewards", lambda account: account.rewards),
    ),
    _our_accounts,
    _accounts_of_node,
    address.show_stake,
    Account(False),
)
SUBJECTS: tuple[Subject, ...] = (
    Subject((Kind("epoch_start", _whole),), _our_epochs, _epochs_of_node, lambda epoch: f"epoch {epoch}"),
    Subject(
        (Kind("genesis_configuration", _whole, _show_configuration, _same_configuration),),
        _our_configurations,
        _configurations_of_node,
        _named,
        None,
    ),
    Subject((Kind("protocol_parameter", _whole),), _our_parameters, _parameters_of_node, _named, None),
    Subject((Kind("pot", _whole),), _our_pots, _pots_of_node, _named),
    Subject(
        (
            Kind("pool_registration", lambda pool: pool.registered),
            Kind("pool_parameters", lambda pool: pool.parameters, _show_parameters),
        ),
        _our_pools,
        _pools_of_node,
        _pool_name,
        Pool(False),
    ),
    Subject((Kind("live_stake", _whole),), _our_live_stakes, _live_stakes_of_node, _pool_name, 0),
    Subject((Kind("snapshot", _whole),), _our_snapshot, _snapshot_of_node, _pool_name, 0),
    Subject(
        (Kind("genesis_output", _whole),),
        _our_genesis_outputs,
        _genesis_outputs_of_node,
        lambda output: f"{address.show(output[1])} {output[0].hex()}#0",
        None,
    ),
    ACCOUNTS,
)
KINDS = tuple(kind.name for subject in SUBJECTS for kind in subject.kinds)


def _representative_or_none(representative: bytes | None) -> str:
    return "none" if representative is None else _representative_name(representative)


def _pool_or_none(pool_id: bytes | None) -> str:
    return "none" if pool_id is None else _pool_name(pool_id)


# Rows -----------------------------------------------------------------------------------------------------------------


class _State(msgspec.Struct, frozen=True):
    epoch_no: int | None
    next_stake_no: StakeNo | None
    complete_epoch_no: int | None
    due: bool


class _Account(msgspec.Struct, frozen=True):
    stake_no: StakeNo
    raw: bytes
    registered: bool
    certified: bool
    representative: bytes | None
    pool_id: bytes | None
    rewards: int
    due: bool


class _GenesisOutput(msgspec.Struct, frozen=True):
    tx_hash: bytes
    address: bytes
    lovelace: int
    unspent: bool


class _PoolRow(msgspec.Struct, frozen=True):
    pool_no: PoolNo
    reaped: int | None


class _PoolUpdate(msgspec.Struct, frozen=True):
    pool_id: bytes
    parameters: bytes
    began: bool


class _LiveStake(msgspec.Struct, frozen=True):
    pool_id: bytes
    lovelace: int


class _SnapshotStake(msgspec.Struct, frozen=True):
    pool_id: bytes
    outputs: int
    rewards: int


class _Pots(msgspec.Struct, frozen=True):
    reserves: int | None
    treasury: int | None


class _Parameters(msgspec.Struct, frozen=True):
    parameters: str
    desired_pools: int | None


class _Configuration(msgspec.Struct, frozen=True):
    era: str
    configuration: str


_sql = sql.beside(__file__)
_state = _sql.query("state", _State)
_accounts = _sql.query("accounts", _Account)
_genesis_outputs = _sql.query("genesis_outputs", _GenesisOutput)
_pools = _sql.query("pools", _PoolRow)
_pool_updates = _sql.query("pool_updates", _PoolUpdate)
_live_stakes = _sql.query("live_stakes", _LiveStake)
_snapshot = _sql.query("snapshot", _SnapshotStake)
_pots = _sql.query("pots", _Pots)
_parameters = _sql.query("parameters", _Parameters)
_configurations = _sql.query("configurations", _Configuration)
