"""The TypeScript client: it installs, its types match, and its programs work with a running service."""

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from unittest.mock import patch

import asyncpg
import pytest

from api.events import stream
from api.reference.openapi import document
from api.routes import ROUTES
from shared import database, packed
from shared.encoding import bech32_encode
from shared.network import PREVIEW
from tests import programs
from tests.api.busy import REFUSED_TIMES, busy_at_first
from tests.api.client import Client
from tests.api.downloading import LINES, endless_download
from tests.api.node_programs import runs
from tests.api.partners import Partner
from tests.api.test_subscriptions import Telling, telling
from tests.chain.written import POLICY, Written, hash_of, pays, person, tx
from tests.patience import PATIENCE_S

__all__ = ["telling"]

pytestmark = programs.needs("npm")

TESTS = Path(__file__).parent / "typescript"
CLIENT = Path(__file__).parents[2] / "clients" / "typescript"
COMPILER = ("typescript@5.9.3", "@types/node@20")

POOL = bytes(range(28))
COIN = b"Coin".hex()
ALICE, BOB = person("alice"), person("bob")


def ran(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False, env=os.environ
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project with the client installed, and our programs compiled in it."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "package.json").write_text('{"name": "project", "private": true, "type": "module"}')
    install = ("npm", "install", "--silent", "--no-audit", "--no-fund")
    programs.install(*install, *COMPILER, folder=folder)
    shutil.copytree(CLIENT, folder / "client", ignore=shutil.ignore_patterns("node_modules", "dist"))
    done = ran(*install, "./client", folder=folder)  # its script `prepare` compiles it
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(TESTS, folder / "src")
    for name, sample in samples().items():
        (folder / "src" / f"{name}.ts").write_text(sample)
    done = ran("node_modules/.bin/tsc", "--project", "src", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def samples() -> dict[str, str]:
    """The samples of /docs by operation, that of the README, and the example beside it."""
    paths = document(ROUTES, {})["paths"]
    operations = (operation for methods in paths.values() for operation in methods.values())
    found = {
        f"sample_{operation['operationId']}": sample["source"]
        for operation in operations
        for sample in operation["x-codeSamples"]
        if sample["lang"] == "TypeScript"
    }
    assert len(found) == len(ROUTES)
    (in_readme,) = re.findall(r"```ts\n(.*?)```", (CLIENT / "README.md").read_text(), flags=re.DOTALL)
    return found | {"readme": in_readme, "onboard": (CLIENT / "examples" / "onboard.ts").read_text()}


async def test_a_customer_is_onboarded_and_queries_the_chain(
    api: Client, partner: Partner, database_url: str, project: Path
) -> None:
    connection = await database.connect(database_url, PREVIEW)
    chain = Written(connection)
    rich = {"address": BOB, "value": {"ada": {"lovelace": 2**63 - 1}, POLICY: {COIN: 2**64 - 1, "": 1}}}
    await chain.append(9, tx("rich", rich))
    for slot_no in range(10, 14):
        await chain.append(slot_no, tx(f"{slot_no} a", pays(ALICE)), tx(f"{slot_no} b", pays(ALICE)))
    await chain.append(14, tx("coins", pays(ALICE, (COIN, 3))))
    await delegate(connection, [10, 20, 30])
    await connection.close()
    await runs(
        project / "out" / "life.js",
        URL=f"http://127.0.0.1:{api.port}",
        ADMIN_KEY=partner.admin_key,
        ALICE=ALICE,
        ASSET=f"{POLICY}.{COIN}",
        RICH=hash_of("rich"),
        POOL=bech32_encode("pool", POOL),
    )


async def delegate(preview: asyncpg.Connection, amounts: list[int]) -> None:
    """Credentials 1, 2, 3 … delegate these amounts to POOL."""
    parameters = packed.pack_pool_parameters(packed.PoolParameters(b"\xab" * 32, pledge=0, fixed_cost=0, margin="0/1"))
    await preview.execute("INSERT INTO pool VALUES (2, $1)", POOL)
    await preview.execute(
        "INSERT INTO pool_update (tx_id, pool_no, place, parameters) VALUES (1, 2, 0, $1)", parameters
    )
    await preview.execute(
        """
        WITH given AS (SELECT * FROM unnest($1::bigint[]) WITH ORDINALITY AS given (amount, number)),
        stakes AS (
            INSERT INTO stake (stake_no, pool_no, active_epoch_no, balance, raw)
            SELECT number, 2, 1, amount, '\\xe0' || decode(lpad(to_hex(number), 56, '0'), 'hex') FROM given
        )
        INSERT INTO delegator (stake_no, pool_no, amount) SELECT number, 2, amount FROM given
        """,
        amounts,
    )
    await preview.execute(
        "INSERT INTO delegator_bucket SELECT pool_no, bucket, count(*), sum(amount) FROM delegator GROUP BY 1, 2"
    )


async def test_requests_to_a_busy_service_are_retried_if_that_is_safe(project: Path) -> None:
    async with busy_at_first() as (url, requests):
        await runs(project / "out" / "retries.js", URL=url)
    tried_again = REFUSED_TIMES + 1
    assert len(requests["/v1/pools/pool1"]) == len(requests["/v1/admin/users"]) == tried_again
    assert len(requests["/v1/admin/credentials/c"]) == 1, "it may have been done"
    assert len(requests["/v1/key"]) == 1, "the quota opens again in a day"
    *once, given = requests["/v1/admin/users/u/suspend"]
    assert (len(once), len(set(once)), given) == (tried_again, 1, "mine")


async def test_a_download_is_read_line_by_line_while_it_arrives(project: Path) -> None:
    async with endless_download() as url:
        await runs(project / "out" / "downloads.js", URL=url, LINES=json.dumps(LINES))


async def test_events_are_read_as_they_happen(telling: Telling, project: Path) -> None:
    """Over streams that end all the time."""
    subscription = await telling.subscribe({"kind": "transaction", "address": ALICE})
    url = f"http://127.0.0.1:{telling.api.port}"
    reading = runs(project / "out" / "events.js", URL=url, KEY=telling.key, SUBSCRIPTION=subscription)
    with patch.object(stream, "MAX_OPEN_S", 0.3):
        following = asyncio.create_task(reading)
        await telling.append(20, tx("a", pays(ALICE)))
        await telling.append(30, tx("b", pays(ALICE)))
        await asyncio.sleep(0.5)
        await telling.back_to(20)
        await telling.append(35, tx("c", pays(ALICE)))
        await following


async def test_webhooks_are_verified(project: Path) -> None:
    await runs(project / "out" / "webhooks.js")
