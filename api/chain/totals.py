"""What addresses, accounts and payment credentials have received and sent: ada and assets, over their whole history.

An address sends an output when a transaction spends it. What an owner has received is what it holds, what it has sent,
and what the ledger has dropped, so only what it has sent is kept (docs/decisions/0074-totals.md).
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TypeVar
from uuid import UUID

import msgspec

from api import errors
from api.answers import ChainAnswer, Digits
from api.ask import ChainAsk
from api.chain import names, owners, payment_credentials
from api.chain.accounts import AccountQuestion
from api.chain.addresses import AddressQuestion
from api.chain.owners import HISTORIES, HOLDINGS, OUTPUTS, OwnerKind
from api.chain.payment_credentials import CredentialQuestion
from api.chain.tip import Tip
from api.http.bodies import MAX_AT_ONCE_BYTES, in_parts
from api.parameters import Question
from shared import packed, sql
from shared.ledger import LOVELACE_NO, AddressNo, AssetNo
from shared.sql import Connection

_FEW_ASSETS = 1_000
"""So many are named at once; more are read in order, through a cursor."""

_ROWS_AT_ONCE = 200

AnswerT = TypeVar("AnswerT")
QuestionT = TypeVar("QuestionT", bound=Question)


class AssetTotals(msgspec.Struct, frozen=True):
    """The quantities of an asset that an owner has received and sent."""

    policy_id: str
    asset_name: str
    received: Digits
    sent: Digits


class OwnerTotals(msgspec.Struct, frozen=True):
    """What an owner has received and sent. All of an owner that was never used is 0.

    An output is received when a transaction or the genesis makes it, and sent when a transaction spends it, change and
    collateral included. `assets` are all that the owner has ever received, sorted by policy and name. If the index
    begins after the genesis, only its own blocks count.
    """

    received_lovelace: Digits
    sent_lovelace: Digits
    transaction_count: int
    assets: list[AssetTotals]


class Totals(msgspec.Struct, frozen=True):
    """The totals of an owner in a snapshot. `assets` reads those of its assets, sorted by policy and name, again with
    each call; they are in memory if they are `few`.
    """

    tip: Tip
    received_lovelace: int
    sent_lovelace: int
    transactions: int
    genesis_outputs: int
    few: bool
    assets: Callable[[], AsyncIterator[AssetTotals]]


async def get_address_totals(ask: ChainAsk[AddressQuestion]) -> ChainAnswer[OwnerTotals]:
    """Get what an address has received and sent.

    The answer counts everything since the genesis, ada and assets.
    """
    return await _get(ask, "address", owners.parse_address(ask.question.address, ask.network))


async def get_account_totals(ask: ChainAsk[AccountQuestion]) -> ChainAnswer[OwnerTotals]:
    """Get what the addresses of a stake account have received and sent.

    What one of them pays to another counts as sent and as received.
    """
    return await _get(ask, "account", owners.parse_stake(ask.question.stake_address, ask.network))


async def get_payment_credential_totals(ask: ChainAsk[CredentialQuestion]) -> ChainAnswer[OwnerTotals]:
    """Get what the addresses with a payment credential have received and sent.

    What one of them pays to another counts as sent and as received.
    """
    return await _get(ask, "credential", payment_credentials.parse(ask.question.payment_credential))


async def _get(ask: ChainAsk[QuestionT], owner: OwnerKind, raw: bytes) -> ChainAnswer[OwnerTotals]:
    async def show(_: Connection, totals: Totals) -> ChainAnswer[OwnerTotals]:
        return ChainAnswer(
            data=OwnerTotals(
                str(totals.received_lovelace),
                str(totals.sent_lovelace),
                totals.transactions,
                await listed(totals, totals.assets()),
            ),
            last_updated=totals.tip.last_updated(ask.network),
        )

    return await shown(ask, owner, raw, show)


async def listed(totals: Totals, entries: AsyncIterator[AnswerT]) -> list[AnswerT]:
    """A list made from the assets of totals: in parts if they are many."""
    return [entry async for entry in entries] if totals.few else in_parts(entries)


async def shown(
    ask: ChainAsk[QuestionT],
    owner: OwnerKind,
    raw: bytes,
    show: Callable[[Connection, Totals], Awaitable[AnswerT]],
) -> AnswerT:
    """The totals of an owner as `show` shows them, in the snapshot in which they were read. Raises Refusal."""

    async def read() -> AnswerT:
        async with ask.connection() as db:
            row = await _row(db, owner, raw)
            if row.inputs is not None or row.is_long or not row.in_history:
                spent = _spent_by(row.address_nos, row.owner_no, row.inputs or ())
                held, sent = _added_up(row.held_nos, row.held), _added_up(row.sent_nos, row.sent) + spent
                if max(len(held), len(sent)) <= _FEW_ASSETS:
                    return await show(db, await _of_few(db, row, held, sent))
        await ask.take_building()
        async with ask.snapshot() as db:
            row = await _row(db, owner, raw)
            spent = Counter[AssetNo]() if row.is_long else await _spent_in(db, owner, row)
            return await ask.written(await show(db, _of_many(db, owner, row, spent)))

    return await names.until_consistent(read)


async def _row(db: Connection, owner: OwnerKind, raw: bytes) -> "_Row":
    row = await _totals[owner].one(db, raw, _FEW_ASSETS, MAX_AT_ONCE_BYTES)
    if row is None:
        raise errors.network_not_available()
    return row


def _added_up(asset_nos: Iterable[AssetNo], quantities: Iterable[str]) -> "Counter[AssetNo]":
    """Quantities by asset: a payment credential may have one twice."""
    sums = Counter[AssetNo]()
    for asset_no, quantity in zip(asset_nos, quantities, strict=True):
        sums[asset_no] += int(quantity)
    return sums


async def _of_few(db: Connection, row: "_Row", held: Mapping[AssetNo, int], sent: Mapping[AssetNo, int]) -> Totals:
    moved = (held.keys() | sent.keys()) - {LOVELACE_NO}
    named = (await names.resolve(db, row.numbering, (), moved)).assets if moved else {}
    entries = []
    for asset_no, asset in sorted(named.items(), key=lambda item: (item[1].policy_id, item[1].name)):
        of_asset = sent.get(asset_no, 0)
        received = held.get(asset_no, 0) + of_asset
        entries.append(AssetTotals(asset.policy_id, asset.name, str(received), str(of_asset)))

    async def assets() -> AsyncIterator[AssetTotals]:
        for entry in entries:
            yield entry

    return _of(row, sent.get(LOVELACE_NO, 0), assets, few=True)


def _of_many(db: Connection, owner: OwnerKind, row: "_Row", spent: Mapping[AssetNo, int]) -> Totals:
    of_assets = {asset_no: str(quantity) for asset_no, quantity in spent.items() if asset_no != LOVELACE_NO}
    kept = _added_up(row.sent_nos, row.sent)  # the first: lovelace is before all assets

    async def assets() -> AsyncIterator[AssetTotals]:
        arguments = row.owner_no, list(of_assets), list(of_assets.values())
        async for part in _assets[owner].parts(db, *arguments, rows=_ROWS_AT_ONCE):
            for entry in part:
                yield entry

    return _of(row, kept[LOVELACE_NO] + spent.get(LOVELACE_NO, 0), assets, few=False)


def _of(row: "_Row", sent_lovelace: int, assets: Callable[[], AsyncIterator[AssetTotals]], *, few: bool) -> Totals:
    return Totals(
        tip=Tip(row.tip_slot_no, row.tip_hash),
        received_lovelace=int(row.lovelace) + int(row.dropped_lovelace) + sent_lovelace,
        sent_lovelace=sent_lovelace,
        transactions=row.transactions,
        genesis_outputs=row.genesis_outputs,
        few=few,
        assets=assets,
    )


def _spent_by(
    address_nos: Iterable[AddressNo] | None, owner_no: int | None, inputs: Iterable[bytes]
) -> "Counter[AssetNo]":
    """What the inputs of transactions spend, by asset: from these addresses, those of an account, or from one."""
    addresses = {owner_no} if address_nos is None else set(address_nos)
    spent = Counter[AssetNo]()
    for of_transaction in inputs:
        for each in packed.unpack_inputs(of_transaction):
            source = each.source
            if source is not None and source.address_no in addresses:
                spent[LOVELACE_NO] += source.lovelace
                for asset_no, quantity in source.quantities.items():
                    spent[asset_no] += quantity
    return spent


async def _spent_in(db: Connection, owner: OwnerKind, row: "_Row") -> "Counter[AssetNo]":
    """The same of all transactions of a short history, one after the other, in a snapshot."""
    spent = Counter[AssetNo]()
    async for part in _inputs[owner].parts(db, row.owner_no, row.in_history - 1, rows=1):
        address_nos = None
        if owner == "account":
            among = {each.source.address_no for inputs in part for each in packed.unpack_spent(inputs) if each.source}
            address_nos = await _addresses.all(db, row.owner_no, list(among))
        spent.update(_spent_by(address_nos, row.owner_no, part))
    return spent


class _Row(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes
    numbering: UUID
    owner_no: int | None
    lovelace: str
    transactions: int
    in_history: int
    is_long: bool
    dropped_lovelace: str
    genesis_outputs: int
    held_nos: list[AssetNo]
    held: list[str]
    sent_nos: list[AssetNo]
    sent: list[str]
    inputs: list[bytes] | None
    address_nos: list[AddressNo] | None


_sql = sql.beside(__file__)
_PARTS: dict[OwnerKind, dict[str, str]] = {
    "address": {**HOLDINGS["address"], "sent": "address_sent", "owner_no": "address_no"},
    "account": {**HOLDINGS["account"], "sent": "account_sent", "owner_no": "stake_no"},
}
_OTHERS = {
    "holder": "credential_holder",
    "holder_no": "credential_no",
    "sent": "credential_sent",
    "owner_no": "credential_no",
}
_EXPRESSIONS: dict[OwnerKind, dict[str, str]] = {
    "address": {
        "dropped": _sql.text("dropped_at_address"),
        "genesis": _sql.text("genesis_of_address"),
        "address_nos": "NULL::integer[]",
    },
    "account": {
        "dropped": "0",
        "genesis": _sql.text("genesis_of_account"),
        "address_nos": _sql.text("addresses_of_account"),
    },
}
_totals: dict[OwnerKind, sql.Query[_Row]] = {
    owner: _sql.query(
        "totals", _Row, **OUTPUTS[owner], **HOLDINGS[owner], **_EXPRESSIONS[owner],
        history=HISTORIES[owner]["history"], sent=_PARTS[owner]["sent"],
    )
    for owner in OUTPUTS
}  # fmt: skip
_totals["credential"] = _sql.query("totals_of_credential", _Row, genesis=_sql.text("genesis_of_credential"))
_inputs: dict[OwnerKind, sql.Query[bytes]] = {
    owner: _sql.values("inputs", bytes, history=HISTORIES[owner]["history"]) for owner in OUTPUTS
}
_inputs["credential"] = _inputs["address"]
_addresses = _sql.values("addresses", AddressNo)
_moved: dict[OwnerKind, str] = {owner: _sql.text("moved", **parts) for owner, parts in _PARTS.items()}
_moved["credential"] = "\nUNION ALL\n".join((_moved["address"], _sql.text("moved", **_OTHERS)))
_assets = {owner: _sql.query("assets", AssetTotals, moved=moved) for owner, moved in _moved.items()}
