"""Protocol parameters, genesis and the state of the network, from rows in the indexer's form."""

import json
from collections.abc import AsyncIterator
from decimal import Decimal

import asyncpg
import pytest

from devnet import networks
from devnet.blocks import Genesis
from devnet.parameters import genesis_configuration, protocol_parameters
from indexer.ledger.reader import GENESIS_ERAS
from shared import database
from shared.network import PREVIEW
from tests.api.client import Client
from tests.chain.written import ADA, Written, pays, person, tx

EPOCH = PREVIEW.epoch_slots


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


@pytest.fixture
async def chain(db: asyncpg.Connection) -> Written:
    """A block in each of two epochs, the second at slot 100 of its epoch."""
    chain = Written(db)
    await chain.append(10, tx("a", pays(person("p", staked=True))))
    await chain.append(EPOCH + 100, tx("b", pays(person("q"))))
    return chain


async def store_parameters(db: asyncpg.Connection, epoch_no: int) -> None:
    told = json.dumps(protocol_parameters("conway", (7, 0)))
    await db.execute("INSERT INTO epoch_parameters VALUES ($1, $2::text::json)", epoch_no, told)


async def test_parameters_are_given_in_both_forms(
    api: Client, key: str, db: asyncpg.Connection, chain: Written
) -> None:
    assert chain
    await store_parameters(db, 1)
    for epoch in ("1", "latest"):
        body = (await api.get(f"/v1/epochs/{epoch}/parameters", key)).body
        assert body["data"]["epoch_no"] == 1
        assert body["data"]["ogmios"] == protocol_parameters("conway", (7, 0))
        assert body["data"]["cardano_cli"]["txFeePerByte"] == 44
        assert Decimal(str(body["data"]["cardano_cli"]["executionUnitPrices"]["priceMemory"])) == Decimal("0.0577")
        assert body["last_updated"]["slot_no"] == EPOCH + 100
    unknown = await api.get("/v1/epochs/0/parameters", key)
    assert (unknown.status, unknown.headers["Error-Code"]) == (404, "parameters_not_known")
    missing = await api.get("/v1/epochs/2/parameters", key)
    assert (missing.status, missing.headers["Error-Code"]) == (404, "epoch_not_found")


async def test_a_rollback_keeps_parameters_of_epochs_that_stay(db: asyncpg.Connection, chain: Written) -> None:
    for epoch_no in (0, 1):
        await store_parameters(db, epoch_no)
    await chain.back_to(10)
    assert [row["epoch_no"] for row in await db.fetch("SELECT epoch_no FROM epoch_parameters")] == [0]


async def test_the_genesis_is_given_in_single_fields_and_whole(
    api: Client, key: str, db: asyncpg.Connection, chain: Written
) -> None:
    assert chain
    unread = await api.get("/v1/genesis", key)
    assert (unread.status, unread.headers["Error-Code"]) == (404, "genesis_not_known")
    shelley = genesis_configuration("shelley", networks.PREVIEW, Genesis(), (7, 0))
    await db.execute("INSERT INTO genesis_configuration VALUES ('shelley', $1::text::json)", json.dumps(shelley))
    told = (await api.get("/v1/genesis", key)).body["data"]
    assert (told["shelley"], told["byron"], told["dijkstra"]) == (shelley, None, None)
    flat = {name: value for name, value in told.items() if name not in GENESIS_ERAS}
    assert flat == {
        "network_magic": 2,
        "start_time": "2022-10-25T00:00:00Z",
        "epoch_length": 86_400,
        "slot_length_ms": 1_000,
        "active_slots_coefficient": 0.05,
        "security_parameter": 2_160,
        "slots_per_kes_period": 129_600,
        "max_kes_evolutions": 62,
        "update_quorum": 5,
        "max_lovelace_supply": "45000000000000000",
    }


async def test_the_network_adds_up(api: Client, key: str, db: asyncpg.Connection, chain: Written) -> None:
    assert chain
    before = (await api.get("/v1/network", key)).body["data"]
    assert (before["supply"], before["stake"]) == (None, {"live": "0", "active": "0"})
    assert before["epoch"] == {
        "epoch_no": 1,
        "epoch_slot": 100,
        "start_time": "2022-10-26T00:00:00Z",
        "end_time": "2022-10-27T00:00:00Z",
        "first_slot_no": EPOCH,
        "last_slot_no": 2 * EPOCH - 1,
    }
    await db.execute(
        "INSERT INTO ledger_state (slot_no, epoch_no, reserves, treasury) VALUES ($1, 1, 30, 4)", EPOCH + 100
    )
    await db.execute("UPDATE live_stake SET lovelace = $1", 7 * ADA)
    await db.execute("INSERT INTO pool_epoch VALUES (101, 1, 0, 10), (102, 1, 0, 20), (102, 2, 0, 40)")
    await db.execute("INSERT INTO pool_reward VALUES (101, 1, 3), (102, 2, 5)")
    await chain.append(EPOCH + 120)
    told = (await api.get("/v1/network", key)).body["data"]
    assert told["supply"] == {
        "slot_no": EPOCH + 100,
        "max": "45000000000000000",
        "total": "44999999999999970",
        "circulating": "44999999999999966",
        "locked": None,  # of an index that begins later than the chain
        "treasury": "4",
        "reserves": "30",
    }
    assert told["stake"] == {"live": str(7 * ADA), "active": "33"}
    assert (told["network"], told["network_magic"], told["tip"]["slot_no"]) == ("preview", 2, EPOCH + 120)
