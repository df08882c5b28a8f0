"""`make demo`: the whole service on this machine, with a generated chain that grows, until Ctrl-C.

Every process is the real one, started as an operator starts it; only the chain is generated. Its blocks must
not end up in a real database, so the demo always runs embedded servers, in a folder under DATA_DIR that it removes at
the end.
"""

import asyncio
import itertools
import os
import secrets
import signal
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, TypeVar

import aiohttp
import msgspec
import typer
import uvloop
from rich.console import Console
from rich.live import Live
from rich.text import Text

from devnet import control, demo_folder, faucet
from devnet.blocks import Block
from devnet.control import FORK_DEPTH
from devnet.generator import Generated, options_of, options_until_now
from devnet.server import NodeServer
from shared import command, lifecycle, log, servers, settings

NETWORK, NETWORK_ID = "preview", 1
BLOCKS = 3_000
NEW_BLOCK_EVERY_S = 2.0
FORK_EVERY = 15
READY_WITHIN_S = 180.0
ASK_EVERY_S = 0.02
LOOK_FOR_MAKE_EVERY_S = 0.5
LINES_OF_BLOCKS = 3  # on a terminal of 24 lines, everything above them then stays visible

NO_OTHER_SERVERS = {"DATABASE_URL": "", "READ_DATABASE_URL": "", "REDIS_URL": "", "LOG_FORMAT": "console"}
CHECKOUT = Path(__file__).parents[1]
Answer = TypeVar("Answer")
console = Console(highlight=False, soft_wrap=True)


class DemoFailed(Exception):
    """A process ended or was not ready in time. The message is for the user."""


class DemoProcess:
    """A process of the service under `devnet.demo_process`, which stops it however the demo ends."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, output: Path) -> None:
        self.name = name
        self._process = process
        self._output = output

    def must_run(self) -> None:
        """Raises DemoFailed, with the last output of the process, if it has ended."""
        status = self._process.returncode
        if status is not None:
            killed_by = signal.Signals(status - 128).name if status >= 128 else None
            how = f"exited with status {status}" if killed_by is None else f"was killed by {killed_by}"
            raise DemoFailed(f"The {self.name} {how}. {self.last_words(8)}")

    def last_words(self, lines: int) -> str:
        """The last lines of its output."""
        last = self._output.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([f"The last output of the {self.name}:", *last]) if last else "It had no output."

    async def end(self) -> None:
        """Stop the process, as the end of the demo would."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


class Demo:
    """The running processes. Every wait ends if a process fails or the user presses Ctrl-C."""

    def __init__(self, folder: demo_folder.Folder, stop: asyncio.Event) -> None:
        self.folder = folder.path
        self._held = folder.held
        self._stop = stop
        self._processes: list[DemoProcess] = []

    @asynccontextmanager
    async def running(self, name: str, *command: str, **environment: str) -> AsyncIterator[None]:
        """Runs `python -m <command>` until the end of the `with` block."""
        output = self.folder / f"{name}.out"
        with output.open("wb") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "devnet.demo_process", sys.executable, "-m", *command),
                cwd=CHECKOUT,
                env={**os.environ, **NO_OTHER_SERVERS, "DATA_DIR": str(self.folder), **environment},
                stdin=asyncio.subprocess.PIPE,
                stdout=out,
                stderr=out,
                pass_fds=[self._held.fileno()],
                start_new_session=True,
            )
        run = DemoProcess(name, process, output)
        self._processes.append(run)
        try:
            yield
        finally:
            self._processes.remove(run)
            await run.end()

    async def until(self, what: str, ask: Callable[[], Awaitable[Answer | None]]) -> Answer:
        """Call `ask` until it returns an answer. Raises Stopped, or DemoFailed if a process ends or on a timeout."""
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            for process in self._processes:
                process.must_run()
            answer = await ask()
            if answer is not None:
                return answer
            await self.pause(ASK_EVERY_S)
        last_words = "\n".join(process.last_words(2) for process in self._processes)
        raise DemoFailed(f"Gave up after waiting {READY_WITHIN_S:.0f} s for {what}.\n{last_words}")

    async def pause(self, seconds: float) -> None:
        """Sleep. Raises Stopped."""
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
        raise lifecycle.Stopped


class ApiClient:
    """A client of the service's API."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self.url = url

    async def get(self, path: str, key: str = "") -> dict[str, Any] | None:
        """The answer, or None on any error."""
        try:
            async with self._session.get(self.url + path, headers={"Authorization": f"Bearer {key}"}) as answer:
                body: dict[str, Any] = await answer.json()
                return body if answer.ok else None
        except aiohttp.ClientError:
            return None

    async def send(self, method: str, path: str, key: str, **body: object) -> dict[str, Any]:
        """The `data` of the answer. Raises DemoFailed on an error status."""
        headers = {"Authorization": f"Bearer {key}"}
        async with self._session.request(method, self.url + path, json=body, headers=headers) as answer:
            content: dict[str, Any] = await answer.json()
        if not answer.ok:
            raise DemoFailed(f"{method} {path} failed with status {answer.status}: {content}")
        data: dict[str, Any] = content["data"]
        return data


class Examples(msgspec.Struct, frozen=True):
    """The subjects of the example requests. No fork of the demo replaces them."""

    address: str
    tx: str
    asset: str
    pool: str


class Shown(msgspec.Struct, frozen=True):
    """What the lines about blocks come from: an address whose history shows that they are served, and a log."""

    address: str
    subscription: str


async def main(blocks: int) -> int:
    """Run the demo until SIGINT, SIGTERM or SIGHUP; returns the exit status."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        ours = settings.read({**os.environ, **NO_OTHER_SERVERS})
    except settings.SettingsError as wrong:
        console.print(str(wrong), style="red", markup=False)
        return 2
    log.configure("error", "console")
    try:
        async with AsyncExitStack() as stack:
            if "MAKELEVEL" in os.environ:
                stack.callback(asyncio.create_task(end_with_parent(os.getppid(), stop)).cancel)
            folder = await stack.enter_async_context(new_folder(ours.data_dir))
            await play(Demo(folder, stop), stack, msgspec.structs.replace(ours, data_dir=folder.path), blocks)
    except lifecycle.Stopped:
        console.print("Everything has stopped.")
        return 0
    except (DemoFailed, servers.ServersError) as failure:
        console.print(str(failure), style="red", markup=False)
    return 1


async def end_with_parent(parent: int, stop: asyncio.Event) -> None:
    """Set `stop` when `make` is gone: after kill -9 it can't pass on a signal, and nobody could stop the demo."""
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_FOR_MAKE_EVERY_S)
    stop.set()


@asynccontextmanager
async def new_folder(data_dir: Path) -> AsyncIterator[demo_folder.Folder]:
    """The demo's folder. Prints when its processes begin to stop. Raises DemoFailed if DATA_DIR can't be used."""
    async with AsyncExitStack() as stack:
        try:
            opened = demo_folder.opened(data_dir, lambda line: console.print(line, markup=False))
            folder = await stack.enter_async_context(opened)
        except OSError as cause:
            raise DemoFailed(f"DATA_DIR={data_dir} can't be used: {cause}") from cause
        yield folder


async def play(demo: Demo, stack: AsyncExitStack, ours: settings.Settings, blocks: int) -> None:
    """Start everything, explain how to try it, and show each new block."""
    console.print("[bold]Ledgerline[/] on a generated Cardano chain. Press Ctrl-C to stop.")
    with console.status("Generating a chain"):
        chain = await asyncio.to_thread(Generated, options_until_now(options_of(NETWORK, faucet=True), blocks), blocks)
        chain.on_time = True
        chain.grow()
        node = await stack.enter_async_context(NodeServer(chain, port=free_port(1337)))
        pace = control.Pace()
        controls = await stack.enter_async_context(control.listening(node, pace, "127.0.0.1", free_port(1338)))
    started("chain", f"{blocks:,} generated blocks of {NETWORK}; Ogmios at {node.url}")
    with console.status("Starting the servers"):
        await stack.enter_async_context(servers.running(ours))
    started("servers", f"Postgres and Valkey in {from_here(demo.folder)}")

    bootstrap_key, port = f"iiak_admin_{secrets.token_hex(20)}", free_port(ours.api_port)
    of_api = {"BOOTSTRAP_ADMIN_KEY": bootstrap_key, f"OGMIOS_URL_{NETWORK.upper()}": node.url}
    for name, words, environment in (
        ("indexer", ("indexer", "run", "--network", NETWORK, "--ogmios-url", node.url), {}),
        ("API", ("api", "--host", "127.0.0.1", "--port", str(port)), of_api),
        ("worker", ("dramatiq", "api.worker", "--processes", "1", "--threads", "2"), {}),
    ):
        await stack.enter_async_context(demo.running(name, *words, **environment))
    stack.callback(console.print, "\nStopping the worker, the API, the indexer, the servers and the chain ...")
    api = ApiClient(await stack.enter_async_context(aiohttp.ClientSession()), f"http://127.0.0.1:{port}")
    with console.status("Starting the API"):
        await demo.until("the API", lambda: api.get("/health"))
    started("API", f"{api.url}, with the worker that adds up usage")
    admin_key, key, display_key = await keys(api, bootstrap_key)

    examples = examples_of(chain)
    began_at = time.monotonic()
    with console.status("Indexing the chain"):
        await demo.until("the index", lambda: caught_up(api, node))
    transactions = sum(len(block.decoded().get("transactions", ())) for block in chain.blocks)
    started("indexer", f"{transactions:,} transactions, {time.monotonic() - began_at:.1f} s after the API was up")
    with console.status("Beginning two subscriptions"):
        subscriptions = [await demo.until("events", partial(subscribe, api, each)) for each in (display_key, key)]
    addresses = {"url": api.url, "ogmios": node.url, "control": controls, "subscription": subscriptions[1]}
    explain(demo.folder, addresses, key, admin_key, examples)
    await show_blocks(demo, api, display_key, Shown(examples.address, subscriptions[0]), node, pace)


TRY = """
# For a shell in which the demo's lines are tried: . {path}
export URL={url}
OGMIOS={ogmios}
CONTROL={control}
export FAUCET={faucet}
export KEY={key}
export API_KEY={key} ADMIN_KEY={admin_key}
ADDRESS={address}
TX={tx}
ASSET={asset}
POLICY={policy}
POOL={pool}
SUBSCRIPTION={subscription}
ask() {{ curl -s -H "Authorization: Bearer $KEY" "$URL/v1/$1" | python3 -m json.tool; }}
admin() {{ curl -s -H "Authorization: Bearer $ADMIN_KEY" "$URL/v1/admin/$1" | python3 -m json.tool; }}
events() {{ curl -sN -H "Authorization: Bearer $KEY" "$URL/v1/subscriptions/$SUBSCRIPTION/events/stream"; }}
deposits() {{ PYTHONPATH={client} BOOKS={books} CONFIRMATIONS=${{CONFIRMATIONS:-0}} {python} {deposits} "$ADDRESS"; }}
pay() {{ PYTHONPATH={client} {python} {pay}; }}
pay_blockfrost() {{ {python} {pay_blockfrost}; }}
"""

SCOPES = ("transactions", "assets", "pools", "network", "accounts", "events", "submit")

LINES = (
    ('ask "tx/history/$ADDRESS?limit=3"', "an address's transactions"),
    ('ask "tx/hash/$TX"', "one of them in full"),
    ('ask "assets/$ASSET/holders?limit=3"', "who holds a native asset"),
    ('ask "pools/$POOL"', "a stake pool"),
    ("deposits", "its deposits, credited and undone"),
    ("pay", "a payment, confirmed within seconds"),
    ('admin "usage"', "requests by key, some seconds later"),
)


def explain(folder: Path, addresses: dict[str, str], key: str, admin_key: str, examples: Examples) -> None:
    """Print the pages, the keys and example commands, and write the files that the commands need."""
    path, url = folder / "try.sh", addresses["url"]
    faucet_key = folder / "faucet.skey"
    faucet_key.write_text(faucet.signing_key_file())
    programs = {
        "faucet": faucet_key,
        "python": sys.executable,
        "client": CHECKOUT / "clients/python",
        "pay": CHECKOUT / "clients/python/examples/pay_with_pycardano.py",
        "deposits": CHECKOUT / "clients/python/examples/credit_deposits.py",
        "books": folder / "deposits.db",
        "pay_blockfrost": CHECKOUT / "clients/python/examples/pay_with_blockfrost.py",
    }
    names = {"key": key, "admin_key": admin_key, "policy": examples.asset.partition(".")[0], **addresses}
    names |= {name: quote(str(program)) for name, program in programs.items()}
    path.touch(mode=0o600)
    path.write_text(TRY.format(path=quote(str(path)), **names, **msgspec.structs.asdict(examples)).lstrip())
    console.print(f"\n[bold]Read[/]       {url}/docs (the reference), /status, /console")
    console.print(f"[bold]API key[/]    [green]{key}[/]")
    console.print(f"[bold]Admin key[/]  [green]{admin_key}[/] for /console")
    console.print("\n[bold]Try it[/] in another terminal. The first line sets the variables for the others:")
    console.print(f"  . {quote(from_here(path))}", style="cyan", markup=False)
    for line, what in LINES:
        console.print(f"  [cyan]{line:<38}[/]{what}")
    console.print("\n[bold]New blocks[/] arrive, each an event. Sometimes a fork undoes the last ones:")


async def keys(api: ApiClient, bootstrap_key: str) -> tuple[str, str, str]:
    """An admin key, and two API keys created with it as a partner would: for the user, and for the demo itself."""
    partner = await api.send("POST", "/v1/admin/admin-keys", bootstrap_key, entity_name="Demo partner")
    own = await api.send("POST", "/v1/admin/admin-keys", bootstrap_key, entity_name="The demo itself")
    made = []
    for admin_key, name, limit in ((partner["key"], "Try it", 600), (own["key"], "The demo itself", 10_000)):
        account = await api.send("POST", "/v1/admin/users", admin_key, name="Demo customer")
        credential = await api.send(
            "POST",
            "/v1/admin/credentials",
            admin_key,
            name=name,
            user_account_id=account["id"],
            network_id=NETWORK_ID,
            rate_limit_per_minute=limit,
        )
        made.append(credential)
    ours = f"/v1/admin/credentials/{made[0]['credential']['id']}/restrictions"
    await api.send("PUT", ours, partner["key"], scopes=SCOPES)
    return partner["key"], made[0]["api_key"], made[1]["api_key"]


async def show_blocks(demo: Demo, api: ApiClient, key: str, of: Shown, node: NodeServer, pace: control.Pace) -> None:
    """Let the chain grow and fork, unless it is stalled, and show each change once the API serves it, with its events.

    Raises Stopped at the end.
    """
    shown: deque[Text] = deque(maxlen=LINES_OF_BLOCKS)
    number = 0
    with Live(console=console, auto_refresh=False) as live:
        for turn in itertools.count(1):
            await demo.pause(NEW_BLOCK_EVERY_S)
            if pace.stalled:
                continue
            forks = turn % FORK_EVERY == 0
            if forks:
                control.fork(node, FORK_DEPTH)
            else:
                node.grow()
            arrived_at, tip = time.monotonic(), node.blocks[-1]
            await demo.until("the new block", lambda: indexed(api, key, of.address, node))
            took_ms = (time.monotonic() - arrived_at) * 1000
            kind = "[yellow]fork[/] " if forks else "[green]block[/]"
            note = f"{FORK_DEPTH} back, {FORK_DEPTH + 1} new" if forks else payments_of(tip)
            shown.append(
                Text.from_markup(f"{kind} {tip.height:,}  slot {tip.slot:,}  {note}, served in {took_ms:.0f} ms")
            )
            read = partial(events_to, api, key, of.subscription, number, node)
            events = await demo.until("its events", read)
            number += len(events)
            shown[-1].append(f"; {told(events)}")
            if console.is_terminal:
                live.update(Text("\n").join(shown), refresh=True)
            else:
                console.print(shown[-1])


async def subscribe(api: ApiClient, key: str) -> str | None:
    """A new subscription to all blocks. None while the worker does not follow the network yet."""
    try:
        return str((await api.send("POST", "/v1/subscriptions", key, subjects=[{"kind": "block"}]))["id"])
    except DemoFailed:
        return None


async def events_to(
    api: ApiClient, key: str, subscription: str, after: int, node: NodeServer
) -> list[dict[str, Any]] | None:
    """The events after a number, up to those of the node's tip. None if the log does not reach it yet."""
    answer = await api.get(f"/v1/subscriptions/{subscription}/events?after={after}", key)
    complete_to = answer and answer["pagination"]["complete_to"]
    if not answer or not complete_to or complete_to["block_hash"] != node.blocks[-1].id:
        return None
    events: list[dict[str, Any]] = answer["data"]
    return events or None


def told(events: list[dict[str, Any]]) -> str:
    """The numbers of events, and of those that they undo."""
    undone = [event["undoes"] for event in events if event["action"] == "undo"]
    numbers = f"{events[0]['number']}-{events[-1]['number']}" if len(events) > 1 else f"{events[0]['number']}"
    return f"events {numbers} undo {undone[0]}-{undone[-1]}" if undone else f"event {numbers}"


def payments_of(block: Block) -> str:
    """The number of transactions in a block, in words."""
    count = len(block.decoded().get("transactions", ()))
    return "1 transaction" if count == 1 else f"{count} transactions"


async def indexed(api: ApiClient, key: str, address: str, node: NodeServer) -> bool | None:
    """True if the API's answers include the node's tip, else None."""
    answer = await api.get(f"/v1/tx/history/{address}?limit=1", key)
    return True if answer and answer["last_updated"]["block_hash"] == node.blocks[-1].id else None


async def caught_up(api: ApiClient, node: NodeServer) -> bool | None:
    """True if the index has the node's height, else None.

    It needs no key: a chain request is refused until there is an index, and the console would show that as an error.
    """
    answer = await api.get("/v1/status")
    networks = answer["data"]["networks"] if answer else []
    return True if any(network["block_no"] == node.blocks[-1].height for network in networks) else None


def examples_of(chain: Generated) -> Examples:
    """The Shelley address with the most payments, a payment to it, the asset with most holders, the largest pool."""
    payments: Counter[str] = Counter()
    last: dict[str, str] = {}
    for block in chain.blocks[: -10 * FORK_DEPTH]:
        for transaction in block.decoded().get("transactions", ()):
            for address in {output["address"] for output in transaction.get("outputs", ())}:
                payments[address] += 1
                last[address] = transaction["id"]
    address = next(address for address, _ in payments.most_common() if address.startswith("addr_test1"))
    holders: Counter[str] = Counter()
    for asset, _ in {
        (f"{policy_id}.{name}", output["address"])
        for output in chain.ledger.unspent.values()
        for policy_id, names in output["value"].items()
        if policy_id != "ada"
        for name in names
    }:
        holders[asset] += 1
    delegators = Counter(account.pool for account in chain.ledger.accounts.values() if account.pool is not None)
    return Examples(address, last[address], holders.most_common(1)[0][0], delegators.most_common(1)[0][0])


def started(name: str, what: str) -> None:
    """Print a line for a part that is ready."""
    console.print(f"[green]✓[/] {name:<9}{what}")


def free_port(preferred: int) -> int:
    """The preferred port, or any free one if it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def from_here(path: Path) -> str:
    """The path from the working directory, if it is below that."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


commands = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@commands.command()
def run(blocks: Annotated[int, typer.Option(min=100, help="Blocks of the chain at the start.")] = BLOCKS) -> None:
    """Run the whole service on a generated chain, and print keys and requests to try, until Ctrl-C."""
    raise typer.Exit(uvloop.run(main(blocks)))


if __name__ == "__main__":
    command.run(commands)
