"""What pools publish of themselves (CIP-6), as the usage aggregator has fetched it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from api.answers import Answer, Instant
from api.ask import ChainAsk
from api.chain import pools
from api.chain.pools import PoolQuestion, StakePool
from api.sources import pool_document
from api.sources.pool_document import FailureCode
from shared import sql
from shared.ledger import parse_pool_id
from shared.network import Network


class MetadataFailure(msgspec.Struct, frozen=True):
    """Why there is no metadata: a code, and a sentence.

    The last attempt to fetch it failed, or the operator of this service has delisted the pool.
    """

    code: FailureCode | Literal["delisted"]
    message: str


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of one pool; None without metadata, unless an `error` says why not: then it has not been fetched."""

    name: str | None = None
    ticker: str | None = None
    description: str | None = None
    homepage: str | None = None
    fetched_at: Instant | None = None
    error: MetadataFailure | None = None


class PoolMetadata(Published, frozen=True, kw_only=True):
    """What a pool publishes at the URL of its latest registration, once fetched and found to have the registered hash.

    Names and texts are the pool's own and are not verified. Control characters are removed from them.
    """

    pool_id: str
    pool_id_hex: str
    metadata_url: str | None
    metadata_hash: str | None


class Location(NamedTuple):
    """A pool, with the URL and the hash of one of its registrations, if it has them."""

    pool_id: str
    url: str | None
    hash: str | None


class _Row(msgspec.Struct, frozen=True):
    is_delisted: bool
    content: bytes | None
    fetched_at: datetime | None
    failure_code: FailureCode | None
    failure: str | None


_sql = sql.beside(__file__)
_published = _sql.query("published", _Row)

_DELISTED = MetadataFailure("delisted", "The operator of this service does not show the metadata of this pool.")
# NOTE: not the reason, which would tell whoever registers a URL about names and addresses of a private network.
_UNREACHABLE = "The server of the metadata can't be reached, or its address is not public."


async def get_pool_metadata(ask: ChainAsk[PoolQuestion]) -> Answer[PoolMetadata]:
    """Get what a stake pool publishes of itself."""
    ask.notes.may_change = True  # it is fetched apart
    async with ask.snapshot() as db:
        pool = (await pools.get_pool(ask.about(ask.question, db))).data
        (found,) = await published(db, ask.network, [location(pool)])
    return Answer(
        data=PoolMetadata(
            pool_id=pool.pool_id,
            pool_id_hex=pool.pool_id_hex,
            metadata_url=pool.metadata_url,
            metadata_hash=pool.metadata_hash,
            **msgspec.structs.asdict(found),
        )
    )


async def published(db: sql.Connection, network: Network, asked: Sequence[Location]) -> list[Published]:
    """What is at each of these locations."""
    rows = await _published.all(
        db,
        network.network_id,
        [parse_pool_id(each.pool_id) for each in asked],
        [None if each.hash is None else bytes.fromhex(each.hash) for each in asked],
        [None if each.url is None else each.url.encode() for each in asked],
    )
    return [Published() if each.url is None else _shown(row) for each, row in zip(asked, rows, strict=True)]


def location(pool: StakePool) -> Location:
    """Where a pool publishes."""
    return Location(pool.pool_id, pool.metadata_url, pool.metadata_hash)


def _shown(row: _Row) -> Published:
    if row.is_delisted:
        return Published(error=_DELISTED)
    if row.content is not None:
        texts = pool_document.shown(pool_document.read(row.content))
        return Published(
            name=texts.name,
            ticker=texts.ticker,
            description=texts.description,
            homepage=texts.homepage,
            fetched_at=row.fetched_at,
        )
    if row.failure_code is None or row.failure is None:
        return Published()
    text = _UNREACHABLE if row.failure_code == "connection_error" else f"{row.failure[0].upper()}{row.failure[1:]}."
    return Published(error=MetadataFailure(row.failure_code, text))
