"""Whole lists of holders as CSV, each from one snapshot."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Annotated

import msgspec
from aiohttp import web

from api import errors
from api.ask import ChainAsk
from api.chain import assets, tip
from api.chain.assets import AssetId, AssetKind, Fingerprint, HolderEntry, PolicyKind
from api.http.sending import SentFile
from api.parameters import Question
from api.repeats.caching import SNAPSHOT_BLOCK
from shared import sql
from shared.network import Network

MEDIA_TYPES = ("text/csv",)
_ROWS_AT_ONCE = 1_000

_HOLDER, _ACCOUNT_HOLDER = (kind.__struct_fields__ for kind in (assets.Holder, assets.AccountHolder))
Show = Callable[[Sequence[HolderEntry], Network], Sequence[msgspec.Struct]]


class AssetExport(Question, frozen=True, kw_only=True):
    """The asset whose holders are exported."""

    asset: Annotated[AssetId | Fingerprint, AssetKind()]


class PolicyExport(Question, frozen=True, kw_only=True):
    """The policy whose holders are exported."""

    policy: Annotated[bytes, PolicyKind()] = msgspec.field(name="policyId")


async def export_asset_holders(ask: ChainAsk[AssetExport]) -> web.Response:
    """Download all holders of an asset as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    asset = await assets.asset_of(ask, ask.question.asset)
    return await _csv(ask, asset, assets.all_holders, assets.show_holders, _HOLDER)


async def export_asset_account_holders(ask: ChainAsk[AssetExport]) -> web.Response:
    """Download all holders of an asset by stake account as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    asset = await assets.asset_of(ask, ask.question.asset)
    return await _csv(ask, asset, assets.all_account_holders, assets.show_account_holders, _ACCOUNT_HOLDER)


async def export_policy_holders(ask: ChainAsk[PolicyExport]) -> web.Response:
    """Download all holders of a policy as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    return await _csv(ask, ask.question.policy, assets.all_policy_holders, assets.show_holders, _HOLDER)


async def export_policy_account_holders(ask: ChainAsk[PolicyExport]) -> web.Response:
    """Download all holders of a policy by stake account as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    show = assets.show_account_holders
    return await _csv(ask, ask.question.policy, assets.all_policy_account_holders, show, _ACCOUNT_HOLDER)


async def _csv(
    ask: ChainAsk[AssetExport] | ChainAsk[PolicyExport],
    held: AssetId | bytes,
    query: sql.Query[HolderEntry],
    show: Show,
    columns: Sequence[str],
) -> web.Response:
    """The holders of an asset or of a policy as a file: read from one snapshot to disk, then sent from there.

    So a slow client holds neither a connection nor a snapshot, memory use is bounded, and an error has a status. A
    download holds one of a few turns until the file is sent, so disk use is bounded, too. Addresses and digits need no
    quotes.
    """
    if ask.notes.is_head:
        async with ask.snapshot() as db:
            return web.Response(headers=await _headers(ask, held, db))
    async with AsyncExitStack() as stack:
        folder = await stack.enter_async_context(ask.services.downloads.turn(ask.key.credential_id))
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 - the stack closes it
        file.write(_lines([columns]))
        async with (
            ask.services.export_slots,
            ask.source.connection(ask.network) as db,  # no other request of the caller waits for it
            db.transaction(isolation="repeatable_read", readonly=True),
        ):
            headers = await _headers(ask, held, db)
            key = (held.policy_id, held.asset_name) if isinstance(held, AssetId) else (held,)
            async for rows in query.parts(db, *key, rows=_ROWS_AT_ONCE):
                file.write(_lines([msgspec.structs.astuple(holder) for holder in show(rows, ask.network)]))
        file.seek(0)
        return web.Response(body=SentFile(file, stack.pop_all()), headers=headers)


async def _headers(
    ask: ChainAsk[AssetExport] | ChainAsk[PolicyExport], held: AssetId | bytes, db: sql.Connection
) -> dict[str, str]:
    """The headers of a file, in its snapshot. Raises Refusal for an unknown asset."""
    last = await tip.read(db)
    if isinstance(held, AssetId) and await assets.read(db, held, ask.network) is None:
        raise errors.asset_not_found()
    name = f'attachment; filename="holders-{last.slot_no}.csv"'
    content = {"Content-Type": "text/csv;charset=utf-8", "Content-Disposition": name}
    return content | {SNAPSHOT_BLOCK: last.block_hash.hex()}


def _lines(rows: Sequence[Sequence[str | None]]) -> bytes:
    return "".join(f"{','.join(field or '' for field in row)}\r\n" for row in rows).encode()
