"""Whole lists of holders as CSV, each from one snapshot."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import IO, Annotated

import msgspec
import structlog
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import IOBasePayload

from api import errors
from api.ask import ChainAsk
from api.chain import assets, tip
from api.chain.assets import AssetId, AssetKind, Fingerprint, HolderEntry, PolicyKind
from api.parameters import Question
from shared import sql
from shared.network import Network

log = structlog.get_logger()

MEDIA_TYPES = ("text/csv",)
_ROWS_AT_ONCE = 1_000
_BYTES_AT_ONCE = 65_536
# The time that a caller has to read a file. NOTE: the whole file, since buffers make a steady reader seem to pause.
_GRACE_S = 60.0
_SLOWEST_BYTES_S = 100_000

_HOLDER, _ACCOUNT_HOLDER = (kind.__struct_fields__ for kind in (assets.Holder, assets.AccountHolder))
Show = Callable[[Sequence[HolderEntry], Network], Sequence[msgspec.Struct]]


class AssetExport(Question, frozen=True, kw_only=True):
    """The asset whose holders are exported."""

    asset: Annotated[AssetId | Fingerprint, AssetKind()]


class PolicyExport(Question, frozen=True, kw_only=True):
    """The policy whose holders are exported."""

    policy: Annotated[bytes, PolicyKind()] = msgspec.field(name="policyId")


async def holders(ask: ChainAsk[AssetExport]) -> web.Response:
    """Download all holders of an asset as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    asset = await assets.asset_of(ask, ask.question.asset)
    return await _csv(ask, asset, assets.all_holders, assets.show_holders, _HOLDER)


async def account_holders(ask: ChainAsk[AssetExport]) -> web.Response:
    """Download all holders of an asset by stake account as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    asset = await assets.asset_of(ask, ask.question.asset)
    return await _csv(ask, asset, assets.all_account_holders, assets.show_account_holders, _ACCOUNT_HOLDER)


async def policy_holders(ask: ChainAsk[PolicyExport]) -> web.Response:
    """Download all holders of a policy as CSV, largest first.

    All lines are as of one block, whose slot is in the file name.
    """
    return await _csv(ask, ask.question.policy, assets.all_policy_holders, assets.show_holders, _HOLDER)


async def policy_account_holders(ask: ChainAsk[PolicyExport]) -> web.Response:
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
    async with AsyncExitStack() as stack:
        folder = await stack.enter_async_context(ask.services.downloads.turn(ask.key.credential_id))
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 - the stack closes it
        file.write(_lines([columns]))
        async with ask.services.export_slots, ask.snapshot() as db:
            last = await tip.read(db)
            if isinstance(held, AssetId) and await assets.one(db, held, ask.network) is None:
                raise errors.asset_not_found()
            key = (held.policy_id, held.asset_name) if isinstance(held, AssetId) else (held,)
            async for rows in query.parts(db, *key, rows=_ROWS_AT_ONCE):
                file.write(_lines([msgspec.structs.astuple(each) for each in show(rows, ask.network)]))
        file.seek(0)
        name = f'attachment; filename="holders-{last.slot_no}.csv"'
        headers = {"Content-Type": "text/csv;charset=utf-8", "Content-Disposition": name}
        return web.Response(body=_Download(file, stack.pop_all()), headers=headers)


class _Download(IOBasePayload):
    """A file as the body of an answer. Closing it ends its turn; the server closes it after every request."""

    def __init__(self, file: IO[bytes], held: AsyncExitStack) -> None:
        """`held` are the file and its turn."""
        super().__init__(file)
        self._held = held

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the file. Raises ConnectionError if the caller reads too slowly."""
        within_s = _GRACE_S + os.fstat(self._value.fileno()).st_size / _SLOWEST_BYTES_S
        try:
            async with asyncio.timeout(within_s):
                while part := await asyncio.to_thread(self._value.read, _BYTES_AT_ONCE):
                    await writer.write(part)
        except TimeoutError as cause:
            log.warning("download.not_read", within_s=round(within_s))
            if writer.transport is not None:
                writer.transport.abort()  # closing it would send the rest first
            raise ConnectionError("the caller reads too slowly") from cause

    async def close(self) -> None:
        """End the turn, and free the file's space."""
        await self._held.aclose()


def _lines(rows: Sequence[Sequence[str | None]]) -> bytes:
    return "".join(f"{','.join(field or '' for field in row)}\r\n" for row in rows).encode()
