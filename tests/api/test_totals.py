"""What addresses and accounts have received and sent, where it takes long to tell, and of indexes that begin late."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from api.http.bodies import MAX_AT_ONCE_BYTES
from shared import address, database
from shared.network import PREVIEW
from tests.api.client import Client
from tests.chain.model import stake_address_of
from tests.chain.model_chain import Chain as Model
from tests.chain.model_owners import Owners, payment_credential_of
from tests.chain.written import POLICY, Json, Written, hash_of, mints, pays, person, reward_account, tx

ANN, BOB = person("ann", staked=True), person("bob", staked=True)
MANY = [(f"{number:04x}", 1 + number) for number in range(1_200)]
FACADE = "/blockfrost/api/v0"


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


def block(slot: int, height: int, *transactions: Json) -> Json:
    return {
        "type": "praos",
        "era": "conway",
        "id": hash_of(f"block {slot}"),
        "ancestor": hash_of("before"),
        "height": height,
        "slot": slot,
        "size": {"bytes": 900},
        "issuer": {"verificationKey": "00" * 32},
        "transactions": list(transactions),
    }


async def told(api: Client, key: str, blocks: list[Json]) -> None:
    """Check the totals of these people, their accounts and payment credentials, as the API and the façade tell them."""
    owners = Owners(Model("preview").feed(blocks).ledger)
    for person_ in (ANN, BOB):
        account, payment = stake_address_of(person_), payment_credential_of(person_)
        assert account is not None
        assert payment is not None
        for owner, path, named in (
            (person_, f"/v1/addresses/{person_}/totals", f"{FACADE}/addresses/{person_}/total"),
            (account, f"/v1/accounts/{account}/totals", f"{FACADE}/accounts/{account}/addresses/total"),
            (payment, f"/v1/payment-credentials/{payment}/totals", f"{FACADE}/addresses/{payment}/total"),
        ):
            expected = owners.totals(owner)
            assert (await api.get(path, key)).body["data"] == expected, path
            answer = (await api.call("GET", named, headers={"project_id": key})).body
            units = {each["unit"]: each["quantity"] for each in answer["received_sum"]}
            assert list(units) == ["lovelace", *(each["policy_id"] + each["asset_name"] for each in expected["assets"])]
            assert list(units.values())[1:] == [each["received"] for each in expected["assets"]]
            sent = [each["sent"] for each in expected["assets"] if each["sent"] != "0"]
            assert [each["quantity"] for each in answer["sent_sum"]] == [expected["sent_lovelace"], *sent]
            assert answer["tx_count"] == expected["transaction_count"]
            assert (await api.call("HEAD", path, key)).status == 200


async def test_more_assets_than_are_named_at_once(api: Client, key: str, db: asyncpg.Connection) -> None:
    """Short histories, then long ones: each is added up in its own way."""
    blocks = [block(10, 1, tx("0", pays(ANN, *MANY), pays(BOB), mint=mints(*MANY)))]
    blocks.append(block(20, 2, tx("1", pays(BOB, *MANY[:1_100]), pays(ANN, *MANY[1_100:]), spends=(("0", 0),))))
    await Written(db).index(*blocks)
    await told(api, key, blocks)
    later = [
        block(30 + at, 3 + at, tx(f"{2 + at}", pays(ANN), pays(BOB), spends=((f"{1 + at}", 1),))) for at in range(70)
    ]
    await Written(db).index(*later)
    assert await db.fetchval("SELECT count(*) FROM address_sent") > 1_000
    await told(api, key, [*blocks, *later])


async def test_a_payment_credential_with_more_assets_than_are_named_at_once(
    api: Client, key: str, db: asyncpg.Connection
) -> None:
    """Its addresses have different assets, and some in common; first short histories, then long ones."""
    plain = person("ann")
    blocks = [block(10, 1, tx("0", pays(ANN, *MANY[:700]), pays(BOB, *MANY[700:]), mint=mints(*MANY)))]
    blocks.append(
        block(20, 2, tx("1", pays(plain, *MANY[:700]), pays(plain, *MANY[700:]), spends=(("0", 0), ("0", 1))))
    )
    blocks.append(block(30, 3, tx("2", pays(plain, *MANY[600:700]), pays(ANN, *MANY[:600]), spends=(("1", 0),))))
    blocks.append(block(40, 4, tx("3", pays(ANN, *MANY[600:700]), spends=(("2", 0),))))
    await Written(db).index(*blocks)
    assert await db.fetchval("SELECT count(*) FROM credential_sent") == 701
    await told(api, key, blocks)
    later = [block(50 + at, 5 + at, tx(f"{4 + at}", pays(ANN), spends=((f"{3 + at}", 0),))) for at in range(1, 70)]
    later.insert(0, block(50, 5, tx("4", pays(ANN, *MANY[600:700]), spends=(("3", 0),))))
    await Written(db).index(*later)
    assert await db.fetchval("SELECT count(*) FROM address_sent") > 0
    await told(api, key, [*blocks, *later])


async def test_a_short_history_of_long_inputs(api: Client, key: str, db: asyncpg.Connection) -> None:
    few = MANY[:400]
    made = [pays(ANN if at % 2 else BOB, *few) for at in range(60)]
    blocks = [block(10, 1, tx("0", *made, mint=mints(*((name, 60 * quantity) for name, quantity in few))))]
    blocks.append(block(20, 2, tx("1", pays(ANN), spends=tuple(("0", at) for at in range(60)))))
    await Written(db).index(*blocks)
    assert await db.fetchval("SELECT max(octet_length(inputs)) FROM tx") > MAX_AT_ONCE_BYTES
    await told(api, key, blocks)


async def test_what_precedes_the_first_block_does_not_count(api: Client, key: str, db: asyncpg.Connection) -> None:
    blocks = [block(10, 7, tx("0", pays(ANN, ("aa", 5)), spends=(("unknown", 0),)))]
    blocks.append(block(20, 8, tx("1", pays(BOB, ("aa", 5)), spends=(("0", 0), ("unknown", 1)))))
    await Written(db).index(*blocks)
    await told(api, key, blocks)
    asset = {"policy_id": POLICY, "asset_name": "aa", "received": "5", "sent": "5"}
    assert (await api.get(f"/v1/addresses/{ANN}/totals", key)).body["data"] == {
        "received_lovelace": "2000000",
        "sent_lovelace": "2000000",
        "transaction_count": 2,
        "assets": [asset],
    }


async def test_a_known_account_without_payments_has_received_nothing(
    api: Client, key: str, db: asyncpg.Connection
) -> None:
    account = reward_account("ann")
    registration = {
        "type": "stakeCredentialRegistration",
        "from": "verificationKey",
        "credential": address.parse_stake(account, PREVIEW)[1:].hex(),
        "deposit": {"ada": {"lovelace": 2_000_000}},
    }
    await Written(db).append(10, tx("0", pays(BOB), certificates=[registration]))
    nothing = [{"unit": "lovelace", "quantity": "0"}]
    answer = await api.call("GET", f"{FACADE}/accounts/{account}/addresses/total", headers={"project_id": key})
    expected = {"stake_address": account, "received_sum": nothing, "sent_sum": nothing, "tx_count": 0}
    assert (answer.status, answer.body) == (200, expected)
    for unused in (f"addresses/{ANN}/total", f"accounts/{reward_account('nobody')}/addresses/total"):
        assert (await api.call("GET", f"{FACADE}/{unused}", headers={"project_id": key})).status == 404
