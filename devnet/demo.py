"""`make demo`: the whole service on this machine, on a generated chain that grows, until Ctrl-C.

Every part is the real one and started as an operator starts it; only the chain is made up. That chain must not get into
a real database: the demo always has embedded servers, in a folder of its own under DATA_DIR that goes with it.
"""

import asyncio
import itertools
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import typer
import uvloop
from rich.console import Console

from devnet.blocks import Chain
from devnet.generator import Generated, options_of
from devnet.server import Server
from shared import log, servers, settings

NETWORK, NETWORK_ID = "preview", 1
BLOCKS = 3_000
NEW_BLOCK_EVERY_S = 2.0
FORK_EVERY, FORK_DEPTH = 15, 3
READY_WITHIN_S = 180.0
ENDS_WITHIN_S = 12.0
ASK_EVERY_S = 0.02

NAMED_NOWHERE = {"DATABASE_URL": "", "READ_DATABASE_URL": "", "REDIS_URL": "", "LOG_FORMAT": "console"}
CHECKOUT = Path(__file__).parents[1]
Answer = TypeVar("Answer")
console = Console(highlight=False, soft_wrap=True)


class DemoFailed(Exception):
    """A part ended, or did not get ready. The text is for the one who looks on."""


class Stopped(Exception):
    """Ctrl-C."""


class Part:
    """A process of the service, in a session of its own: Ctrl-C reaches the demo alone, which ends the parts."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, output: Path) -> None:
        self.name = name
        self._process = process
        self._output = output

    def must_run(self) -> None:
        """Raises DemoFailed, with what the process said last, if it has ended."""
        if self._process.returncode is not None:
            said = "\n".join(self._output.read_text(errors="replace").splitlines()[-8:])
            raise DemoFailed(f"The {self.name} ended with status {self._process.returncode}:\n{said}")

    async def end(self) -> None:
        """SIGTERM, and SIGKILL where that does not do within the time that every process is granted."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), ENDS_WITHIN_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()


class Demo:
    """What runs, and the waiting for it."""

    def __init__(self, folder: Path, stop: asyncio.Event) -> None:
        self._folder = folder
        self._stop = stop
        self._parts: list[Part] = []

    @asynccontextmanager
    async def part(self, name: str, *command: str, **environment: str) -> AsyncIterator[None]:
        """`python -m <command>` for as long as the block lasts."""
        output = self._folder / f"{name}.out"
        with output.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                *command,
                cwd=CHECKOUT,
                env={**os.environ, **NAMED_NOWHERE, "DATA_DIR": str(self._folder), **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        part = Part(name, process, output)
        self._parts.append(part)
        try:
            yield
        finally:
            self._parts.remove(part)
            await part.end()

    async def until(self, what: str, ask: Callable[[], Awaitable[Answer | None]]) -> Answer:
        """Ask until there is an answer, while all parts run. Raises Stopped on Ctrl-C and DemoFailed."""
        given_up_at = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < given_up_at:
            for part in self._parts:
                part.must_run()
            answer = await ask()
            if answer is not None:
                return answer
            await self.pause(ASK_EVERY_S)
        raise DemoFailed(f"Waited {READY_WITHIN_S:.0f} s for {what} in vain.")

    async def pause(self, seconds: float) -> None:
        """Wait. Raises Stopped on Ctrl-C."""
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
        raise Stopped


class Api:
    """The service as a partner sees it: HTTP with a bearer token."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def get(self, path: str, key: str = "") -> dict[str, Any] | None:
        """The answer, or None while there is none but an error."""
        try:
            async with self._session.get(self.url + path, headers={"Authorization": f"Bearer {key}"}) as answer:
                body: dict[str, Any] = await answer.json()
                return body if answer.ok else None
        except aiohttp.ClientError:
            return None

    async def post(self, path: str, key: str, **body: object) -> dict[str, Any]:
        """The `data` of the answer. Raises DemoFailed on a refusal."""
        async with self._session.post(self.url + path, json=body, headers={"Authorization": f"Bearer {key}"}) as answer:
            found: dict[str, Any] = await answer.json()
        if not answer.ok:
            raise DemoFailed(f"POST {path} was answered {answer.status}: {found}")
        data: dict[str, Any] = found["data"]
        return data


async def main() -> int:
    """Play until SIGINT, SIGTERM or SIGHUP; returns the exit status."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        ours = settings.read({**os.environ, **NAMED_NOWHERE})
    except settings.SettingsError as wrong:
        console.print(str(wrong), style="red", markup=False)
        return 2
    log.configure("error", "console")
    with own_folder(ours.data_dir) as folder:
        try:
            async with AsyncExitStack() as stack:
                try:
                    await play(Demo(folder, stop), stack, msgspec.structs.replace(ours, data_dir=folder))
                finally:
                    console.print("\nEnding worker, API, indexer, servers and chain ...")
        except Stopped:
            console.print("All of it has ended.")
            return 0
        except (DemoFailed, servers.ServersError) as failure:
            console.print(str(failure), style="red", markup=False)
    return 1


async def play(demo: Demo, stack: AsyncExitStack, ours: settings.Settings) -> None:
    """Start everything in the order in which it is easiest to follow, tell how to try it, and show blocks arriving."""
    console.print("[bold]Ledgerline[/], with a Cardano chain of its own. Ctrl-C ends it.\n")
    with console.status("Making a chain"):
        chain = await asyncio.to_thread(Generated, options_of(NETWORK), BLOCKS)
        node = await stack.enter_async_context(Server(chain, port=free_port(1337)))
    started("chain", f"{BLOCKS:,} blocks of {NETWORK}, by an Ogmios at {node.url}")
    with console.status("Starting the servers"):
        await stack.enter_async_context(servers.running(ours))
    started("servers", f"Postgres and Valkey in {ours.data_dir}")

    bootstrap_key, port = f"iiak_admin_{secrets.token_hex(20)}", free_port(ours.api_port)
    for name, command, environment in (
        ("indexer", ("indexer", "run", "--network", NETWORK, "--ogmios-url", node.url), {}),
        ("API", ("api", "--host", "127.0.0.1", "--port", str(port)), {"BOOTSTRAP_ADMIN_KEY": bootstrap_key}),
        ("worker", ("dramatiq", "api.worker", "--processes", "1", "--threads", "2"), {}),
    ):
        await stack.enter_async_context(demo.part(name, *command, **environment))
    api = Api(await stack.enter_async_context(aiohttp.ClientSession()), f"http://127.0.0.1:{port}")
    with console.status("Starting the API"):
        await demo.until("the API", lambda: api.get("/health"))
    started("API", f"{api.url}, and the worker that adds up its usage")
    key, display_key = await api_keys(api, bootstrap_key)

    address, tx_hash = busy(chain)
    began_at = time.monotonic()
    with console.status("Indexing the chain"):
        await demo.until("the index", lambda: indexed(api, display_key, address, node))
    transactions = sum(len(block.decoded().get("transactions", ())) for block in chain.blocks)
    started("indexer", f"{transactions:,} transactions, {time.monotonic() - began_at:.1f} s after the API was there")
    started("account", f"Demo customer, with the API key [bold green]{key}[/]")
    console.print("\n[bold]Try it[/] in another terminal: the history of an address, its details, one transaction.\n")
    for question in (f"history/{address}?limit=3", f"address/{address}?limit=1&groupByPolicy=true", f"hash/{tx_hash}"):
        line = f"curl -s -H 'Authorization: Bearer {key}' '{api.url}/v1/tx/{question}' | python3 -m json.tool"
        console.print(line, style="cyan", markup=False)
    console.print("\n[bold]Blocks arrive[/] and now and then a fork replaces the last ones. Ctrl-C ends everything.\n")
    await show_blocks(demo, api, display_key, address, node)


async def api_keys(api: Api, bootstrap_key: str) -> tuple[str, str]:
    """Two API keys of a new customer, made as a partner makes them: one to try, one for this display."""
    partner = await api.post("/v1/admin/admin-keys", bootstrap_key, entity_name="Demo partner")
    account = await api.post("/v1/admin/users", partner["key"], name="Demo customer")
    keys = [
        await api.post(
            "/v1/admin/credentials",
            partner["key"],
            name=name,
            user_account_id=account["id"],
            network_id=NETWORK_ID,
            rate_limit_per_minute=limit,
        )
        for name, limit in (("To try", 600), ("Display of the demo", 10_000))
    ]
    return keys[0]["api_key"], keys[1]["api_key"]


async def show_blocks(demo: Demo, api: Api, key: str, address: str, node: Server) -> None:
    """Let the chain grow, and fork, and print each change when the API answers by it. Ends with Stopped."""
    for turn in itertools.count(1):
        await demo.pause(NEW_BLOCK_EVERY_S)
        if turn % FORK_EVERY == 0:
            node.switch(fork_of(node.chain, seed=turn))
            change = f"[yellow]fork[/]   {FORK_DEPTH} blocks taken back, {FORK_DEPTH + 1} others instead"
        else:
            node.grow()
            change = "[green]block[/]"
        arrived_at, tip = time.monotonic(), node.blocks[-1]
        await demo.until("the new block", lambda: indexed(api, key, address, node))
        took_ms = (time.monotonic() - arrived_at) * 1000
        transactions = len(tip.decoded().get("transactions", ()))
        console.print(
            f"{change}  {tip.height:,}  slot {tip.slot:,}  {tip.id[:16]}  {transactions} transactions, "
            f"answered {took_ms:.0f} ms later"
        )


def fork_of(chain: Chain, seed: int) -> Generated:
    """The chain with other last blocks, one more than it had."""
    assert isinstance(chain, Generated)
    return chain.fork(len(chain.blocks) - 1 - FORK_DEPTH, seed, FORK_DEPTH + 1)


async def indexed(api: Api, key: str, address: str, node: Server) -> bool | None:
    """True as soon as the API answers by the node's tip."""
    answer = await api.get(f"/v1/tx/history/{address}?limit=1", key)
    return True if answer and answer["last_updated"]["block_hash"] == node.blocks[-1].id else None


def busy(chain: Generated) -> tuple[str, str]:
    """The Shelley address with the most payments, and the hash of the last transaction of old that pays it."""
    payments: Counter[str] = Counter()
    last: dict[str, str] = {}
    for block in chain.blocks[: -10 * FORK_DEPTH]:
        for transaction in block.decoded().get("transactions", ()):
            for address in {output["address"] for output in transaction.get("outputs", ())}:
                payments[address] += 1
                last[address] = transaction["id"]
    address = next(address for address, _ in payments.most_common() if address.startswith("addr_test1"))
    return address, last[address]


def started(name: str, what: str) -> None:
    """One line for a part that is there."""
    console.print(f"[green]✓[/] {name:<9}{what}")


def free_port(preferred: int) -> int:
    """The port, or any other where a program has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def own_folder(data_dir: Path) -> Iterator[Path]:
    """A new folder for everything that the demo keeps, removed at the end."""
    data_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=data_dir))
    folder.chmod(0o755)  # what is secret in it lies in folders that are closed again
    try:
        yield folder
    finally:
        for server in ("postgres", "valkey"):  # possibly links to where their account may go
            shutil.rmtree((folder / server).resolve(), ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)


def run() -> None:
    """Run everything on a chain of its own, and show a key and what to ask with it, until Ctrl-C."""
    raise typer.Exit(uvloop.run(main()))


if __name__ == "__main__":
    typer.run(run)
