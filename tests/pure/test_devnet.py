"""The devnet behaves like Ogmios, over real WebSockets, and its answers have the shape of Ogmios', in both versions."""

import asyncio
import lzma
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from devnet import queries
from devnet.blocks import Block, Recorded, read_genesis, write
from devnet.dialect import Dialect
from devnet.generator import Generated, Options, options_of
from devnet.networks import MAINNET, PREVIEW
from devnet.parameters import MAX_SUPPLY
from devnet.server import NodeServer
from tests.chain.harness import ROOT, Json, recorded
from tests.chain.ogmios import VERSIONS, OgmiosClient, client, forward, strange
from tests.patience import PATIENCE_S

NETWORK_QUERIES = ("startTime", "tip", "blockHeight")
LEDGER_QUERIES = (
    "tip", "epoch", "eraStart", "eraSummaries", "protocolParameters", "stakePools", "liveStakeDistribution",
    "governanceProposals", "delegateRepresentatives", "treasuryAndReserves", "utxo", "constitution",
    "constitutionalCommittee", "rewardsProvenance", "stakePoolsPerformances", "nonces",
)  # fmt: skip


@pytest.fixture(scope="module")
def chain() -> Generated:
    return Generated(Options(seed=21, density=4.0, blocks_per_epoch=40), 330)


def test_the_devnet_has_every_query_of_the_indexer_and_all_are_compared_with_ogmios() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "indexer").rglob("*.py"))
    asked = set(re.findall(r'"(query(?:Network|LedgerState)/\w+)"', sources))
    assert len(asked) > 8
    assert asked <= queries.NETWORK.keys() | queries.LEDGER.keys()
    compared = {*NETWORK_QUERIES, *LEDGER_QUERIES, "genesisConfiguration", "rewardAccountSummaries"}
    compared.add("proposedProtocolParameters")  # of versions before 6.14
    assert {name.partition("/")[2] for name in (*queries.NETWORK, *queries.LEDGER)} == compared


def blocks_of_every_era(version: tuple[int, int]) -> Iterator[Json]:
    """The answers to `nextBlock` of generated chains, in each form that the flags of this version give them."""
    eras: tuple[tuple[str, int], ...] = (("shelley", 0), ("mary", 1), ("alonzo", 2), ("babbage", 3), ("conway", 4))
    if version >= (7, 0):
        eras = (*eras, ("dijkstra", 5))
    options = Options(seed=8, density=9, plain=0.1, eras=eras, era_epochs=1, blocks_per_epoch=22)
    blocks = Generated(options, 150).blocks
    transactions = [tx for block in blocks for tx in block.decoded()["transactions"]]
    assert len({certificate["type"] for tx in transactions for certificate in tx.get("certificates", ())}) == 11
    assert {tx["spends"] for tx in transactions} == {"inputs", "collaterals"}
    byron = Generated(options_of("mainnet", seed=8, blocks_per_epoch=8, density=2), 30)
    assert {block.decoded()["type"] for block in byron.blocks} == {"ebb", "bft", "praos"}
    for detailed in (False, True):
        dialect = Dialect(version, detailed=detailed, metadata_cbor=not detailed)
        for block in blocks + byron.blocks:
            tip = {"slot": block.slot, "id": block.id, "height": block.height}
            yield forward(msgspec.json.decode(dialect.block(block.content)), tip)


async def answers_to_queries(chain: Generated, version: tuple[int, int]) -> list[Json]:
    """An answer to each query, and to acquiring and releasing the ledger's state."""
    accounts = chain.ledger.accounts
    credentials = {
        "keys": [who.hash for who in accounts if not who.is_script],
        "scripts": [who.hash for who in accounts if who.is_script],
    }
    async with NodeServer(chain, dialect=Dialect(version)) as node, client(node) as ogmios:
        await ogmios.send("queryNetwork/genesisConfiguration", era="byron")
        await ogmios.send("queryNetwork/genesisConfiguration", era="shelley")
        await ogmios.send("queryNetwork/genesisConfiguration", era="alonzo")
        await ogmios.send("queryNetwork/genesisConfiguration", era="conway")
        for name in NETWORK_QUERIES:
            await ogmios.send(f"queryNetwork/{name}")
        for name in LEDGER_QUERIES:
            await ogmios.send(f"queryLedgerState/{name}")
        await ogmios.send("queryLedgerState/stakePools", includeStake=True)
        await ogmios.send("queryLedgerState/rewardAccountSummaries", **credentials)
        await ogmios.send("acquireLedgerState", point="origin")
        await ogmios.send("acquireLedgerState", point={"slot": 1, "id": "00" * 32})
        await ogmios.send("releaseLedgerState")
        return [await ogmios.receive() for _ in range(ogmios.asked)]


async def intersections_and_rollbacks(chain: Generated, version: tuple[int, int]) -> list[Json]:
    """The answers to searches of points, and the rollbacks that follow."""
    async with NodeServer(chain, dialect=Dialect(version)) as node, client(node) as ogmios:
        for points in (["origin"], [{"slot": 5, "id": "11" * 32}], [{"slot": 0, "id": chain.blocks[0].id}]):
            await ogmios.send("findIntersection", points=points)
            await ogmios.send("nextBlock")
        return [await ogmios.receive() for _ in range(ogmios.asked)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_answers_have_the_shape_of_ogmios(chain: Generated, version: tuple[int, int]) -> None:
    told = [*await answers_to_queries(chain, version), *await intersections_and_rollbacks(chain, version)]
    assert strange(version, (*blocks_of_every_era(version), *told)) == {}


async def test_a_client_can_follow_the_chain_from_its_origin(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        found = await ogmios.ask("findIntersection", points=["origin"])
        assert found == {"intersection": "origin", "tip": point_of(chain.blocks[-1]) | {"height": 329}}
        assert (await ogmios.ask("nextBlock"))["point"] == "origin"
        for block in chain.blocks:
            answer = await ogmios.ask("nextBlock")
            assert answer["direction"] == "forward"
            assert answer["block"]["id"] == block.id


async def test_an_intersection_is_the_first_known_point(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        unknown = {"slot": chain.blocks[50].slot, "id": "22" * 32}
        displaced = point_of(chain.blocks[60]) | {"slot": chain.blocks[60].slot + 1}
        points = [unknown, displaced, point_of(chain.blocks[40]), point_of(chain.blocks[45])]
        assert (await ogmios.ask("findIntersection", points=points))["intersection"] == point_of(chain.blocks[40])
        assert (await ogmios.ask("nextBlock"))["point"] == point_of(chain.blocks[40])
        assert (await ogmios.ask("nextBlock"))["block"]["id"] == chain.blocks[41].id
        refusal = await ogmios.ask("findIntersection", points=[unknown])
        assert (refusal["code"], refusal["data"]["tip"]["height"]) == (1000, 329)
        # A failed search leaves the client at its position.
        assert (await ogmios.ask("nextBlock"))["block"]["id"] == chain.blocks[42].id


async def test_answers_come_in_the_order_of_requests(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        for _ in range(101):
            await ogmios.send("nextBlock")
        answers = [await ogmios.receive() for _ in range(101)]
        assert [answer["id"] for answer in answers] == list(range(1, 102))
        assert [answer["result"]["block"]["height"] for answer in answers[1:]] == list(range(100))


async def test_at_the_tip_next_block_waits_and_queries_do_not() -> None:
    growing = Generated(Options(seed=3), 5)
    async with NodeServer(growing) as node, client(node) as ogmios:
        await ogmios.ask("findIntersection", points=[point_of(growing.blocks[-1])])
        await ogmios.ask("nextBlock")
        waiting = await ogmios.send("nextBlock")
        assert await query(ogmios, "queryNetwork/blockHeight") == 4
        node.grow()
        answer = await ogmios.receive()
        assert (answer["id"], answer["result"]["block"]["height"]) == (waiting, 5)
        assert answer["result"]["tip"]["height"] == 5


async def query(ogmios: OgmiosClient, method: str) -> Any:
    """The answer to a query, while an earlier `nextBlock` is still waiting."""
    id_ = await ogmios.send(method)
    answer = await ogmios.receive()
    assert answer["id"] == id_
    return answer["result"]


async def test_a_fork_rolls_each_client_back_to_its_last_common_block() -> None:
    growing = Generated(Options(seed=3), 40)
    fork = growing.fork(29, seed=4, blocks=12)
    async with NodeServer(growing) as node, client(node) as ahead, client(node) as behind:
        for follower, index in ((ahead, 39), (behind, 9)):
            await follower.ask("findIntersection", points=[point_of(growing.blocks[index])])
            await follower.ask("nextBlock")
        waiting = await ahead.send("nextBlock")
        assert node.switch(fork) == 29
        answer = await ahead.receive()
        assert answer["id"] == waiting
        assert answer["result"]["direction"] == "backward"
        assert answer["result"]["point"] == point_of(growing.blocks[29])
        assert answer["result"]["tip"]["id"] == fork.blocks[-1].id
        assert (await ahead.ask("nextBlock"))["block"]["id"] == fork.blocks[30].id
        # A client below the fork gets no rollback.
        for block in fork.blocks[10:]:
            assert (await behind.ask("nextBlock"))["block"]["id"] == block.id
        refusal = await ahead.ask("findIntersection", points=[point_of(growing.blocks[35])])
        assert refusal["code"] == 1000


async def test_a_fork_may_remove_every_block() -> None:
    growing = Generated(Options(seed=3), 3)
    async with NodeServer(growing) as node, client(node) as ogmios:
        for _ in range(4):
            await ogmios.ask("nextBlock")
        node.fork(-1, [])
        assert await ogmios.ask("nextBlock") == {"direction": "backward", "point": "origin", "tip": "origin"}
        assert await ogmios.ask("queryNetwork/tip") == "origin"
        node.extend(growing.blocks)
        assert (await ogmios.ask("nextBlock"))["block"]["height"] == 0


async def test_ledger_queries_answer_for_the_acquired_point(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        at = chain.blocks[120]
        await ogmios.ask("acquireLedgerState", point=point_of(at))
        assert await ogmios.ask("queryLedgerState/tip") == point_of(at)
        assert await ogmios.ask("queryLedgerState/epoch") == chain.network.epoch_of(at.slot)
        then = chain.fork(120, seed=0).ledger
        assert await live_stakes(ogmios) == {pool: stake for pool, stake in then.live_stakes().items() if stake}
        await ogmios.ask("releaseLedgerState")
        reserves = await ogmios.ask("queryLedgerState/treasuryAndReserves")
        assert reserves["reserves"]["ada"]["lovelace"] == chain.ledger.reserves
        await ogmios.ask("acquireLedgerState", point=point_of(at))
        node.fork(100, [])
        assert (await ogmios.ask("queryLedgerState/epoch"))["code"] == 2003


async def test_ledger_queries_answer_for_the_new_chain_after_a_fork() -> None:
    growing = Generated(Options(seed=3, blocks_per_epoch=20), 300)
    fork = growing.fork(251, seed=4, blocks=60)
    async with NodeServer(growing) as node, client(node) as ogmios:
        for played in (growing, fork):
            node.switch(played)
            held = await ogmios.ask("queryLedgerState/treasuryAndReserves")
            assert held["treasury"]["ada"]["lovelace"] == played.ledger.treasury
            shown = await live_stakes(ogmios)
            assert shown == {pool: stake for pool, stake in played.ledger.live_stakes().items() if stake}


async def live_stakes(ogmios: OgmiosClient) -> dict[str, int]:
    """Live stake by pool in lovelace, computed from the fractions of the circulating supply."""
    shares = await ogmios.ask("queryLedgerState/liveStakeDistribution")
    pots = await ogmios.ask("queryLedgerState/treasuryAndReserves")
    circulating = MAX_SUPPLY - pots["reserves"]["ada"]["lovelace"]
    stakes = {pool: Fraction(share["stake"]) * circulating for pool, share in shares.items()}
    assert all(stake.denominator == 1 for stake in stakes.values())
    return {pool: int(stake) for pool, stake in stakes.items()}


async def test_voting_stakes_are_the_last_snapshot_plus_proposal_deposits() -> None:
    chain = Generated(Options(seed=11, blocks_per_epoch=30, density=8, plain=0.1, eras=(("babbage", 0), ("conway", 1))))
    retired = deposited = 0
    async with NodeServer(chain) as node, client(node) as ogmios:
        for _ in range(300):
            before = chain.ledger.epoch
            node.grow()
            if chain.ledger.epoch == before:
                continue
            pools = await ogmios.ask("queryLedgerState/stakePools", includeStake=True)
            if chain.ledger.epoch < 1:
                assert pools["code"] == 2002
                continue
            proposals = await ogmios.ask("queryLedgerState/governanceProposals")
            said = {id_: pool["stake"]["ada"]["lovelace"] for id_, pool in pools.items()}
            snapshot = {pool: sum(members.values()) for pool, members in chain.ledger.stake_snapshots[0].items()}
            assert {pool for pool, stake in snapshot.items() if stake} <= said.keys()
            more = sum(said.values()) - sum(snapshot.values())
            assert 0 <= more <= sum(proposal["deposit"]["ada"]["lovelace"] for proposal in proposals)
            retired += len([pool for pool in pools.values() if pool.keys() == {"id", "stake"}])
            deposited += more > 0
    assert retired and deposited


async def test_reward_accounts_have_the_form_of_each_version(chain: Generated) -> None:
    who, account = next((who, account) for who, account in chain.ledger.accounts.items() if account.pool)
    params = {"scripts" if who.is_script else "keys": [who.hash, "00" * 28]}
    pool, rewards = {"id": account.pool}, {"ada": {"lovelace": account.rewards}}
    shown = {}
    for version in ((6, 11), (6, 12), (6, 13), (6, 14), (7, 0)):
        async with NodeServer(chain, dialect=Dialect(version)) as node, client(node) as ogmios:
            shown[version] = await ogmios.ask("queryLedgerState/rewardAccountSummaries", **params)
            named = chain.cast.reward_address(who)
            assert await ogmios.ask("queryLedgerState/rewardAccountSummaries", keys=[named]) == shown[version]
    assert shown[6, 11].keys() == shown[6, 12].keys() == {who.hash}
    assert (shown[6, 11][who.hash]["delegate"], shown[6, 12][who.hash]["stakePool"]) == (pool, pool)
    assert shown[6, 13] == shown[6, 14] == shown[7, 0]
    assert [(entry["credential"], entry["rewards"], entry["stakePool"]) for entry in shown[7, 0]] == [
        (who.hash, rewards, pool)
    ]


async def test_an_invalid_request_is_refused_and_the_connection_stays_open(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        await ogmios.socket.send_str("{not json")
        assert (await ogmios.receive())["error"]["code"] == -32700
        await ogmios.socket.send_str('{"jsonrpc":"2.0"}')
        assert (await ogmios.receive())["error"]["code"] == -32600
        assert (await ogmios.ask("queryLedgerState/everything"))["code"] == -32601
        await ogmios.socket.send_str('{"jsonrpc":"2.0","method":"queryNetwork/blockHeight","id":{"any":["thing"]}}')
        assert (await ogmios.receive())["id"] == {"any": ["thing"]}
        await ogmios.socket.send_str('{"jsonrpc":"2.0","method":"queryNetwork/blockHeight"}')
        assert (await ogmios.receive())["id"] is None
        assert (await ogmios.ask("findIntersection", points="origin"))["code"] == -32602


async def test_malformed_parameters_are_refused_and_the_connection_stays_open(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        await ogmios.ask("acquireMempool")
        for method, params in (
            ("queryLedgerState/utxo", {"outputReferences": [{"index": 0}]}),
            ("queryLedgerState/utxo", {"outputReferences": [{"transaction": "aa", "index": 0}]}),
            ("queryLedgerState/utxo", {"addresses": [["addr"]]}),
            ("queryLedgerState/rewardAccountSummaries", {"keys": [1]}),
            ("queryLedgerState/rewardAccountSummaries", {"keys": ["stake1"]}),
            ("queryLedgerState/stakePools", {"stakePools": ["pool1"]}),
            ("queryLedgerState/governanceProposals", {"proposals": 5}),
            ("queryNetwork/genesisConfiguration", {"era": 5}),
            ("acquireLedgerState", {"point": 5}),
            ("nextTransaction", {"fields": 5}),
            ("hasTransaction", {"id": []}),
            ("submitTransaction", {"transaction": {}}),
        ):
            assert (await ogmios.ask(method, **params))["code"] == -32602, (method, params)
        await ogmios.socket.send_str('{"jsonrpc":"2.0","method":"queryLedgerState/utxo","params":[]}')
        assert (await ogmios.receive())["error"]["code"] == -32602
        odd = {"slot": 5, "id": []}
        assert (await ogmios.ask("findIntersection", points=[odd]))["code"] == 1000
        assert (await ogmios.ask("acquireLedgerState", point=odd))["code"] == 2000
        assert (await ogmios.ask("queryNetwork/blockHeight")) == len(chain.blocks) - 1


async def test_tests_can_drop_connections_and_delay_or_replace_answers(chain: Generated) -> None:
    async with NodeServer(chain) as node, client(node) as ogmios:
        node.inject(b"[1, 2")
        await ogmios.send("nextBlock")
        assert (await ogmios.socket.receive()).data == "[1, 2"
        assert (await ogmios.ask("nextBlock"))["direction"] == "backward"
        assert node.requests == {"nextBlock": 2}
        node.delay_s = 0.2
        began = asyncio.get_running_loop().time()
        await ogmios.ask("nextBlock")
        assert asyncio.get_running_loop().time() - began >= 0.2
        assert node.connections == 1
        node.drop_connections()
        assert (await ogmios.socket.receive(timeout=PATIENCE_S)).type is aiohttp.WSMsgType.CLOSED
        assert ogmios.socket.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE


@pytest.mark.parametrize("version", [(6, 13), (6, 14), (7, 0)])
async def test_versions_differ_in_empty_fields(chain: Generated, version: tuple[int, int]) -> None:
    block = next(block for block in reversed(chain.blocks) if block.decoded()["transactions"])
    shown = msgspec.json.decode(Dialect(version).block(block.content))["transactions"]
    plain = [tx for tx in shown if not tx.get("treasury", {}) and not tx.get("validityInterval", {})]
    assert plain
    for tx in plain:
        assert ("validityInterval" in tx) is (version < (7, 0))
        assert ("treasury" in tx) is (version == (6, 14))


async def test_flags_select_the_forms_of_metadata_and_cbor(chain: Generated) -> None:
    def labels_of(tx: Json) -> Json:
        return dict(tx.get("metadata", {"labels": {}})["labels"])

    content = next(b.content for b in chain.blocks if any("8" in labels_of(tx) for tx in b.decoded()["transactions"]))
    bare = msgspec.json.decode(Dialect(transaction_cbor=False, metadata_cbor=False).block(content))["transactions"]
    assert not any("cbor" in tx for tx in bare)
    said = next(labels_of(tx) for tx in bare if "8" in labels_of(tx))
    assert said["7"]["json"].keys() == {"kept", "14"}, "an entry whose key is bytes has no plain JSON"
    assert said["7"].keys() == {"json"}
    assert said["8"].keys() == {"cbor"}, "a list with bytes has no plain JSON, so it has its CBOR"
    detailed = msgspec.json.decode(Dialect(metadata_cbor=False, detailed=True).block(content))["transactions"]
    labels = next(labels_of(tx) for tx in detailed if "8" in labels_of(tx))
    assert labels["7"]["json"]["map"][0]["k"].keys() == {"bytes"}
    assert labels["7"].keys() == labels["8"].keys() == {"json"}


@pytest.mark.parametrize("name", ["mainnet-byron-from-genesis", "mainnet-conway", "mainnet-conway-defaults"])
async def test_recorded_blocks_are_served_unchanged(name: str) -> None:
    path = recorded(f"{name}.jsonl.xz")
    with lzma.open(path) as file:
        lines = [file.readline().strip() for _ in range(20)]
    async with NodeServer(Recorded(path, MAINNET, visible=10)) as node, client(node) as ogmios:
        assert node.grow(10) == 10
        await ogmios.ask("findIntersection", points=["origin"])
        await ogmios.ask("nextBlock")
        for line in lines:
            await ogmios.send("nextBlock")
            assert line in (await ogmios.socket.receive()).data.encode()


def test_a_recorded_chain_neither_creates_nor_loses_lovelace() -> None:
    genesis = read_genesis(recorded("genesis-preview-outputs.json"))
    path = recorded("preview-from-genesis.jsonl.xz")
    ledger = NodeServer(Recorded(path, PREVIEW, genesis, visible=20_000)).ledger_after(19_999)
    assert ledger.unknown_inputs == 0
    assert ledger.total() == 45_000_000_000_000_000


async def test_a_chain_read_from_a_file_equals_the_chain_written_to_it(chain: Generated, tmp_path: Path) -> None:
    write(tmp_path / "chain.jsonl.xz", [Dialect().block(block.content) for block in chain.blocks])
    played = Recorded(tmp_path / "chain.jsonl.xz", PREVIEW)
    assert [block.point for block in played.blocks] == [block.point for block in chain.blocks]
    assert played.blocks[7].decoded() == msgspec.json.decode(Dialect().block(chain.blocks[7].content))


def point_of(block: Block) -> Json:
    return {"slot": block.slot, "id": block.id}
