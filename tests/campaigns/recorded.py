"""`python -m tests.campaigns.recorded --chain preview`: every answer about a recorded chain is the model's.

A real indexer follows a node that plays real blocks, in four stages:

1. bulk: it indexes all but the last blocks from nothing, in bulk if there are enough of them;
2. live: the others come in steps; between these the node switches to short forks and back, and occasionally the
   indexer is killed;
3. forked: the node switches to a fork that replaces up to 2,100 blocks, nearly the limit of a rollback. It has the same
   transactions in other blocks, except for some that it lacks (`tests/chain/reordered.py`);
4. back: it returns to the recorded blocks.

After each stage a real API process is queried about every address, stake account, transaction, output, asset, policy,
pool, epoch, script and datum, and every block that has transactions. Every page of every list is compared with the
model that starts in `tests/chain/model.py`: dictionaries, filled from the JSON of the blocks, that share nothing with
the indexer. Then `verify --against-node` runs. Each difference is printed with its question, its field, the answer and
the expected value.
"""

import asyncio
import gc
import json
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, NamedTuple, TypeVar

import asyncpg
import typer

from devnet.blocks import Block, Genesis, Recorded, read_genesis
from devnet.networks import BY_NAME
from shared import schema, servers, settings
from tests.campaigns import world as worlds
from tests.chain import answers, answers_owners, reordered
from tests.chain.harness import Caller, Json, Ledgerline, Node, Process, issue_keys, recorded
from tests.chain.model_attachments import Attachments
from tests.chain.model_chain import Chain
from tests.chain.model_owners import Owners
from tests.chain.recordings import FILES

STAGES = ("bulk", "live", "forked", "back")
MAX_LIVE = 3_000  # blocks that are left for the live stage, at most half of the chain
STEP = 150  # blocks between two short forks
MAX_SHORT_FORK_DEPTH = 40
MAX_FORK_DEPTH = 2_100  # blocks; the limit of a rollback is 2,160
KILL_EVERY = 4  # short forks
KEYS = 24
AT_ONCE = 100  # ids of a bulk question
ALONE = 20  # one in this many outputs is also requested alone, besides all of them in bulk
EMPTY = 100  # one in this many blocks is compared even if it has no transactions
REACHES_WITHIN_S = 600.0
SHOWN = 50
"""The number of differences that are printed."""

Check = Callable[[Caller], object]
Id = TypeVar("Id")


class Named(NamedTuple):
    """A comparison, and the kind of object that it compares."""

    kind: str
    check: Check


def every_check(chain: Chain, seed: int) -> Iterator[Named]:
    """All comparisons of a chain with the answers about it."""
    owners, attachments, ledger = Owners(chain.ledger), Attachments(chain.ledger), chain.ledger
    addresses = list(dict.fromkeys([*ledger.of_address, *(output.address for output in ledger.unspent.values())]))
    for place, address in enumerate(addresses):
        if address in ledger.of_address:
            random = Random(f"{seed} {place}")
            yield Named("address", partial(answers.check_histories, ledger=ledger, address=address, random=random))
        yield Named("address", partial(answers_owners.check_address, owners=owners, address=address))
    for credential in owners.first_address:
        check = partial(answers_owners.check_credential, owners=owners, credential=credential)
        yield Named("payment credential", check)
    accounts = accounts_of(chain, owners)
    for account in accounts:
        check = partial(answers_owners.check_account, chain=chain, owners=owners, account=account)
        yield Named("stake account", check)
    for tx in ledger.transactions.values():
        yield Named("transaction", partial(answers.check_transaction, ledger=ledger, tx=tx))
    for reference in islice(owners.made, 0, None, ALONE):
        yield Named("output", partial(answers_owners.check_output, owners=owners, reference=reference))
    yield from asset_checks(chain, owners)
    for pool in chain.pools.parameters:
        yield Named("pool", partial(answers.check_pool, chain=chain, pool=pool))
    for digest in attachments.scripts:
        yield Named("script", partial(answers.check_script, attachments=attachments, digest=digest))
    for digest in attachments.datums:
        yield Named("datum", partial(answers.check_datum, attachments=attachments, digest=digest))
    yield from block_checks(chain)
    yield Named("epochs", partial(answers.check_epochs, chain=chain))
    yield Named("stake", partial(answers.check_stake, chain=chain))
    for some in in_parts(addresses):
        yield Named("bulk question", partial(answers_owners.check_bulk_addresses, owners=owners, addresses=some))
    for some in in_parts(accounts):
        check = partial(answers_owners.check_bulk_accounts, chain=chain, owners=owners, accounts=some)
        yield Named("bulk question", check)
    for transactions in in_parts(list(ledger.transactions.values())):
        check = partial(answers_owners.check_bulk_transactions, chain=chain, transactions=transactions)
        yield Named("bulk question", check)
    for references in in_parts(list(owners.made)):
        yield Named("bulk question", partial(answers_owners.check_bulk_outputs, owners=owners, references=references))


def asset_checks(chain: Chain, owners: Owners) -> Iterator[Named]:
    """The comparisons of assets and policies."""
    by_asset, by_policy = chain.assets.holdings()
    accounts_by_asset, accounts_by_policy = owners.account_holders()
    by_account = partial(answers_owners.check_holding_accounts, slot=chain.ledger.slot)
    for asset in chain.assets.known:
        holders, path = by_asset.get(asset, []), f"/v1/assets/{asset[0]}.{asset[1]}"
        yield Named("asset", partial(answers.check_asset, chain=chain, asset=asset, holders=holders))
        yield Named("asset", partial(by_account, path=path, expected=accounts_by_asset.get(asset, [])))
    for policy in dict.fromkeys(policy for policy, _ in chain.assets.known):
        holders, path = by_policy.get(policy, []), f"/v1/assets/policy/{policy}"
        yield Named("policy", partial(answers.check_policy, chain=chain, policy=policy, holders=holders))
        yield Named("policy", partial(by_account, path=path, expected=accounts_by_policy.get(policy, [])))
    for some in in_parts(chain.assets.known):
        yield Named("bulk question", partial(answers_owners.check_bulk_assets, chain=chain, assets=some))


def block_checks(chain: Chain) -> Iterator[Named]:
    """The comparisons of blocks: of all with transactions, and of some of the empty ones."""
    for place, transactions in enumerate(chain.blocks.transactions):
        if transactions or place % EMPTY == 0:
            yield Named("block", partial(answers.check_block, chain=chain, place=place))
            yield Named("block", partial(answers.check_block_transactions, chain=chain, place=place))


def accounts_of(chain: Chain, owners: Owners) -> list[str]:
    """Every stake account: of an address, a certificate or a withdrawal."""
    withdrawn = (account for tx in chain.ledger.transactions.values() for account in tx.withdrawals)
    return list(dict.fromkeys([*owners.addresses, *chain.pools.delegated, *chain.pools.registered, *withdrawn]))


def in_parts(every: Sequence[Id]) -> Iterator[list[Id]]:
    """Parts as large as a bulk question allows."""
    rest = iter(every)
    while some := list(islice(rest, AT_ONCE)):
        yield some


class Comparison:
    """The comparisons of one stage, by several processes that share the model."""

    def __init__(self, chain: Chain, port: int, keys: list[str], seed: int, one_in: int) -> None:
        self.checks = list(every_check(chain, seed))[::one_in]
        self._port, self._keys = port, keys
        self._caller: Caller | None = None  # of this process

    def run(self, processes: int) -> tuple[Counter[str], int, list[str]]:
        """Make all comparisons; returns their numbers by kind, the number of requests, and the differences."""
        global _shared
        _shared = self
        gc.collect()
        gc.freeze()  # so that the processes go on sharing memory
        try:
            with multiprocessing.get_context("fork").Pool(processes) as pool:
                made = list(pool.imap_unordered(_compare, range(len(self.checks)), chunksize=50))
        finally:
            gc.unfreeze()
        wrong = [f"{self.checks[place].kind}: {words}" for place, _, words in sorted(made) if words is not None]
        return Counter(each.kind for each in self.checks), sum(asked for _, asked, _ in made), wrong

    def compare(self, place: int) -> tuple[int, int, str | None]:
        """Make one comparison. Returns its place, the requests that it took, and the difference, if any."""
        caller = self._caller or Caller(self._port, self._keys)
        self._caller, before, words = caller, caller.asked, None
        try:
            self.checks[place].check(caller)
        except Exception as wrong:  # noqa: BLE001 - also an unreadable answer
            words = str(wrong) if isinstance(wrong, AssertionError) else repr(wrong)
            self._caller = None  # the rest of the answer may still arrive
        return place, caller.asked - before, words


_shared: Comparison
"""Shared by `Comparison.run` with its forked processes."""


def _compare(place: int) -> tuple[int, int, str | None]:
    return _shared.compare(place)


class Campaign:
    """The stages, and the differences so far.

    `one_in` maps each stage after which answers are compared to the share of comparisons made: one in this many.
    """

    def __init__(
        self,
        ledgerline: Ledgerline,
        recording: Recorded,
        genesis: list[Json],
        seed: int,
        one_in: dict[str, int],
    ) -> None:
        self.ledgerline, self.recording, self.seed = ledgerline, recording, seed
        self.one_in = one_in
        self.network, self.blocks = recording.network.name, recording.blocks
        self.wrong: list[str] = []
        self._genesis = genesis
        self._random = Random(seed)
        self._node = Node(self._given(self.blocks[: -min(MAX_LIVE, len(self.blocks) // 2)]))
        self._indexer: Process

    def run(self, processes: int) -> None:
        """All stages, each followed by its comparisons."""
        plays = (self._bulk, self._live, self._forked, self._back)
        with self._node:
            self._start()
            try:
                for name, play in zip(STAGES, plays, strict=True):
                    began = time.monotonic()
                    said = play()
                    print(f"{name}: {said}, in {time.monotonic() - began:.0f} s", flush=True)
                    if name in self.one_in:
                        self._compare(processes, self.one_in[name])
                        self._verify()
            finally:
                self._indexer.kill()

    def _bulk(self) -> str:
        self._reaches()
        ended = "bulk.step_completed" in self._indexer.output()
        return f"{len(self._node.server.blocks):,} blocks from nothing, {'in bulk' if ended else 'live'}"

    def _live(self) -> str:
        """The rest of the recorded blocks, with short forks and kills between them."""
        forks = kills = 0
        known = len(self._node.server.blocks)
        while known < len(self.blocks):
            depth = self._random.randint(1, min(MAX_SHORT_FORK_DEPTH, known - 1))
            forked = reordered.fork(self.blocks[:known], known - 1 - depth, self._random.getrandbits(30))
            self._switch(forked)
            forks += 1
            if forks % KILL_EVERY == 0:
                self._indexer.kill()
                self._start()
                kills += 1
            known = min(known + STEP, len(self.blocks))
            self._switch(self.blocks[:known])
        return f"up to {known:,} blocks, with {forks} short forks and {kills} kills"

    def _forked(self) -> str:
        after = len(self.blocks) - 1 - min(MAX_FORK_DEPTH, len(self.blocks) // 2)
        forked = reordered.fork(self.blocks, after, self.seed)
        self._switch(forked)
        return f"a fork of {len(self.blocks) - 1 - after:,} blocks to {len(forked) - 1 - after:,} others"

    def _back(self) -> str:
        self._switch(self.blocks)
        return "the recorded blocks again"

    def _given(self, blocks: Sequence[Block]) -> reordered.Given:
        return reordered.Given(self.recording.network, self.recording.genesis, blocks)

    def _switch(self, blocks: Sequence[Block]) -> None:
        self._node.do(self._node.server.switch, self._given(blocks))
        self._reaches()

    def _start(self) -> None:
        self._indexer = self.ledgerline.start_indexer(self.network, self._node.url)

    def _reaches(self) -> None:
        self.ledgerline.reaches(self.network, self._node.tip(), self._indexer, REACHES_WITHIN_S)

    def _compare(self, processes: int, one_in: int) -> None:
        """Compare every answer with that of the model of the node's blocks."""
        began = time.monotonic()
        chain = Chain(self.network, self._genesis).feed(self._node.blocks())
        with self.ledgerline.serving(self.network, processes) as caller:
            keys = asyncio.run(issue_keys(self.ledgerline.database_url, self.network, KEYS))
            comparison = Comparison(chain, caller.port, keys, self.seed, one_in)
            made, requests, wrong = comparison.run(processes)
        kinds = ", ".join(f"{count:,} of {kind}" for kind, count in made.items())
        print(f"  {requests:,} requests in {time.monotonic() - began:.0f} s; comparisons: {kinds}", flush=True)
        if self.ledgerline.rows(self.network, "SELECT FROM pool_reward"):
            wrong.append("pool_reward has rows: the node's snapshots have no rewards, and differ from ours")
        self._report(wrong)

    def _verify(self) -> None:
        """Run verify, which compares the index with its history and with the node's blocks."""
        command = ("indexer", "verify", "--network", self.network, "--against-node", "--ogmios-url", self._node.url)
        verified = self.ledgerline.run(*command, within_s=REACHES_WITHIN_S)
        if verified.returncode:
            self._report([f"verify ended with status {verified.returncode}: {verified.stdout}{verified.stderr}"])
        else:
            print("  verify: no difference", flush=True)

    def _report(self, wrong: list[str]) -> None:
        for words in wrong[: max(0, SHOWN - len(self.wrong))]:
            print(f"  WRONG {words}", flush=True)
        self.wrong += wrong


def run(folder: Path, name: str, seed: int, processes: int, one_in: int) -> list[str]:
    """Play a recorded chain; returns the differences."""
    file = FILES[name]
    genesis = read_genesis(recorded(file.genesis)) if file.genesis else Genesis()
    recording = Recorded(recorded(file.name), BY_NAME[file.network], genesis)
    outputs = json.loads(recorded(file.genesis).read_bytes()) if file.genesis else []
    with own_servers(folder / "servers") as found:
        ledgerline = Ledgerline(found.database_url, found.redis_url, folder)
        campaign = Campaign(ledgerline, recording, outputs, seed, dict.fromkeys(STAGES, one_in) | {STAGES[-1]: 1})
        campaign.run(processes)
    return campaign.wrong


@contextmanager
def own_servers(folder: Path) -> Iterator[servers.Servers]:
    """Servers with our schema, supervised on a separate loop, since the campaign itself is synchronous."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    running = servers.running(settings.read({"DATA_DIR": str(folder), "LOG_LEVEL": "error"}))
    stack = AsyncExitStack()
    found = asyncio.run_coroutine_threadsafe(stack.enter_async_context(running), loop).result()
    try:
        asyncio.run(prepare(found.database_url))
        yield found
    finally:
        asyncio.run_coroutine_threadsafe(stack.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)


async def prepare(database_url: str) -> None:
    """Create the tables. A campaign kills processes, not the machine, so Postgres need not sync its disk."""
    connection = await asyncpg.connect(database_url)
    await connection.execute("ALTER SYSTEM SET fsync = off")
    await connection.execute("SELECT pg_reload_conf()")
    await schema.migrate(connection)
    await connection.close()


def main(
    chain: Annotated[str, typer.Option(help=f"One of {', '.join(FILES)}.")] = "preview",
    seed: Annotated[int, typer.Option(help="Seed of the forks and of the pages at random depths.")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="Processes that query and compare, and API processes.")] = 2,
    one_in: Annotated[
        int, typer.Option(min=1, help="After all stages except the last, one in this many comparisons.")
    ] = 1,
) -> None:
    """Compare every answer about a recorded chain with the model's; exit status 1 if one differs."""
    worlds.run_in_own_folder(
        "recorded",
        lambda folder: not run(folder, chain, seed, processes, one_in),
        "Every answer is the model's.",
        "There are differences.",
    )


if __name__ == "__main__":
    typer.run(main)
