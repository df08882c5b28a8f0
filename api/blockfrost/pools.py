"""`/pools`: the registered pools and those that retire, one pool, its relays, its delegators and its certificates."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.ask import ChainAsk, Nothing
from api.blockfrost.paging import Page
from api.chain import network, pool_metadata, pools, tip
from api.chain.certificates import PoolRelay
from api.chain.owners import parse_stake
from api.chain.pool_metadata import Published
from api.chain.pools import DelegatorsQuestion, PoolIdKind, PoolQuestion, show_pool_id
from shared import packed, sql
from shared.sql import Connection


class DelegatorPage(Page, frozen=True, kw_only=True):
    """A page of the delegators of a pool."""

    pool: Annotated[bytes, PoolIdKind()]


class UpdatePage(Page, frozen=True, kw_only=True):
    """A page of the certificates of a pool."""

    pool: Annotated[bytes, PoolIdKind()]


_ErrorCode = Literal[
    "CONNECTION_ERROR", "HTTP_RESPONSE_ERROR", "SIZE_EXCEEDED", "HASH_MISMATCH", "DECODE_ERROR", "UNKNOWN_ERROR"
]


class PoolMetadataError(msgspec.Struct, frozen=True):
    """Why there is no metadata. `UNKNOWN_ERROR`: the operator of this service does not show it."""

    code: _ErrorCode
    message: str


class PoolMetadataReference(msgspec.Struct, frozen=True, kw_only=True):
    """The location of a pool's metadata and, once it is fetched, its content. Until then that is null."""

    url: str | None
    hash: str | None
    error: PoolMetadataError | UnsetType = UNSET
    ticker: str | None = None
    name: str | None = None
    description: str | None = None
    homepage: str | None = None


class PoolMetadata(PoolMetadataReference, frozen=True, kw_only=True):
    """The same with the pool's ids."""

    pool_id: str
    hex: str


class PoolEntry(msgspec.Struct, frozen=True):
    """A pool in the list."""

    pool_id: str
    hex: str
    active_stake: str
    live_stake: str
    live_saturation: float
    blocks_minted: int
    declared_pledge: str
    margin_cost: msgspec.Raw
    fixed_cost: str
    metadata: PoolMetadataReference | None


class Pool(msgspec.Struct, frozen=True):
    """A pool. Sizes are shares of all delegated stake. The Calidus key is not kept.

    `registration` and `retirement` are the hashes of the transactions with its last hundred certificates of each kind.
    """

    pool_id: str
    hex: str
    vrf_key: str
    blocks_minted: int
    blocks_epoch: int
    live_stake: str
    live_size: float
    live_saturation: float
    live_delegators: int
    active_stake: str
    active_size: float
    declared_pledge: str
    live_pledge: str
    margin_cost: msgspec.Raw
    fixed_cost: str
    reward_account: str | None
    owners: list[str]
    registration: list[str]
    retirement: list[str]
    calidus_key: None


class Relay(msgspec.Struct, frozen=True):
    """A relay as registered. `port` is 0 if none is registered; for a host name, the port is then in its SRV record."""

    ipv4: str | None
    ipv6: str | None
    dns: str | None
    dns_srv: str | None
    port: int


class Delegator(msgspec.Struct, frozen=True):
    """An account and the amount that it delegates."""

    address: str
    live_stake: str


class PoolEnd(msgspec.Struct, frozen=True):
    """A pool, and the epoch at whose start it retires."""

    pool_id: str
    epoch: int


class Update(msgspec.Struct, frozen=True):
    """A registration, which may change parameters, or a retirement. `cert_index` is as in certificates.py."""

    tx_hash: str
    cert_index: int | None
    action: Literal["registered", "deregistered"]


class _UpdateRow(msgspec.Struct, frozen=True):
    hash: bytes
    extra: bytes | None
    is_registration: bool
    earlier: int


class _RetirementRow(msgspec.Struct, frozen=True):
    pool_id: bytes
    epoch_no: int


_sql = sql.beside(__file__)
_registered = {order: _sql.values("registered", bytes, order=order) for order in ("asc", "desc")}
_live_pledge = _sql.values("live_pledge", int)
_certificates = {table: _sql.values("certificates", bytes, table=table) for table in ("pool_update", "pool_retirement")}
_retirements = {
    (compare, order): _sql.query("retirements", _RetirementRow, compare=compare, order=order)
    for compare in (">", "<=")
    for order in ("asc", "desc")
}
_registered_pool = _sql.values("registered_pool", int)
_updates = {order: _sql.query("updates", _UpdateRow, order=order) for order in ("asc", "desc")}


async def listed(ask: ChainAsk[Page]) -> list[str]:
    """List the registered pools in the order of their first registration."""
    async with ask.snapshot() as db:
        return [show_pool_id(pool) for pool in await _page(db, ask)]


async def extended(ask: ChainAsk[Page]) -> list[PoolEntry]:
    """List the registered pools with their stake and parameters."""
    ask.notes.may_change = True  # what they publish is fetched apart
    async with ask.snapshot() as db:
        stake_pools = [
            (await pools.get_pool(ask.about(PoolQuestion(pool=pool), db))).data for pool in await _page(db, ask)
        ]
        published = await pool_metadata.published(db, ask.network, list(map(pool_metadata.location, stake_pools)))
    return [
        PoolEntry(
            pool.pool_id,
            pool.pool_id_hex,
            pool.active_stake,
            pool.live_stake,
            pool.saturation,
            pool.blocks_minted,
            pool.pledge,
            pool.margin,
            pool.fixed_cost,
            None if pool.metadata_url is None else described(pool.metadata_url, pool.metadata_hash, found),
        )
        for pool, found in zip(stake_pools, published, strict=True)
    ]


async def retiring(ask: ChainAsk[Page]) -> list[PoolEnd]:
    """List the pools that retire in a later epoch, in the order of epoch and announcement."""
    return await _ends(ask, ">")


async def retired(ask: ChainAsk[Page]) -> list[PoolEnd]:
    """List the pools that have retired and were not registered again, in the same order."""
    return await _ends(ask, "<=")


async def info(ask: ChainAsk[PoolQuestion]) -> Pool:
    """Get a pool."""
    async with ask.snapshot() as db:
        pool = (await pools.get_pool(ask.about(ask.question, db))).data
        summary = (await network.get_network(ask.about(Nothing(), db))).data
        made, retired = [
            [tx_hash.hex() for tx_hash in reversed(await query.all(db, ask.question.pool))]
            for query in _certificates.values()
        ]
        owners = [parse_stake(text, ask.network) for text in pool.owners]
        pledge = await _live_pledge.only(db, ask.question.pool, owners)
    return Pool(
        pool_id=pool.pool_id,
        hex=pool.pool_id_hex,
        vrf_key=pool.vrf_key_hash,
        blocks_minted=pool.blocks_minted,
        blocks_epoch=pool.blocks_epoch,
        live_stake=pool.live_stake,
        live_size=_share(pool.live_stake, summary.stake.live),
        live_saturation=pool.saturation,
        live_delegators=pool.delegator_count,
        active_stake=pool.active_stake,
        active_size=_share(pool.active_stake, summary.stake.active),
        declared_pledge=pool.pledge,
        live_pledge=str(pledge),
        margin_cost=pool.margin,
        fixed_cost=pool.fixed_cost,
        reward_account=pool.reward_account,
        owners=pool.owners,
        registration=made,
        retirement=retired,
        calidus_key=None,
    )


async def metadata(ask: ChainAsk[PoolQuestion]) -> PoolMetadata | dict[str, None]:
    """Get what a pool publishes of itself; an empty object if it registered no URL."""
    ask.notes.may_change = True  # it is fetched apart
    async with ask.snapshot() as db:
        pool = (await pools.get_pool(ask.about(ask.question, db))).data
        (found,) = await pool_metadata.published(db, ask.network, [pool_metadata.location(pool)])
    if pool.metadata_url is None:
        return {}
    reference = described(pool.metadata_url, pool.metadata_hash, found)
    return PoolMetadata(pool_id=pool.pool_id, hex=pool.pool_id_hex, **msgspec.structs.asdict(reference))


async def relays(ask: ChainAsk[PoolQuestion]) -> list[Relay]:
    """List the relays of a pool."""
    async with ask.snapshot() as db:
        epoch_no = ask.network.epoch_of((await tip.read(db)).slot_no)
        row = await pools.pool_of.one(db, ask.question.pool, epoch_no)
    if row is None:
        raise errors.pool_not_found()
    return [shown_relay(relay) for relay in packed.unpack_pool_parameters(row.parameters).relays]


async def delegators(ask: ChainAsk[DelegatorPage]) -> list[Delegator]:
    """List the delegators of a pool by stake."""
    asked = ask.question
    async with ask.snapshot() as db:
        largest_first = DelegatorsQuestion(pool=asked.pool, limit=asked.count, offset=asked.offset)
        if asked.order == "asc":
            page = DelegatorsQuestion(pool=asked.pool, limit=1)
            total = (await pools.list_pool_delegators(ask.about(page, db))).pagination.total
            beyond = max(total - asked.offset, 0)
            limit = min(asked.count, beyond)
            largest_first = DelegatorsQuestion(pool=asked.pool, limit=limit, offset=beyond - limit)
        listed = (await pools.list_pool_delegators(ask.about(largest_first, db))).data.delegators
    shown = [Delegator(delegator.stake_address, delegator.amount) for delegator in listed]
    return shown[::-1] if asked.order == "asc" else shown


async def updates(ask: ChainAsk[UpdatePage]) -> list[Update]:
    """List the registrations and retirements of a pool."""
    asked = ask.question
    async with ask.snapshot() as db:
        await tip.read(db)
        pool_no = await _registered_pool.one(db, asked.pool)
        if pool_no is None:
            raise errors.pool_not_found()
        rows = await _updates[asked.order].all(db, pool_no, asked.count, asked.offset)
    return [
        Update(
            row.hash.hex(),
            _places_of(asked.pool, packed.unpack_extra(row.extra))[row.earlier],
            "registered" if row.is_registration else "deregistered",
        )
        for row in rows
    ]


def _places_of(pool: bytes, extra: packed.Extra) -> list[int | None]:
    """The places of a pool's registrations and retirements among the certificates of a transaction."""
    places = extra.certificate_places or range(len(extra.certificates))
    return [
        place
        for place, certificate in zip(places, extra.certificates, strict=True)
        if certificate.pool_id == pool and certificate.stake is None
    ]


def shown_relay(relay: packed.Relay | PoolRelay) -> Relay:
    """A relay of a pool or in a certificate. A host name without a port names an SRV record."""
    port, ipv4, ipv6, hostname = (None if part is UNSET else part for part in msgspec.structs.astuple(relay))
    is_srv = port is None
    return Relay(
        ipv4=ipv4,
        ipv6=ipv6,
        dns=None if is_srv else hostname,
        dns_srv=hostname if is_srv else None,
        port=port or 0,
    )


def described(url: str, metadata_hash: str | None, found: Published) -> PoolMetadataReference:
    """The metadata at a URL in Blockfrost's form."""
    failed = found.error
    return PoolMetadataReference(
        url=url,
        hash=metadata_hash,
        error=UNSET if failed is None else PoolMetadataError(_ERRORS[failed.code], failed.message),
        ticker=found.ticker,
        name=found.name,
        description=found.description,
        homepage=found.homepage,
    )


_ERRORS: dict[str, _ErrorCode] = {
    "connection_error": "CONNECTION_ERROR",
    "http_response_error": "HTTP_RESPONSE_ERROR",
    "size_exceeded": "SIZE_EXCEEDED",
    "hash_mismatch": "HASH_MISMATCH",
    "decode_error": "DECODE_ERROR",
    "delisted": "UNKNOWN_ERROR",
}


async def _ends(ask: ChainAsk[Page], compare: Literal[">", "<="]) -> list[PoolEnd]:
    asked = ask.question
    async with ask.snapshot() as db:
        epoch_no = ask.network.epoch_of((await tip.read(db)).slot_no)
        rows = await _retirements[compare, asked.order].all(db, epoch_no, asked.count, asked.offset)
    return [PoolEnd(show_pool_id(row.pool_id), row.epoch_no) for row in rows]


async def _page(db: Connection, ask: ChainAsk[Page]) -> list[bytes]:
    asked = ask.question
    epoch_no = ask.network.epoch_of((await tip.read(db)).slot_no)
    return await _registered[asked.order].all(db, epoch_no, asked.count, asked.offset)


def _share(part: str, whole: str) -> float:
    return int(part) / int(whole) if int(whole) else 0.0
