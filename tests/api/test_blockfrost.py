"""The façade's own promises: keys, errors, scopes and pages in Blockfrost's shape."""

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import cbor2
import pytest

from api.blockfrost import accounts
from api.blockfrost.not_answered import POSTED, REASONS
from api.blockfrost.routes import FACADE
from api.blockfrost.shape import ROOT
from api.chain.pools import show_pool_id
from api.keys.restrictions import GRANTED_ONLY, SCOPES
from api.usage.spool import Spool, spools_in
from shared import address, database, packed
from shared.network import PREVIEW
from tests.api.chains import Chain, Tx, hash_of
from tests.api.client import Client, Reply
from tests.api.conftest import IssueKey
from tests.api.hostile import BROKEN, HOSTILE
from tests.api.payments import ALICE, BOB, NOBODY, ON_MAINNET, STAKE, pays, raw
from tests.api.submitting import grant
from tests.chain.model import bech32_payload
from tests.chain.written import Written, person, reward_account, tx
from tests.chain.written import pays as paying

EPOCH_SLOTS = 86_400
KEYED = [route for route in FACADE if route.access != "open"]
VALUES = {
    "block": "latest",
    "epoch": "latest",
    "slot_number": "10",
    "xpub": "7ec9738746cb4708df52a455b43aa3fdee8955abaf37f68ffc79bb84fbf9e1b3" + "00" * 32,
    "role": "0",
    "index": "0",
    "epoch_number": "0",
    "hash": "0" * 64,
    "address": ALICE,
    "stake_address": STAKE,
    "asset": "0" * 56,
    "policy": "0" * 56,
    "pool": "0" * 56,
    "poolId": "0" * 56,
    "label": "674",
    "scriptHash": "0" * 56,
    "datumHash": "0" * 64,
}


@pytest.fixture
async def written(database_url: str) -> AsyncIterator[Written]:
    connection = await database.connect(database_url, PREVIEW)
    yield Written(connection)
    await connection.close()


async def test_an_unanswered_path_gives_the_reason_and_is_not_404(api: Client, key: str) -> None:
    """Blockfrost's clients read 404 as: never used."""
    for path, reason in REASONS.items():
        reply = await api.call("POST" if path in POSTED else "GET", ROOT + path_of(path), headers={"project_id": key})
        assert failure(reply) == (501, "Not Implemented", f"Not answered here: {reason}.")
    for path in ("/nothing", "/blocks/latest/nothing"):
        assert failure(await get(api, path, key))[:2] == (400, "Bad Request")


async def get(api: Client, path: str, key: str, **headers: str) -> Reply:
    return await api.call("GET", f"{ROOT}{path}", headers={"project_id": key} | headers)


def failure(reply: Reply) -> tuple[int, str, str]:
    """The parts of an error. Asserts that it has Blockfrost's shape, and the status of the answer."""
    assert list(reply.body) == ["status_code", "error", "message"]
    assert reply.body["status_code"] == reply.status
    return reply.status, reply.body["error"], reply.body["message"]


def path_of(path: str) -> str:
    """A path with a value for each of its parameters."""
    return re.sub(r"\{(\w+)\}", lambda found: VALUES.get(found[1], "x"), path)


async def test_every_path_requires_a_key_in_one_of_three_places(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    for route in KEYED:
        path = path_of(route.path)
        missing = failure(await api.call(route.method, path))
        assert missing[:2] == (403, "Forbidden"), route.name
        assert "project_id" in missing[2]
        for wrong in ("x", "iiak_" + "0" * 43, "a b", ""):
            refused = failure(await api.call(route.method, path, headers={"project_id": wrong}))
            assert refused[:2] == (403, "Forbidden"), (route.name, wrong)
    for headers in ({"project_id": key}, {"Authorization": f"Bearer {key}"}):
        assert (await api.call("GET", f"{ROOT}/blocks/latest", headers=headers)).status == 200
    with_user = await api.call("GET", f"{ROOT}/blocks/latest", headers={"Authorization": basic(key)})
    assert with_user.status == 200


async def test_a_key_may_begin_with_the_name_of_its_network(
    api: Client, chain: Chain, key: str, data_dir: Path
) -> None:
    """As Blockfrost's project ids do. The name of another network is refused like a wrong key, and does not count."""
    await chain.append(10, pays("a", ALICE))
    path = f"{ROOT}/blocks/latest"
    remaining = []
    for network, status in (("preview", 200), ("mainnet", 403), ("preprod", 403), ("preview", 200)):
        named = network + key
        for headers in ({"project_id": named}, {"Authorization": f"Bearer {named}"}, {"Authorization": basic(named)}):
            reply = await api.call("GET", path, headers=headers)
            assert reply.status == status, (network, headers)
            if status == 403:
                assert failure(reply) == (403, "Forbidden", "Network token mismatch.")
                assert not [name for name in reply.headers if name.startswith("RateLimit")]
            else:
                remaining.append(int(reply.headers["RateLimit-Remaining"]))
    assert remaining == list(range(remaining[0], remaining[0] - 6, -1))
    assert spooled_statuses(data_dir) == [200] * 6
    for wrong in (f"testnet{key}", f"previewpreview{key}", f"preview{key}x", "preview"):
        assert failure(await get(api, "/blocks/latest", wrong)) == (403, "Forbidden", "Invalid project token.")
    assert (await api.get("/v1/blocks/latest", f"preview{key}")).status == 403


async def test_slashes_that_clients_add_change_nothing(api: Client, chain: Chain, key: str) -> None:
    """Helios asks for `/utxos/?count=100`; a base URL with a slash at its end gives `//addresses`."""
    await chain.append(10, pays("a", ALICE))
    plain = await get(api, f"/addresses/{ALICE}/utxos", key)
    for path in (f"/addresses/{ALICE}/utxos/?count=100", f"//addresses/{ALICE}//utxos", f"//addresses/{ALICE}/utxos//"):
        assert (await get(api, path, key)).body == plain.body, path
    for path in ("", "/", "//"):
        assert list((await api.get(ROOT + path)).body) == ["url", "version"]
    assert (await api.get("/v1/blocks/latest/", key)).status == 404


def basic(key: str) -> str:
    return "Basic " + base64.b64encode(f"{key}:".encode()).decode()


async def test_metadata_is_shown_as_plain_json_and_as_cbor(api: Client, chain: Chain, key: str) -> None:
    content = {"msg": ["a", b"\xff"], 1: {"most": 2**64 - 1}}
    extra = packed.Extra(metadata_cbor={674: cbor2.dumps(content)}, metadata_json={7: b'{"a": [1, {"b": "c"}]}'})
    await chain.append(10, Tx(name="noted", extra=extra))
    path = f"/txs/{hash_of('noted').hex()}/metadata"
    assert (await get(api, path, key)).body == [
        {"label": "7", "json_metadata": {"a": [1, {"b": "c"}]}},
        {"label": "674", "json_metadata": {"msg": ["a", "0xff"], "1": {"most": 2**64 - 1}}},
    ]
    without, as_cbor = (await get(api, f"{path}/cbor", key)).body
    assert cbor2.loads(bytes.fromhex(as_cbor["metadata"])) == {674: content}
    assert as_cbor["cbor_metadata"] == f"\\x{as_cbor['metadata']}"
    assert without == {"label": "7", "cbor_metadata": None, "metadata": None}


async def test_keys_in_keys_of_metadata_do_not_make_an_answer_large(api: Client, chain: Chain, key: str) -> None:
    """JSON of JSON doubles the backslashes at each level: 59 bytes of metadata would be a gigabyte."""
    extra = packed.Extra(
        metadata_cbor={at: b"\xa1" * levels + b"\x01" + b"\x02" * levels for at, levels in enumerate((2, 5, 16))}
    )
    await chain.append(10, Tx(name="noted", extra=extra))
    told = (await get(api, f"/txs/{hash_of('noted').hex()}/metadata", key)).body
    assert [each["json_metadata"] for each in told] == [{'{"1": 2}': 2}, None, None]


@pytest.mark.parametrize("state", ["UPDATE chain_preview.tip SET phase = 'bulk'", "DELETE FROM chain_preview.tip"])
async def test_nothing_is_unused_while_the_network_is_not_served(
    api: Client, chain: Chain, issue_key: IssueKey, db: asyncpg.Connection, state: str
) -> None:
    """Blockfrost's clients read 404 as: never used."""
    key = await issue_key()
    await grant(db, *SCOPES)
    await chain.append(10, pays("a", ALICE))
    await db.execute(state)
    await db.execute("TRUNCATE chain_preview.account_tx, chain_preview.address_tx, chain_preview.utxo")
    found = {}
    for route in KEYED:
        if route.method == "GET":
            path = path_of(route.path.replace("{hash}", hash_of("a").hex())).removeprefix(ROOT)
            reply = await get(api, path, key)
            if reply.status not in (501, 503):
                found[route.path.removeprefix(ROOT)] = reply.status
    about_no_chain = ("/metrics", "/metrics/endpoints", "/utils/addresses/xpub/{xpub}/{role}/{index}")
    assert found == dict.fromkeys(about_no_chain, 200)


async def test_the_service_and_its_health_are_shown_without_a_key(api: Client) -> None:
    for path in ("", "/"):
        assert list((await api.get(ROOT + path)).body) == ["url", "version"]
    assert list((await api.get(f"{ROOT}/health")).body) == ["is_healthy"]
    assert (await api.get(f"{ROOT}/health/clock")).body["server_time"] > 1_700_000_000_000


async def test_errors_are_in_blockfrosts_shape(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    unknown = (404, "Not Found", "The requested component has not been found.")
    for path in (f"/txs/{'0' * 64}", f"/txs/{'0' * 64}/utxos", f"/blocks/{'0' * 64}", "/blocks/9999", "/epochs/9999"):
        assert failure(await get(api, path, key)) == unknown, path
    for path in (f"/addresses/{NOBODY}/utxos", f"/addresses/{BOB}/utxos"):
        assert failure(await get(api, path, key)) == unknown, path
    for path in ("/txs/xyz", "/blocks/x", f"/addresses/{ON_MAINNET}/utxos", "/addresses/x/utxos", "/epochs/x"):
        assert failure(await get(api, path, key))[:2] == (400, "Bad Request"), path
    reply = await api.call("POST", f"{ROOT}/blocks/latest", headers={"project_id": key})
    assert failure(reply)[:2] == failure(await get(api, "/nothing", key))[:2] == (400, "Bad Request")
    assert reply.headers["Allow"] == "GET, HEAD"


async def test_hostile_texts_in_paths_and_queries_are_harmless(
    api: Client, chain: Chain, issue_key: IssueKey, db: asyncpg.Connection
) -> None:
    """No text causes an error in the service, and each refusal has Blockfrost's shape."""
    keys = cycle([await issue_key() for _ in range(3)])  # more requests than one key may send in a minute
    await grant(db, *SCOPES)
    await chain.append(10, pays("a", ALICE))
    texts = [*(quote(text, safe="") for text in HOSTILE), *BROKEN]

    async def send(path: str) -> None:
        reply = await get(api, path, next(keys))
        if reply.headers.get("Error-Code") == "no_node":  # only of a path that is right
            assert failure(reply)[0] == 503
            return
        assert reply.status == 200 or failure(reply)[0] in {400, 404, 501}, path[:200]

    for route in KEYED:
        if route.method == "GET" and route.scope:
            path, whole = route.path.removeprefix(ROOT), path_of(route.path).removeprefix(ROOT)
            paths = [path_of(path.replace(f"{{{name}}}", text)) for _, name in route.parameters for text in texts]
            names = [field.name for field in route.fields if f"{{{field.name}}}" not in path]
            paths += [f"{whole}?{name}={text}" for name in names for text in texts]
            await asyncio.gather(*map(send, paths))


async def test_pages_have_blockfrosts_limits(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", *[ALICE] * 7))
    for route in KEYED:
        names = {field.name for field in route.fields}
        if "count" not in names:
            continue
        path = path_of(route.path).removeprefix(ROOT)
        for query in ("count=0", "count=101", "count=x", "page=0", "page=21474837", "page=x", "count=1&count=1"):
            assert failure(await get(api, f"{path}?{query}", key))[:2] == (400, "Bad Request"), (path, query)
        if "order" in names:
            assert failure(await get(api, f"{path}?order=up", key))[:2] == (400, "Bad Request"), path
        plain = (await get(api, path, key)).status
        assert (await get(api, f"{path}?count=100&page=21474836", key)).status == plain, path


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        ("from=0", "ab"),
        ("to=0", ""),
        ("from=0&to=1", "a"),
        ("from=2", "b"),
        ("to=2", "ab"),
        ("from=3", ""),
        ("to=3", "ab"),
        ("from=0:0&to=0:5", ""),
        ("from=1:1", "b"),
    ],
)
async def test_a_range_may_begin_and_end_outside_the_indexed_blocks(
    api: Client, key: str, written: Written, limits: str, found: str
) -> None:
    for slot_no, name in ((10, "a"), (20, "b")):  # blocks 1 and 2
        await written.append(slot_no, tx(name, paying(person("somebody"))))
    reply = await get(api, f"/addresses/{person('somebody')}/transactions?{limits}", key)
    assert [each["tx_hash"] for each in reply.body] == [hash_of(name).hex() for name in found]


async def test_a_registered_account_without_outputs_has_empty_lists(api: Client, key: str, written: Written) -> None:
    credential = hashlib.blake2b(b"x", digest_size=28).hexdigest()
    registration = {
        "type": "stakeCredentialRegistration",
        "from": "verificationKey",
        "credential": credential,
        "deposit": {"ada": {"lovelace": 2_000_000}},
    }
    await written.append(10, tx("a", paying(person("somebody")), certificates=[registration]))
    path = f"/accounts/{reward_account('x')}"
    assert (await get(api, path, key)).body["registered"] is True
    for part in ("addresses", "addresses/assets", "utxos", "delegations", "withdrawals"):
        assert (await get(api, f"{path}/{part}", key)).body == [], part


async def test_an_account_is_known_by_its_withdrawals_and_certificates(api: Client, key: str, written: Written) -> None:
    """No address of these accounts was ever used, and none of them is registered, as far as the index has seen."""
    of_y = {"from": "verificationKey", "credential": hashlib.blake2b(b"y", digest_size=28).hexdigest()}
    withdrawn = {reward_account("x"): {"ada": {"lovelace": 7}}}
    ended = {"type": "stakeCredentialDeregistration", **of_y, "deposit": {"ada": {"lovelace": 2_000_000}}}
    await written.append(10, tx("a", paying(person("somebody")), withdrawals=withdrawn, certificates=[ended]))
    found = (await get(api, f"/accounts/{reward_account('x')}/withdrawals", key)).body
    assert [(each["tx_hash"], each["amount"]) for each in found] == [(hash_of("a").hex(), "7")]
    assert (await get(api, f"/accounts/{reward_account('y')}", key)).body["registered"] is False
    assert (await get(api, f"/accounts/{reward_account('z')}", key)).status == 404


async def test_an_account_is_known_by_its_instantaneous_rewards(api: Client, key: str, written: Written) -> None:
    credential = hashlib.blake2b(b"x", digest_size=28).digest()
    moved = [
        [6, [0, {(0, credential): 5, (1, credential): 1}]],
        [6, [1, {(0, credential): -2}]],
        [6, [0, 1_000]],
    ]
    body = cbor2.dumps({0: [[bytes(32), 0]], 1: [], 2: 0, 4: moved})
    withdrawals: dict[str, Any] = {"action": {"type": "treasuryWithdrawals", "withdrawals": {}, "guardrails": None}}
    sent: dict[str, Any] = {"cbor": (b"\x84" + body + bytes.fromhex("a0f5f6")).hex(), "proposals": [withdrawals]}
    await written.append(10, tx("a", paying(person("p")), **sent), era="alonzo")
    await written.append(20, tx("b", paying(person("p")), **(sent | {"cbor": None})), era="alonzo")
    account, of_script = reward_account("x"), address.show_stake(b"\xf0" + credential)
    shown = (await get(api, f"/txs/{hash_of('a').hex()}/mirs", key)).body
    assert [(each["pot"], each["cert_index"], each["address"], each["amount"]) for each in shown] == [
        ("reserve", 0, of_script, "1"),
        ("reserve", 0, account, "5"),
        ("treasury", 1, account, "-2"),
    ]
    assert (await get(api, f"/txs/{hash_of('a').hex()}", key)).body["mir_cert_count"] == 2
    for order, amounts in (("asc", ["5", "-2"]), ("desc", ["-2", "5"])):
        listed = (await get(api, f"/accounts/{account}/mirs?order={order}", key)).body
        assert [(each["amount"], each["tx_slot"]) for each in listed] == [(amount, 10) for amount in amounts]
    assert len((await get(api, f"/accounts/{account}/mirs?count=1&page=2", key)).body) == 1
    assert (await get(api, f"/accounts/{of_script}", key)).body["registered"] is not True
    without = await get(api, f"/txs/{hash_of('b').hex()}/mirs", key)
    assert (without.status, "--include-transaction-cbor" in without.body["message"]) == (503, True)
    assert (await get(api, f"/txs/{hash_of('b').hex()}", key)).body["mir_cert_count"] is None


@pytest.mark.parametrize("count", [3, 50, 120])
async def test_inputs_that_are_only_read_come_first_and_collateral_last(
    api: Client, key: str, written: Written, count: int
) -> None:
    def named(*indexes: int) -> list[dict[str, Any]]:
        return [{"transaction": {"id": hash_of("made").hex()}, "index": index} for index in indexes]

    await written.append(10, tx("made", *(paying(person(f"p{index}"), ("aa", 1)) for index in range(count + 2))))
    returned = paying(person("change"))
    rest: dict[str, Any] = {
        "references": named(*range(count)),
        "collaterals": named(count),
        "collateralReturn": returned,
    }
    rest["references"].append({"transaction": {"id": hash_of("unknown").hex()}, "index": 1})
    await written.append(20, tx("reads", paying(person("q")), spends=(("made", count + 1),), **rest))
    found = (await get(api, f"/txs/{hash_of('reads').hex()}/utxos", key)).body
    *read, unknown, spent, collateral = found["inputs"]
    assert [(each["output_index"], each["reference"], each["collateral"]) for each in read] == [
        (index, True, False) for index in range(count)
    ]
    assert [each["address"] for each in read] == [person(f"p{index}") for index in range(count)]
    assert {len(each["amount"]) for each in (*read, spent)} == {2}
    assert (unknown["reference"], unknown["address"], unknown["amount"]) == (True, None, None)
    assert (spent["output_index"], spent["reference"], spent["collateral"]) == (count + 1, False, False)
    assert (collateral["output_index"], collateral["collateral"], len(collateral["amount"])) == (count, True, 1)
    made, change = found["outputs"]
    assert (made["collateral"], change["collateral"], change["output_index"]) == (False, True, 1)
    assert change["address"] == person("change") and change["consumed_by_tx"] is None
    assert (await get(api, f"/txs/{hash_of('reads').hex()}", key)).body["utxo_count"] == 2


async def test_the_boundary_block_before_the_first_one_is_left_out(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection
) -> None:
    """On mainnet block 1 follows an epoch boundary block with number 0, which is not kept."""
    hashes = [await chain.append(slot) for slot in (10, 20, 30)]
    await db.execute("DELETE FROM chain_preview.block WHERE block_no = 0")
    assert (await get(api, "/blocks/1/previous", key)).body == []
    assert [each["hash"] for each in (await get(api, "/blocks/2/previous", key)).body] == [hashes[1]]


async def test_pools_are_listed_in_the_order_of_their_first_registration(
    api: Client, key: str, written: Written
) -> None:
    first, second = bytes([2] * 28), bytes([1] * 28)  # new in one block, pools are numbered by their ids
    await written.append(
        10, tx("a", certificates=[registers(first), registers(second)]), tx("b", certificates=[registers(first)])
    )
    expected = [show_pool_id(first), show_pool_id(second)]
    for order, pools in (("asc", expected), ("desc", expected[::-1])):
        assert (await get(api, f"/pools?order={order}", key)).body == pools
        assert [each["pool_id"] for each in (await get(api, f"/pools/extended?order={order}", key)).body] == pools


async def test_a_pool_is_listed_until_its_last_retirement(api: Client, key: str, written: Written) -> None:
    """A later retirement replaces an earlier one."""
    pool = bytes(28)
    retirements = [
        {"type": "stakePoolRetirement", "stakePool": {"id": show_pool_id(pool), "retirementEpoch": epoch}}
        for epoch in (1, 2)
    ]
    await written.append(10, tx("a", certificates=[registers(pool), *retirements]))
    for epoch, pools in ((1, [show_pool_id(pool)]), (2, [])):
        await written.append(epoch * EPOCH_SLOTS)
        assert (await get(api, "/pools", key)).body == pools
        status = (await api.get(f"/v1/pools/{pool.hex()}", key)).body["data"]["status"]
        assert status == ("retiring" if pools else "retired")


def registers(pool: bytes) -> dict[str, Any]:
    """A certificate that registers a pool."""
    ada = {"ada": {"lovelace": 340_000_000}}
    parameters = {
        "id": show_pool_id(pool),
        "vrfVerificationKeyHash": "0" * 64,
        "pledge": ada,
        "cost": ada,
        "margin": "1/100",
        "rewardAccount": reward_account("x"),
        "owners": [],
        "relays": [],
    }
    return {"type": "stakePoolRegistration", "stakePool": parameters}


async def test_an_account_is_active_since_its_registration(api: Client, key: str, written: Written) -> None:
    """`active_epoch` is the epoch of the last registration or deregistration, whatever was delegated since."""
    account = reward_account("x")
    credential = {"credential": bech32_payload(account)[1:].hex(), "from": "verificationKey"}
    pool = {"stakePool": {"id": show_pool_id(bytes(28))}}
    registered, ended, delegated = (
        {"type": kind} | credential
        for kind in ("stakeCredentialRegistration", "stakeCredentialDeregistration", "stakeDelegation")
    )
    await written.append(10, tx("a", certificates=[registers(bytes(28)), registered]))
    for epoch, certificates, told in (
        (1, [delegated | pool], (True, 0)),
        (2, [ended], (False, 2)),
        (4, [registered, delegated | pool], (True, 4)),
        (6, [delegated | pool], (True, 4)),
    ):
        await written.append(epoch * EPOCH_SLOTS, tx(f"in {epoch}", certificates=certificates))
        found = (await get(api, f"/accounts/{account}", key)).body
        assert (found["active"], found["active_epoch"]) == told


async def test_sums_of_an_account_add_up(
    api: Client, key: str, written: Written, db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has withdrawn and can withdraw is what it was given. A chunk has 64 withdrawals."""
    monkeypatch.setattr(accounts, "_CHUNKS_AT_ONCE", 1)
    account = reward_account("x")
    await written.append(10, tx("a", paying(person("x", staked=True))))
    await db.execute("UPDATE chain_preview.tip SET first_block_no = 0")
    assert sums(await get(api, f"/accounts/{account}", key)) == ("0", "0", "0")
    for slot, lovelace in (*((slot, 1) for slot in range(20, 90)), (100, 0), (110, 2**53)):
        withdrawn = {account: {"ada": {"lovelace": lovelace}}}
        await written.append(slot, tx(f"at {slot}", paying(person("x", staked=True)), withdrawals=withdrawn))
    await db.execute("INSERT INTO chain_preview.reward SELECT stake_no, 7 FROM chain_preview.stake")
    assert sums(await get(api, f"/accounts/{account}", key)) == (str(2**53 + 77), str(2**53 + 70), "7")
    await db.execute("UPDATE chain_preview.tip SET first_block_no = 1")
    assert sums(await get(api, f"/accounts/{account}", key)) == (None, None, "7")


def sums(reply: Reply) -> tuple[str | None, str | None, str]:
    return reply.body["rewards_sum"], reply.body["withdrawals_sum"], reply.body["withdrawable_amount"]


async def test_parameters_of_a_pool_count_from_an_epoch_that_its_registration_decides(
    api: Client, key: str, written: Written, db: asyncpg.Connection
) -> None:
    """Two epochs later for a new pool, three for one that is registered."""
    pool = bytes(28)
    end = {"type": "stakePoolRetirement", "stakePool": {"id": show_pool_id(pool), "retirementEpoch": 3}}
    for epoch, certificates, expected in (
        (0, [registers(pool)], [2]),
        (1, [registers(pool), end], [4]),
        (2, [], []),
        (3, [registers(pool), registers(pool)], [5, 6]),  # retired at the start of this epoch
    ):
        name = f"in {epoch}"
        await written.append(epoch * EPOCH_SLOTS + 10, tx(name, certificates=certificates))
        await db.execute("UPDATE chain_preview.tip SET first_block_no = 0")
        found = (await get(api, f"/txs/{hash_of(name).hex()}/pool_updates", key)).body
        assert [each["active_epoch"] for each in found] == expected
    await db.execute("UPDATE chain_preview.tip SET first_block_no = 1")
    found = (await get(api, f"/txs/{hash_of('in 0').hex()}/pool_updates", key)).body
    assert [each["active_epoch"] for each in found] == [None]


async def test_the_live_pledge_is_the_stake_of_owners_that_delegate_to_their_pool(
    api: Client, key: str, written: Written, db: asyncpg.Connection
) -> None:
    owners = [bech32_payload(reward_account(name))[1:].hex() for name in "xyz"]
    pool = registers(bytes(28))
    pool["stakePool"]["owners"] = owners[:2]
    paid = [paying(person(name, staked=True)) for name in "xyz"]
    of_y, of_z = (
        {"credential": owner, "from": "verificationKey", "type": "stakeDelegation", "stakePool": pool["stakePool"]}
        for owner in owners[1:]
    )
    await written.append(10, tx("a", *paid, certificates=[pool, of_y, of_z]))
    path = f"/pools/{show_pool_id(bytes(28))}"
    balance = int((await get(api, f"/accounts/{reward_account('y')}", key)).body["controlled_amount"])
    assert balance > 0
    assert (await get(api, path, key)).body["live_pledge"] == str(balance)
    await db.execute("INSERT INTO chain_preview.reward SELECT stake_no, 7 FROM chain_preview.stake")
    await db.execute("INSERT INTO chain_preview.ledger_state (slot_no, epoch_no) VALUES (10, 0)")
    assert (await get(api, path, key)).body["live_pledge"] == str(balance + 7)


async def test_delegators_are_listed_in_both_orders(api: Client, key: str, written: Written) -> None:
    pool, names = registers(bytes(28)), "abcdefg"
    delegations = [
        {"credential": bech32_payload(reward_account(name))[1:].hex(), "from": "verificationKey"}
        | {"type": "stakeDelegation", "stakePool": pool["stakePool"]}
        for name in names
    ]
    paid = [paying(person(name, staked=True)) for at, name in enumerate(names) for _ in range(at)]
    await written.append(10, tx("a", *paid, certificates=[pool, *delegations]))
    smallest_first = [reward_account(name) for name in names]
    for count in (1, 2, 3, 7, 100):
        for order, expected in (("asc", smallest_first), ("desc", smallest_first[::-1])):
            met = []
            for page in range(1, 9):
                path = f"/pools/{show_pool_id(bytes(28))}/delegators?count={count}&page={page}&order={order}"
                met += [each["address"] for each in (await get(api, path, key)).body]
            assert met == expected


async def test_a_walk_over_pages_returns_each_output_once(api: Client, key: str, written: Written) -> None:
    somebody = person("p")
    await written.append(10, tx("a", *[paying(somebody)] * 7))
    for count in (1, 2, 3, 7):
        for order in ("asc", "desc"):
            met = []
            for page in range(1, 9):
                found = (
                    await get(api, f"/addresses/{somebody}/utxos?count={count}&page={page}&order={order}", key)
                ).body
                met += [each["output_index"] for each in found]
            assert met == sorted(range(7), reverse=order == "desc")


async def test_an_output_of_the_genesis_is_found(api: Client, chain: Chain, key: str, db: asyncpg.Connection) -> None:
    await chain.append(10, pays("a", ALICE))
    made_by = bytes(range(32))
    await db.execute(
        "INSERT INTO chain_preview.genesis_output (tx_id, tx_hash, address, lovelace) VALUES (-65536, $1, $2, 42)",
        made_by,
        raw(ALICE),
    )
    found = (await get(api, f"/txs/{made_by.hex()}/utxos", key)).body
    assert (found["hash"], found["inputs"], len(found["outputs"])) == (made_by.hex(), [], 1)
    assert (found["outputs"][0]["address"], found["outputs"][0]["output_index"]) == (ALICE, 0)
    assert found["outputs"][0]["amount"] == [{"unit": "lovelace", "quantity": "42"}]


async def test_evaluation_reads_hex_and_base64(api: Client, chain: Chain, key: str, db: asyncpg.Connection) -> None:
    """The API refuses text that is neither; other text gets as far as the node, which this API does not have."""
    await chain.append(10, pays("a", ALICE))
    await db.execute("UPDATE partner.credential SET scopes = '{submit}'")
    for text, status in (("00ff", 503), ("AP8=", 503), ("", 400), ("é", 400), ("0g", 400), ("AP8", 400)):
        reply = await api.call(
            "POST",
            f"{ROOT}/utils/txs/evaluate",
            headers={"project_id": key, "Content-Type": "application/cbor"},
            data=text.encode(),
        )
        assert failure(reply)[0] == status, text


async def test_evaluation_refuses_unknown_members_by_name(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection
) -> None:
    """Without the member that is wrong, the transaction gets as far as the node, which this API does not have."""
    await chain.append(10, pays("a", ALICE))
    await db.execute("UPDATE partner.credential SET scopes = '{submit}'")
    output: Any = [{"txId": "00" * 32, "index": 0}, {"address": ALICE, "value": {"coins": 1}, "datum_hash": "00" * 32}]
    sent: dict[str, Any] = {"cbor": "00ff", "additionalUtxoSet": [output]}
    misspelt = sent | {"additionalUtxo": [output]}
    of_blaze = sent | {"additionalUtxoset": [[output[0], {"address": {}, "value": {"coins": "5", "assets": {}}}]]}
    of_output = sent | {"additionalUtxoSet": [[output[0], output[1] | {"datumhash": "00" * 32}]]}
    for body, status, named in (
        (sent, 503, ""),
        (of_blaze, 503, ""),
        (misspelt, 400, "additionalUtxo "),
        (of_output, 400, "`datumhash`"),
    ):
        reply = await api.call("POST", f"{ROOT}/utils/txs/evaluate/utxos", headers={"project_id": key}, json=body)
        assert failure(reply)[0] == status
        assert named in failure(reply)[2]


async def test_exceeded_limits_have_blockfrosts_statuses(
    api: Client, chain: Chain, issue_key: IssueKey, db: asyncpg.Connection
) -> None:
    await chain.append(10, pays("a", ALICE))
    key = await issue_key(per_minute=1)
    assert (await get(api, "/blocks/latest", key)).status == 200
    limited = await get(api, "/blocks/latest", key)
    assert failure(limited)[0] == 429
    assert int(limited.headers["Retry-After"]) >= 1
    key = await issue_key()
    await db.execute("UPDATE partner.credential SET quota_requests = 1, quota_per = 'day'")
    assert (await get(api, "/blocks/latest", key)).status == 200
    assert failure(await get(api, "/blocks/latest", key))[:2] == (402, "Project Over Limit")


async def test_a_request_above_the_quota_does_not_spend_it(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection, data_dir: Path
) -> None:
    """The quota excludes requests that are counted as 429; 402 is not a status of usage."""
    await chain.append(10, pays("a", ALICE))
    await db.execute("UPDATE partner.credential SET quota_requests = 1, quota_per = 'day'")
    statuses = [(await get(api, "/blocks/latest", key)).status for _ in range(3)]
    assert statuses == [200, 402, 402]
    assert spooled_statuses(data_dir) == [200, 429, 429]


def spooled_statuses(data_dir: Path) -> list[int]:
    """The statuses of all requests that the API has counted."""
    [path] = spools_in(data_dir / "usage")
    spool = Spool.look_at(path)
    assert spool is not None
    statuses = [record.status for record in spool.records(0, spool.size_bytes)]
    spool.close()
    return statuses


async def test_a_route_needs_the_scope_of_its_native_twin(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection
) -> None:
    await chain.append(10, pays("a", ALICE))
    await db.execute("UPDATE partner.credential SET scopes = '{pools}'")
    for route in KEYED:
        if route.scope not in ("", "pools"):
            reply = await api.call(route.method, path_of(route.path), headers={"project_id": key})
            assert failure(reply) == (403, "Forbidden", f"Key does not cover {route.scope}")
    assert {route.scope for route in KEYED if route.method == "POST" and route.scope} == set(GRANTED_ONLY)
