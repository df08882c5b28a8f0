"""The blocks of a node, packed: read in this process, or in a second one that reads ahead.

Outside bulk, one process reads and writes each block. In bulk, decoding is two fifths of Python's work and runs on a
second core (docs/decisions/0015): a second process with its own connection decodes and packs blocks, and sends them
through a socket. It neither decides nor commits anything, and ends with its parent.
"""

import asyncio
import gc
import multiprocessing
import signal
import socket
import traceback
from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from multiprocessing import resource_tracker

import aiohttp
import msgspec
import uvloop

from indexer.blocks import effects, packed_block
from indexer.blocks.packed_block import PackedBlock
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames
from indexer.ogmios.connection import Connect, RollBackward
from shared import lifecycle
from shared.ledger import Point
from shared.network import Network, by_name

NodeMessage = PackedBlock | RollBackward

_AHEAD = 200
_LENGTH_BYTES = 4


async def read_in_process(node: ogmios.Ogmios, network: Network) -> AsyncGenerator[NodeMessage, None]:
    """The messages after the intersection, without end. Raises the errors of Ogmios.messages."""
    async for message in node.messages():
        if isinstance(message, RollBackward):
            yield message
        else:
            # NOTE: immediately, while the block is in the processor's cache: twice as fast as a batch at a time.
            yield packed_block.pack(effects.of_block(message.block), message.tip, network)


async def read_in_child(connect: Connect, network: Network, point: Point | None) -> AsyncGenerator[NodeMessage, None]:
    """The messages after a block of the node's chain (None: the origin), read by a child process.

    `connect` is called there and must be picklable. Raises the errors of Ogmios.messages, and ConnectionError if the
    process ended or the block is no longer in the node's chain.
    """
    ours, theirs = socket.socketpair()
    process = multiprocessing.get_context("spawn").Process(
        target=_read, args=(theirs, connect, network.name, point), daemon=True
    )
    with ours:
        with theirs:
            _start_with_signals_blocked(process)
        try:
            from_child, to_child = await asyncio.open_unix_connection(sock=ours)
            with closing(to_child):
                while True:
                    delivery = await _receive(from_child)
                    for block in delivery.blocks:
                        yield block
                    if delivery.back is not None:
                        yield delivery.back
                    if delivery.failure is not None:
                        kind, message = delivery.failure
                        raise _FAILURES[kind](message)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            raise ConnectionResetError("the process that reads ahead ended") from None
        finally:
            process.kill()
            process.join()


def _start_with_signals_blocked(process: multiprocessing.context.SpawnProcess) -> None:
    """Start a process that ignores a terminal's Ctrl-C and a supervisor's SIGTERM: it ends when this one does."""
    # NOTE: otherwise `start` would start multiprocessing's tracker, and unblock the signals before our process starts.
    resource_tracker.ensure_running()
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


class _Delivery(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Blocks, then a rollback, or the error that ended the reading (its kind and message)."""

    blocks: list[PackedBlock]
    back: RollBackward | None
    failure: tuple[str, str] | None


# The errors that the parent raises, by name.
_FAILURES: dict[str, type[Exception]] = {
    kind.__name__: kind for kind in (ogmios.Refused, frames.Unreadable, ConnectionError, AssertionError, RuntimeError)
}
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Delivery).decode


async def _receive(from_child: asyncio.StreamReader) -> _Delivery:
    length = int.from_bytes(await from_child.readexactly(_LENGTH_BYTES))
    return _decode(await from_child.readexactly(length))


# In the process that reads --------------------------------------------------------------------------------------------


_Packed = msgspec.Raw | RollBackward | tuple[str, str]
"""A block as bytes, a rollback, or the error that ended the reading (its kind and message)."""


def _read(parent: socket.socket, connect: Connect, network_name: str, point: Point | None) -> None:
    gc.set_threshold(100_000)  # blocks are trees, and leave no cycles behind
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(parent, connect, by_name[network_name], point))


async def _serve(parent: socket.socket, connect: Connect, network: Network, point: Point | None) -> None:
    """Deliver until the parent has gone."""
    from_parent, to_parent = await asyncio.open_unix_connection(sock=parent)
    queue: asyncio.Queue[_Packed] = asyncio.Queue(maxsize=_AHEAD)
    filling = asyncio.create_task(_fill(queue, connect, network, point))
    with suppress(ConnectionError):
        # The parent sends nothing, so the read returns only when the parent has gone.
        await lifecycle.first_of(_deliver(queue, to_parent), from_parent.read())
    filling.cancel()
    await asyncio.gather(filling, return_exceptions=True)


async def _fill(queue: "asyncio.Queue[_Packed]", connect: Connect, network: Network, point: Point | None) -> None:
    try:
        node = await connect()
        try:
            intersection, _ = await node.intersect([] if point is None else [point])
            if intersection != point:
                raise ConnectionResetError(f"{point} is no longer on the node's chain")
            async for message in read_in_process(node, network):
                await queue.put(msgspec.Raw(_encode(message)) if isinstance(message, PackedBlock) else message)
                # NOTE: neither await above suspends while input is ready, so this one lets `_deliver` run.
                await asyncio.sleep(0)
        finally:
            await node.close()
    except (ogmios.Refused, frames.Unreadable) as cause:
        await queue.put((type(cause).__name__, str(cause)))
    except (OSError, aiohttp.ClientError) as cause:
        await queue.put((ConnectionError.__name__, str(cause) or type(cause).__name__))
    except AssertionError:  # a bug: the parent stops
        await queue.put((AssertionError.__name__, traceback.format_exc()))
    except Exception:  # noqa: BLE001 - the parent logs it, and retries
        await queue.put((RuntimeError.__name__, traceback.format_exc()))


async def _deliver(queue: "asyncio.Queue[_Packed]", to_parent: asyncio.StreamWriter) -> None:
    """Send all queued messages as one delivery; deliveries grow while the parent is busy."""
    while True:
        blocks: list[msgspec.Raw] = []
        back = failure = None
        message = await queue.get()
        while True:
            if isinstance(message, msgspec.Raw):
                blocks.append(message)
            elif isinstance(message, RollBackward):
                back = message
            else:
                failure = message
            if back or failure or queue.empty():
                break
            message = queue.get_nowait()
        body = _encode((blocks, back, failure))
        to_parent.write(len(body).to_bytes(_LENGTH_BYTES))
        to_parent.write(body)
        await to_parent.drain()
