"""The chain as a node tells it, in parcels: read in this process, or ahead of it in one of its own.

Near the tip a block is read, written and answered for in one process. In bulk, decoding is two fifths of Python's
work, and a second core does it (docs/decisions/0015): a process with a connection of its own decodes and packs, and
hands over what waits through a socket. It decides and commits nothing, and ends with its parent.
"""

import asyncio
import gc
import multiprocessing
import signal
import socket
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import closing
from multiprocessing import resource_tracker

import aiohttp
import msgspec
import uvloop

from indexer import frames, ogmios, parcels
from indexer.ogmios import Backward, Ogmios
from indexer.parcels import Parcel
from shared.ledger import Point
from shared.network import Network, by_name

Step = Parcel | Backward
Connect = Callable[[], Awaitable[Ogmios]]

_AHEAD = 200
_LENGTH_BYTES = 4


async def here(node: Ogmios, network: Network) -> AsyncGenerator[Step, None]:
    """What follows the intersection, for ever. Raises what Ogmios.messages does."""
    async for message in node.messages():
        # NOTE: packed at once, while the block is in the processor's cache.
        yield message if isinstance(message, Backward) else parcels.pack(message, network)


async def apart(connect: Connect, network: Network, point: Point | None) -> AsyncGenerator[Step, None]:
    """What follows a block of the node's chain, None for the origin, read by another process.

    `connect` is taken there, and so must be one that pickles. Raises what Ogmios.messages does, and ConnectionError
    where the process ended or the node has left that block.
    """
    ours, theirs = socket.socketpair()
    process = multiprocessing.get_context("spawn").Process(
        target=_read, args=(theirs, connect, network.name, point), daemon=True
    )
    with ours:
        with theirs:
            _start_deaf(process)
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            with closing(writer):
                while True:
                    delivery = await _receive(reader)
                    for parcel in delivery.parcels:
                        yield parcel
                    if delivery.back is not None:
                        yield delivery.back
                    if delivery.failure is not None:
                        kind, message = delivery.failure
                        raise _FAILURES.get(kind, RuntimeError)(message)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            raise ConnectionResetError("the process that reads ahead ended") from None
        finally:
            process.kill()
            process.join()


def _start_deaf(process: multiprocessing.context.SpawnProcess) -> None:
    """Start a process that no terminal's Ctrl-C and no supervisor's SIGTERM reaches: it ends when this one does."""
    # NOTE: else `start` starts multiprocessing's tracker, after which it lets signals through to what it starts next.
    resource_tracker.ensure_running()
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


class _Delivery(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Parcels, and what came after them if it was none: a way back, or what ended the reading (kind and message)."""

    parcels: list[Parcel]
    back: Backward | None
    failure: tuple[str, str] | None


# What is passed on as what it is; anything else is a fault in this program.
_FAILURES: dict[str, type[Exception]] = {
    "Refused": ogmios.Refused,
    "Unreadable": frames.Unreadable,
    "ConnectionError": ConnectionError,
}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Delivery).decode


async def _receive(reader: asyncio.StreamReader) -> _Delivery:
    length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES))
    return _decode(await reader.readexactly(length))


# In the process that reads --------------------------------------------------------------------------------------------


_Packed = msgspec.Raw | Backward | tuple[str, str]
"""A parcel, packed; a way back; or what ended the reading."""


def _read(parent: socket.socket, connect: Connect, network_name: str, point: Point | None) -> None:
    gc.set_threshold(100_000)  # blocks are trees, and leave no cycles behind
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parent, connect, by_name[network_name], point))


async def _serve(parent: socket.socket, connect: Connect, network: Network, point: Point | None) -> None:
    """Deliver until there is nobody left to deliver to."""
    reader, writer = await asyncio.open_unix_connection(sock=parent)
    queue: asyncio.Queue[_Packed] = asyncio.Queue(maxsize=_AHEAD)
    filling = asyncio.create_task(_fill(queue, connect, network, point))
    # The parent says nothing: to read is to wait for its end.
    ends = [asyncio.create_task(_deliver(queue, writer)), asyncio.create_task(reader.read())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in (filling, *ends):
        task.cancel()
    await asyncio.gather(filling, *ends, return_exceptions=True)


async def _fill(queue: "asyncio.Queue[_Packed]", connect: Connect, network: Network, point: Point | None) -> None:
    try:
        node = await connect()
        try:
            intersection, _ = await node.intersect([] if point is None else [point])
            if intersection != point:
                raise ConnectionResetError(f"the node has left {point}")
            async for step in here(node, network):
                await queue.put(msgspec.Raw(_encode(step)) if isinstance(step, Parcel) else step)
                # NOTE: neither of these waits as long as there is something to read, and deliveries need their turns.
                await asyncio.sleep(0)
        finally:
            await node.close()
    except (ogmios.Refused, frames.Unreadable) as cause:
        await queue.put((type(cause).__name__, str(cause)))
    except (OSError, aiohttp.ClientError) as cause:
        await queue.put(("ConnectionError", str(cause) or type(cause).__name__))
    except Exception:  # noqa: BLE001 - a fault in this program, with which the parent ends
        await queue.put(("fault", traceback.format_exc()))


async def _deliver(queue: "asyncio.Queue[_Packed]", writer: asyncio.StreamWriter) -> None:
    """Hand over whatever waits, as one delivery; while the parent is busy, more does."""
    while True:
        parcels: list[msgspec.Raw] = []
        back = failure = None
        step = await queue.get()
        while True:
            if isinstance(step, msgspec.Raw):
                parcels.append(step)
            elif isinstance(step, Backward):
                back = step
            else:
                failure = step
            if back or failure or queue.empty():
                break
            step = queue.get_nowait()
        body = _encode((parcels, back, failure))
        writer.write(len(body).to_bytes(_LENGTH_BYTES))
        writer.write(body)
        await writer.drain()
