"""Stake pools: one pool, and its delegators."""

from fractions import Fraction
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.answers import Answer, Digits, ObjectPage, Paging
from api.ask import ChainAsk
from api.chain import tip
from api.parameters import JsonSchema, Kind, Limit, Offset, Question
from shared import address, packed, sql
from shared.encoding import bech32_encode
from shared.ledger import HASH28_BYTES, POOL_HRP, PoolNo, parse_pool_id
from shared.network import MAX_SUPPLY

_HEX_PATTERN = f"[0-9a-fA-F]{{{2 * HASH28_BYTES}}}"


class PoolIdKind(Kind[bytes]):
    """A pool id: bech32 `pool1…` or 56 hex digits, in upper or lower case."""

    def __init__(self) -> None:
        schema: JsonSchema = {
            "type": "string",
            "pattern": f"^({_HEX_PATTERN}|pool1[0-9a-z]{{51}}|POOL1[0-9A-Z]{{51}})$",
        }
        super().__init__("a pool ID", schema, errors.invalid_pool_id)

    def of_text(self, text: str) -> bytes:
        return parse_pool_id(text)


class PoolQuestion(Question, frozen=True, kw_only=True):
    """A stake pool."""

    pool: Annotated[bytes, PoolIdKind()] = msgspec.field(name="poolId")


class DelegatorsQuestion(PoolQuestion, frozen=True, kw_only=True):
    """A page of a pool's delegators."""

    limit: Limit = 100
    offset: Offset = 0


class Relay(msgspec.Struct, frozen=True):
    """The address of a pool's relay: either `ipv4` or `dns`, which is a host name or, without one, an IPv6 address.

    `port` is 0 if the certificate names none, as for an SRV record, which contains the port.
    """

    port: int
    ipv4: str | UnsetType = UNSET
    dns: str | UnsetType = UNSET


class StakePool(msgspec.Struct, frozen=True):
    """A stake pool: the parameters of its latest registration, its stake and its blocks.

    `margin` is exact if the registered ratio has a finite decimal form. `active_stake` is the snapshot used in the
    current epoch; `live_stake` is the sum of the delegators' amounts: their unspent outputs and their rewards as last
    read from the ledger. `saturation` is 0 until the ledger has been read once.
    """

    pool_id: str
    pool_id_hex: str
    vrf_key_hash: str
    pledge: Digits
    margin: Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "number", "minimum": 0, "maximum": 1})]
    fixed_cost: Digits
    reward_account: str | None
    owners: list[str]
    relays: list[Relay]
    metadata_url: str | None
    metadata_hash: str | None
    active_stake: Digits
    live_stake: Digits
    delegator_count: int
    blocks_minted: int
    blocks_epoch: int
    saturation: float
    status: Literal["active", "retiring", "retired"]
    retiring_epoch: int | None


class Delegator(msgspec.Struct, frozen=True):
    """A stake credential, the amount that it delegates, and the first epoch in which the delegation is active."""

    stake_address: str
    amount: Digits
    active_epoch_no: int


class Delegators(msgspec.Struct, frozen=True):
    """A page of a pool's delegators, largest first."""

    pool_id: str
    delegators: list[Delegator]


class _PoolRow(msgspec.Struct, frozen=True):
    parameters: bytes
    retirement_epoch_no: int | None
    active_stake: int
    live_stake: int
    delegator_count: int
    blocks_minted: int
    blocks_epoch: int
    reserves: int | None
    desired_pools: int | None


class _DelegatorRow(msgspec.Struct, frozen=True):
    pool_no: PoolNo | None
    total: int
    account: bytes | None  # null, like the next two, in the row of an empty page
    amount: int
    active_epoch_no: int
    tip_hash: bytes


_sql = sql.beside(__file__)
pool_of = _sql.query("pool", _PoolRow)
delegators_of = _sql.query("delegators", _DelegatorRow)


async def get_pool(ask: ChainAsk[PoolQuestion]) -> Answer[StakePool]:
    """Get a stake pool."""
    async with ask.snapshot() as db:
        epoch_no = ask.network.epoch_of((await tip.read(db)).slot_no)
        row = await pool_of.one(db, ask.question.pool, epoch_no)
    if row is None:
        raise errors.pool_not_found()
    registered = packed.unpack_pool_parameters(row.parameters)
    retiring_epoch_no = row.retirement_epoch_no
    retired = retiring_epoch_no is not None and retiring_epoch_no <= epoch_no
    return Answer(
        data=StakePool(
            pool_id=show_pool_id(ask.question.pool),
            pool_id_hex=ask.question.pool.hex(),
            vrf_key_hash=registered.vrf_key_hash.hex(),
            pledge=str(registered.pledge),
            margin=show_ratio(Fraction(registered.margin)),
            fixed_cost=str(registered.fixed_cost),
            reward_account=None if registered.reward_account is None else address.show_stake(registered.reward_account),
            owners=[address.show_stake(owner) for owner in registered.owners],
            relays=[shown for relay in registered.relays if (shown := show_relay(relay)) is not None],
            metadata_url=registered.metadata_url,
            metadata_hash=None if registered.metadata_hash is None else registered.metadata_hash.hex(),
            active_stake=str(row.active_stake),
            live_stake=str(row.live_stake),
            delegator_count=row.delegator_count,
            blocks_minted=row.blocks_minted,
            blocks_epoch=row.blocks_epoch,
            saturation=_saturation(row),
            status="retired" if retired else "active" if retiring_epoch_no is None else "retiring",
            retiring_epoch=None if retired else retiring_epoch_no,
        )
    )


async def list_pool_delegators(ask: ChainAsk[DelegatorsQuestion]) -> ObjectPage[Delegators, Paging]:
    """List the delegators of a stake pool by stake, largest first."""
    asked = ask.question
    async with ask.connection() as db:
        rows = await delegators_of.all(db, asked.pool, asked.limit, asked.offset)
    if not rows:
        raise errors.network_not_available()
    if rows[0].pool_no is None:
        raise errors.pool_not_found()
    ask.notes.snapshot_block = rows[0].tip_hash.hex()
    accounts = [row.account for row in rows if row.account is not None]
    delegators = [
        Delegator(shown, str(row.amount), row.active_epoch_no)
        for shown, row in zip(address.show_stakes(accounts, ask.network), rows, strict=False)
    ]
    total = rows[0].total
    return ObjectPage(
        data=Delegators(show_pool_id(asked.pool), delegators),
        pagination=Paging(asked.limit, asked.offset, total, asked.offset + len(delegators) < total),
    )


def show_pool_id(pool: bytes) -> str:
    """A pool id of 28 bytes as bech32, `pool1…`."""
    return bech32_encode(POOL_HRP, pool)


def show_relay(relay: packed.Relay) -> Relay | None:
    """A relay in one of the two forms of the specification, None if it names no host."""
    port = relay.port or 0
    if relay.ipv4 is not None:
        return Relay(port, ipv4=relay.ipv4)
    name = relay.hostname if relay.hostname is not None else relay.ipv6
    return None if name is None else Relay(port, dns=name)


def show_ratio(ratio: Fraction) -> msgspec.Raw:
    """A ratio as a JSON number: exact if its decimal form is finite, else the nearest double."""
    places = decimal_places(ratio)
    if places is None:
        return msgspec.Raw(repr(float(ratio)).encode())
    digits = str(ratio.numerator * 10**places // ratio.denominator).rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
    return msgspec.Raw((f"{whole}.{fraction}" if fraction else whole).encode())


def decimal_places(ratio: Fraction) -> int | None:
    """The number of decimal places that show a ratio exactly; None if its decimal form is infinite."""
    places, rest = 0, ratio.denominator
    for prime in (2, 5):
        exponent = 0
        while rest % prime == 0:
            rest //= prime
            exponent += 1
        places = max(places, exponent)
    return places if rest == 1 else None


def _saturation(row: _PoolRow) -> float:
    """Live stake divided by the stake at which rewards stop growing: the circulating supply per desired pool."""
    if row.reserves is None or row.desired_pools is None:
        return 0.0
    return row.live_stake * row.desired_pools / (MAX_SUPPLY - row.reserves)
