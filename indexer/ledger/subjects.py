"""What the index and its node both know of the ledger: SUBJECTS is the table of it.

A row says how the index and the node are asked about one sort of thing, how a thing is named, and what is compared of
it. `verify --against-node`, the indexer's comparison in each epoch, the metrics and the status page follow from it.
"""

from fractions import Fraction
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from indexer.blocks.certificates import parameters_of, parse_pool_id, party_of
from indexer.ledger import answers, reader
from indexer.ledger.comparisons import At, Batch, Kind, Subject, text, whole
from indexer.ledger.figures import FIGURES
from indexer.ogmios import frames
from indexer.ogmios.connection import Ogmios
from shared import address, packed, sql
from shared.encoding import bech32_encode
from shared.ledger import PoolNo, StakeNo, tx_id_of
from shared.network import STAKE_DEPOSIT

_LOWEST_TX_ID = -(1 << 63)

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
    accounts = {
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
    return Batch(accounts, rows[-1].stake_no + 1 if rows else None)


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


class GenesisKey(NamedTuple):
    """Names an output of the genesis; the address is for people."""

    tx_hash: bytes
    address: bytes


async def _our_genesis_outputs(at: At, first: int) -> Batch:
    """The lovelace of outputs of the genesis; None: it is no longer unspent."""
    rows = await _genesis_outputs.all(at.db, first, reader.BATCH_ACCOUNTS)
    lovelace = {GenesisKey(row.tx_hash, row.address): row.lovelace if row.unspent else None for row in rows}
    return Batch(lovelace, first + len(rows) if rows else None)


async def _genesis_outputs_of_node(node: Ogmios, _: At, keys: list[GenesisKey]) -> dict[GenesisKey, int] | None:
    """Those of the outputs that are unspent, with their lovelace, in all eras but Byron's."""
    addresses = {key.tx_hash: key.address for key in keys}
    references = [{"transaction": {"id": tx_hash.hex()}, "index": 0} for tx_hash in addresses]
    outputs = await reader.or_none(
        node, "queryLedgerState/utxo", list[answers.UnspentOutput], outputReferences=references
    )
    if outputs is None:
        return None
    unspent = {bytes.fromhex(output.transaction.id): frames.lovelace(output.value) for output in outputs}
    return {GenesisKey(tx_hash, addresses[tx_hash]): lovelace for tx_hash, lovelace in unspent.items()}


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
    return {
        parse_pool_id(id_): Pool(True, _in_one_form(parameters_of(pool, at.network))) for id_, pool in pools.items()
    }


def _in_one_form(parameters: packed.PoolParameters) -> packed.PoolParameters:
    """The same parameters, with owners as a set and the margin in lowest terms, as the ledger keeps them."""
    return msgspec.structs.replace(
        parameters, owners=sorted(set(parameters.owners)), margin=str(Fraction(parameters.margin))
    )


def _show_parameters(ours: packed.PoolParameters, node: packed.PoolParameters) -> tuple[str, str]:
    """The parameters that differ."""
    names = [name for name in ours.__struct_fields__ if getattr(ours, name) != getattr(node, name)]
    return _show_fields(ours, names), _show_fields(node, names)


def _show_fields(parameters: packed.PoolParameters, names: list[str]) -> str:
    return ", ".join(f"{name} {text(_plain(getattr(parameters, name)))}" for name in names)


def _plain(value: Any) -> Any:
    return [item.hex() if isinstance(item, bytes) else item for item in value] if isinstance(value, list) else value


# Representatives ------------------------------------------------------------------------------------------------------


class Anchor(NamedTuple):
    """An anchor, whose URL may be no text."""

    url: bytes
    content_hash: bytes


class Representative(msgspec.Struct, frozen=True):
    """A representative; its anchor is None if it has none."""

    registered: bool
    deposit: int | UnsetType = UNSET
    anchor: Anchor | UnsetType | None = UNSET


async def _our_representatives(at: At, _: int) -> Batch:
    """The registered representatives by credential, 29 bytes."""
    registered = {}
    for row in await _representatives.all(at.db):
        anchor = None if row.anchor_url is None or row.anchor_hash is None else Anchor(row.anchor_url, row.anchor_hash)
        registered[row.representative] = Representative(True, UNSET if row.deposit is None else row.deposit, anchor)
    return Batch(registered)


async def _representatives_of_node(node: Ogmios, _: At, __: list[bytes]) -> dict[bytes, Representative] | None:
    """All of them, since Conway.

    NOTE: the answer also has their delegators, some 50 MB on mainnet, which are not decoded.
    """
    query = "queryLedgerState/delegateRepresentatives"
    answer = await reader.or_none(node, query, list[answers.Representative])
    if answer is None:
        return None
    registered = {}
    for told in answer:
        credential = party_of(frames.Party(told.id, told.origin, told.type))
        if told.type == "registered" and credential is not None and told.deposit is not None:
            document = told.metadata
            anchor = None if document is None else Anchor(document.url.encode(), bytes.fromhex(document.hash))
            registered[credential] = Representative(True, frames.lovelace(told.deposit), anchor)
    return registered


def _show_anchor(anchor: Anchor | None) -> str:
    return "none" if anchor is None else f"{anchor.url.decode(errors='replace')} {anchor.content_hash.hex()}"


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


async def _our_stake_snapshot(at: At, _: int) -> Batch | None:
    """The stakes by pool_id in the stake snapshot from the beginning of the epoch, once its rewards are read.

    NOTE: rewards in it can follow from the node's own, less the outputs. If the outputs are more than what the
    node has, it differs by that.
    """
    if not at.read:
        return None
    rows = await _stake_snapshot.all(at.db, at.epoch_no + 1)
    return Batch({row.pool_id: row.outputs + max(row.rewards, 0) for row in rows})


async def _stake_snapshot_of_node(node: Ogmios, at: At, _: list[bytes]) -> dict[bytes, int] | None:
    """The same from the node, None before the second epoch of Conway."""
    return await reader.reported_stake_snapshot(at.network, node, at.db, at.epoch_no) or None


# The table ------------------------------------------------------------------------------------------------------------


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
    *FIGURES,
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
    Subject(
        (
            Kind("representative_registration", lambda representative: representative.registered),
            Kind("representative_deposit", lambda representative: representative.deposit),
            Kind(
                "representative_anchor",
                lambda representative: representative.anchor,
                lambda ours, node: (_show_anchor(ours), _show_anchor(node)),
            ),
        ),
        _our_representatives,
        _representatives_of_node,
        _representative_name,
        Representative(False),
    ),
    Subject((Kind("live_stake", whole),), _our_live_stakes, _live_stakes_of_node, _pool_name, 0),
    Subject((Kind("snapshot", whole),), _our_stake_snapshot, _stake_snapshot_of_node, _pool_name, 0),
    Subject(
        (Kind("genesis_output", whole),),
        _our_genesis_outputs,
        _genesis_outputs_of_node,
        lambda key: f"{address.show(key.address)} {key.tx_hash.hex()}#0",
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


class _Representative(msgspec.Struct, frozen=True):
    """Of a view, of whose columns Postgres does not know that they have no nulls."""

    representative: bytes | None
    deposit: int | None
    anchor_url: bytes | None
    anchor_hash: bytes | None


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


class _PoolStake(msgspec.Struct, frozen=True):
    pool_id: bytes
    outputs: int
    rewards: int


_sql = sql.beside(__file__)
_accounts = _sql.query("accounts", _Account)
_genesis_outputs = _sql.query("genesis_outputs", _GenesisOutput)
_representatives = _sql.query("representatives", _Representative)
_pools = _sql.query("pools", _PoolRow)
_pool_updates = _sql.query("pool_updates", _PoolUpdate)
_live_stakes = _sql.query("live_stakes", _LiveStake)
_stake_snapshot = _sql.query("stake_snapshot", _PoolStake)
