"""The façade's answers about a generated chain agree with those of the native routes."""

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import cycle
from typing import Any

import asyncpg
import pytest

from api.blockfrost.routes import FACADE
from api.keys.restrictions import SCOPES
from api.route import Router
from devnet.parameters import protocol_parameters
from tests import blockfrost_schemas
from tests.api import sandboxes
from tests.api.conftest import IssueKey
from tests.api.sandboxes import Sandbox
from tests.chain.model import bech32_payload

ROOT = "/blockfrost/api/v0"
ROUTER = Router(FACADE)
MAX_COMPARED = 25  # objects of each kind that are compared


class BothSides:
    """Queries both sides, with keys in turn, so that none exceeds its limit."""

    def __init__(self, sandbox: Sandbox, keys: list[str]) -> None:
        self.api, self._keys = sandbox.api, cycle(keys)

    async def native(self, path: str) -> Any:
        reply = await self.api.get(f"/v1{path}", next(self._keys))
        assert reply.status == 200, (path, reply.body)
        return reply.body["data"]

    async def facade(self, path: str) -> Any:
        reply = await self.api.call("GET", ROOT + path, headers={"project_id": next(self._keys)})
        assert reply.status == 200, (path, reply.body)
        route, _ = ROUTER.find("GET", ROOT + path.partition("?")[0])
        blockfrost_schemas.check(route.path.removeprefix(ROOT), reply.body, ["earlier blocks"])
        return reply.body

    async def walk(self, path: str, count: int = 3) -> list[Any]:
        """All entries of a list, page by page."""
        found: list[Any] = []
        for page in range(1, 1_000):
            part = await self.facade(f"{path}{'&' if '?' in path else '?'}count={count}&page={page}")
            found += part
            if len(part) < count:
                return found
        raise AssertionError(path)


@pytest.fixture
async def asked(
    environment: dict[str, str],
    no_aggregator: None,  # noqa: ARG001
    issue_key: IssueKey,
    db: asyncpg.Connection,
) -> AsyncIterator[BothSides]:
    keys = [await issue_key() for _ in range(4)]
    await db.execute("UPDATE partner.credential SET scopes = $1", list(SCOPES))
    async with sandboxes.opened(environment) as sandbox:
        yield BothSides(sandbox, keys)


def amounts(value: Any) -> dict[str, int]:
    """A native value by Blockfrost's units."""
    return {"lovelace": value["lovelace"]} | {
        name.replace(".", ""): quantity for name, quantity in value.get("assets", {}).items()
    }


def told(amount: list[Any]) -> dict[str, int]:
    """The same from the façade; a unit occurs once."""
    assert len({each["unit"] for each in amount}) == len(amount)
    return {each["unit"]: int(each["quantity"]) for each in amount}


async def test_answers_agree_with_the_native_ones(asked: BothSides) -> None:
    blocks = await asked.facade("/blocks/latest/previous")
    blocks.append(await asked.facade("/blocks/latest"))
    hashes = [tx for block in blocks for tx in await asked.walk(f"/blocks/{block['hash']}/txs")]
    assert len(hashes) == len(set(hashes)) == sum(block["tx_count"] for block in blocks)
    await compare_blocks(asked, blocks)
    txs = [await asked.native(f"/tx/hash/{tx}") for tx in hashes]
    for tx in txs:
        await compare_transaction(asked, tx)
    addresses = sorted({output["address"] for tx in txs for output in tx["outputs"]})
    await asyncio.gather(*(compare_address(asked, each) for each in addresses[:MAX_COMPARED]))
    accounts = await accounts_of(asked, addresses, txs)
    await asyncio.gather(*(compare_account(asked, each) for each in accounts[:MAX_COMPARED]))
    assets = sorted({asset for tx in txs for asset in tx["mint"]})
    assert assets
    await asyncio.gather(*(compare_asset(asked, each) for each in assets[:MAX_COMPARED]))
    pools = await asked.walk("/pools")
    assert pools == (await asked.walk("/pools?order=desc"))[::-1]
    assert pools == [each["pool_id"] for each in await asked.walk("/pools/extended")]
    await asyncio.gather(*(compare_pool(asked, each) for each in pools[:MAX_COMPARED]))
    await compare_ledger(asked)


async def accounts_of(asked: BothSides, addresses: list[str], txs: list[Any]) -> list[str]:
    """The accounts of the addresses, and those in the certificates."""
    found = {(await asked.native(f"/addresses/{each}"))["stake_address"] for each in addresses} - {None}
    found |= {each["stake_address"] for tx in txs for each in tx["certificates"] if "stake_address" in each}
    return sorted(found)


async def compare_blocks(asked: BothSides, blocks: list[Any]) -> None:
    pools = await asked.walk("/pools")
    for block in blocks:
        native = await asked.native(f"/blocks/{block['height']}")
        shown = (block["hash"], block["slot"], block["epoch"], block["size"])
        assert shown == tuple(native[name] for name in ("block_hash", "slot_no", "epoch_no", "size"))
        issuer = native["pool_id"]
        delegate = f"ShelleyGenesis-{bech32_payload(issuer).hex()[:16]}"
        assert block["slot_leader"] == (issuer if issuer in pools else delegate)
        sums = (native["fees"], native["output"]) if native["tx_count"] else (None, None)
        assert (block["fees"], block["output"]) == sums
        assert block["confirmations"] == blocks[-1]["height"] - block["height"]
    assert [block["hash"] for block in blocks[1:]] == [block["next_block"] for block in blocks[:-1]]
    first = blocks[0]["height"]
    after = await asked.walk(f"/blocks/{first}/next", 7)
    assert [block["hash"] for block in after] == [block["hash"] for block in blocks[1:]]
    before = [
        block for page in (3, 2, 1) for block in await asked.facade(f"/blocks/latest/previous?count=2&page={page}")
    ]
    assert [block["height"] for block in before] == [block["height"] for block in blocks[-7:-1]]


async def compare_transaction(asked: BothSides, tx: Any) -> None:
    path = f"/txs/{tx['tx_hash']}"
    found, moved = await asked.facade(path), await asked.facade(f"{path}/utxos")
    assert (found["block"], found["fees"], found["valid_contract"]) == (tx["block_hash"], str(tx["fee"]), tx["valid"])
    assert (await asked.walk(f"/blocks/{tx['block_hash']}/txs"))[found["index"]] == tx["tx_hash"]
    for side, kinds in (("inputs", ("collateral", "reference")), ("outputs", ("collateral",))):
        moved[side] = [each for each in moved[side] if not any(each[kind] for kind in kinds)]
    assert [(each["tx_hash"], each["output_index"]) for each in moved["inputs"]] == [
        (each["tx_hash"], each["output_index"]) for each in tx["inputs"]
    ]
    assert [(each["address"], told(each["amount"])) for each in moved["outputs"]] == [
        (each["address"], amounts(each["value"])) for each in tx["outputs"]
    ]
    assert told(found["output_amount"])["lovelace"] == sum(each["value"]["lovelace"] for each in tx["outputs"])
    for side in ("inputs", "outputs"):
        for each in moved[side]:
            if each["address"] is None:  # it precedes the first indexed block
                continue
            reference = f"/utxos/{each.get('tx_hash', tx['tx_hash'])}/{each['output_index']}"
            output = await asked.native(reference)
            for name in ("data_hash", "inline_datum", "reference_script_hash"):
                assert each[name] == output[name], reference
            if side == "outputs":
                spent = output["spent_by"]
                assert each["consumed_by_tx"] == (None if spent is None else spent["tx_hash"])
            await compare_carried(asked, each)
    labels = sorted(tx["metadata"], key=int) if tx["valid"] else []
    assert [each["label"] for each in await asked.facade(f"{path}/metadata")] == labels
    for each in await asked.facade(f"{path}/metadata/cbor"):
        assert each["metadata"].endswith(tx["metadata"][each["label"]]["cbor"])
    assert [(each["address"], int(each["amount"])) for each in await asked.facade(f"{path}/withdrawals")] == [
        (each["stake_address"], each["lovelace"]) for each in tx["withdrawals"]
    ]
    await compare_certificates(asked, path, tx)


async def compare_certificates(asked: BothSides, path: str, tx: Any) -> None:
    places = {
        "stakes": ("stakeCredentialRegistration", "stakeCredentialDeregistration"),
        "delegations": ("stakeDelegation",),
        "pool_updates": ("stakePoolRegistration",),
        "pool_retires": ("stakePoolRetirement",),
    }
    for name, kinds in places.items():
        expected = [
            at
            for at, each in enumerate(tx["certificates"])
            if each["type"] in kinds and (name != "delegations" or "pool_id" in each)
        ]
        assert [each["cert_index"] for each in await asked.facade(f"{path}/{name}")] == expected


async def compare_carried(asked: BothSides, output: Any) -> None:
    if output["inline_datum"] is not None:
        assert (await asked.facade(f"/scripts/datum/{output['data_hash']}/cbor"))["cbor"] == output["inline_datum"]
        native = await asked.native(f"/datums/{output['data_hash']}")
        assert (await asked.facade(f"/scripts/datum/{output['data_hash']}"))["json_value"] == native["json"]
    script = output["reference_script_hash"]
    if script is not None:
        native, found = await asked.native(f"/scripts/{script}"), await asked.facade(f"/scripts/{script}")
        shown = (await asked.facade(f"/scripts/{script}/cbor"))["cbor"]
        as_json = (await asked.facade(f"/scripts/{script}/json"))["json"]
        if found["type"] == "timelock":
            assert (shown, as_json) == (None, native["json"])
        else:
            assert (shown, as_json, found["serialised_size"]) == (native["cbor"], None, native["size"])


async def compare_address(asked: BothSides, address: str) -> None:
    found, native = await asked.facade(f"/addresses/{address}"), await asked.native(f"/addresses/{address}")
    held = await asked.walk(f"/addresses/{address}/utxos")
    assert len({(each["tx_hash"], each["output_index"]) for each in held}) == len(held) == native["utxo_count"]
    summed: dict[str, int] = {"lovelace": 0}
    for output in held:
        for unit, quantity in told(output["amount"]).items():
            summed[unit] = summed.get(unit, 0) + quantity
        assert output["block"] == (await asked.facade(f"/txs/{output['tx_hash']}"))["block"]
    assert told(found["amount"]) == summed
    for unit in [each for each in summed if each != "lovelace"][:2]:
        holding = [each for each in held if unit in told(each["amount"])]
        assert await asked.walk(f"/addresses/{address}/utxos/{unit}") == holding
    history = await asked.walk(f"/addresses/{address}/transactions")
    assert len({each["tx_hash"] for each in history}) == len(history) == native["transaction_count"]
    assert [each["tx_hash"] for each in history] == await asked.walk(f"/addresses/{address}/txs", 4)
    assert history == (await asked.walk(f"/addresses/{address}/transactions?order=desc"))[::-1]
    first, last = history[len(history) // 3], history[len(history) // 2]
    limits = "&".join(
        f"{name}={each['block_height']}:{each['tx_index']}" for name, each in (("from", first), ("to", last))
    )
    part = await asked.walk(f"/addresses/{address}/transactions?{limits}")
    assert part == history[len(history) // 3 : len(history) // 2 + 1]
    height = first["block_height"]
    part = await asked.walk(f"/addresses/{address}/transactions?from={height}&to={height}")
    assert part == [each for each in history if each["block_height"] == height]
    assert await asked.walk(f"/addresses/{address}/transactions?from=999999") == []
    assert await asked.walk(f"/addresses/{address}/transactions?to=999999") == history


async def compare_account(asked: BothSides, account: str) -> None:
    path = f"/accounts/{account}"
    found, native = await asked.facade(path), await asked.native(path)
    assert found["registered"] == native["registered"]
    assert native["pool_id"] in (None, found["pool_id"])  # None if the pool has been retired since
    assert int(found["controlled_amount"]) == native["lovelace"] + native["rewards"]
    representative = native["delegate_representative"]
    assert (found["drep_id"] or "drep").startswith("drep")
    assert (found["drep_id"] is None) == (representative is None)
    listed = {
        "addresses": ("addresses", lambda each: each["address"]),
        "addresses/assets": ("assets", lambda each: each.get("unit") or each["policy_id"] + each["asset_name"]),
        "delegations": (
            "delegations",
            lambda each: (each["pool_id"], each.get("active_epoch", each.get("active_epoch_no"))),
        ),
        "withdrawals": ("withdrawals", lambda each: (each["tx_hash"], int(each.get("amount", each.get("lovelace"))))),
    }
    for ours, (theirs, key) in listed.items():
        walked = [*map(key, await asked.walk(f"{path}/{ours}"))]
        listed_there = [*map(key, await asked.native(f"{path}/{theirs}?order=asc&limit=500"))]
        if theirs == "assets":  # in another order
            walked.sort()
            listed_there.sort()
        assert walked == listed_there, ours
    if native["utxo_count"]:
        held = await asked.walk(f"{path}/utxos")
        assert sum(told(each["amount"])["lovelace"] for each in held) == native["lovelace"]


async def compare_asset(asked: BothSides, asset: str) -> None:
    unit = asset.replace(".", "")
    found, native = await asked.facade(f"/assets/{unit}"), await asked.native(f"/assets/{asset}")
    assert (found["quantity"], found["fingerprint"]) == (native["total_supply"], native["fingerprint"])
    source, shown = native["metadata_source"], found["onchain_metadata"] is not None
    assert shown == (source in ("cip25", "cip68")) or (
        source == "cip68" and not shown
    )  # Blockfrost requires more fields
    mints = await asked.walk(f"/assets/{unit}/history")
    assert sum(int(each["amount"]) for each in mints) == int(found["quantity"])
    holders = await asked.walk(f"/assets/{unit}/addresses")
    assert sum(int(each["quantity"]) for each in holders) == int(found["quantity"])
    listed = [each["tx_hash"] for each in await asked.native(f"/assets/{asset}/transactions?order=asc&limit=500")]
    assert [each["tx_hash"] for each in await asked.walk(f"/assets/{unit}/transactions")] == listed
    of_policy = await asked.walk(f"/assets/policy/{unit[:56]}")
    assert {each["asset"]: each["quantity"] for each in of_policy}[unit] == found["quantity"]


async def compare_pool(asked: BothSides, pool: str) -> None:
    found, native = await asked.facade(f"/pools/{pool}"), await asked.native(f"/pools/{pool}")
    for ours, theirs in (
        ("hex", "pool_id_hex"),
        ("live_stake", "live_stake"),
        ("declared_pledge", "pledge"),
        ("margin_cost", "margin"),
        ("owners", "owners"),
    ):
        assert found[ours] == native[theirs]
    delegators = await asked.walk(f"/pools/{pool}/delegators")
    assert len(delegators) == found["live_delegators"]
    assert sum(int(each["live_stake"]) for each in delegators) == int(found["live_stake"])
    relays = await asked.facade(f"/pools/{pool}/relays")
    # As with Blockfrost, a relay that names no host is there; the native answer leaves it out.
    naming = [each for each in relays if any(each[name] for name in ("ipv4", "ipv6", "dns", "dns_srv"))]
    assert len(naming) == len(native["relays"])
    assert (await asked.facade(f"/pools/{pool}/metadata")).get("url") == native["metadata_url"]
    for tx in found["registration"]:
        updates = await asked.facade(f"/txs/{tx}/pool_updates")
        assert pool in {each["pool_id"] for each in updates}


async def compare_ledger(asked: BothSides) -> None:
    epoch, native = await asked.facade("/epochs/latest"), await asked.native("/epochs/latest")
    assert (epoch["tx_count"], epoch["output"]) == (native["tx_count"], native["output"])
    assert epoch["end_time"] - epoch["start_time"] == 86_400
    parameters = await asked.facade("/epochs/latest/parameters")
    ogmios = protocol_parameters("conway", sandboxes.VERSION)
    assert parameters["cost_models_raw"] == {
        name.replace("plutus:v", "PlutusV"): model for name, model in ogmios["plutusCostModels"].items()
    }
    for language, model in parameters["cost_models"].items():
        assert list(model.values()) == parameters["cost_models_raw"][language]
    assert (parameters["a0"], parameters["price_mem"], parameters["min_utxo"]) == (0.3, 0.0577, "4310")
    assert [name for name, value in parameters.items() if value is None] == ["extra_entropy"]
    assert parameters["nonce"] == sandboxes.NONCE.hex()
    genesis = await asked.facade("/genesis")
    assert (genesis["network_magic"], genesis["system_start"], genesis["slot_length"]) == (2, 1_666_656_000, 1)
    assert json.dumps(genesis["active_slots_coefficient"]) == "0.05"
