"""The ledger removes outputs when an era begins: vouchers that nobody redeemed, and outputs of no lovelace.

What it removes is in cardano-ledger: `translateUTxOByronToShelley` and `stashedAVVMAddresses` in
Shelley/API/ByronTranslation.hs, `returnRedeemAddrsToReserves` in Allegra/Translation.hs.
"""

import hashlib
import json
import lzma
from collections.abc import AsyncIterator
from functools import partial

import asyncpg
import pytest

from devnet import addresses
from devnet.blocks import read_genesis
from indexer.blocks.genesis import Genesis, GenesisOutput
from indexer.store import beginning
from shared import address, database
from shared.network import PREPROD
from tests.chain.dump import differences, dump
from tests.chain.harness import VECTORS
from tests.chain.in_turns import in_turns
from tests.chain.planted import planted, verified, within
from tests.chain.written import Json, Written, person, tx

SHELLEY, ALLEGRA = PREPROD.epoch_start(4), PREPROD.epoch_start(5)


def byron(name: str) -> str:
    return addresses.byron_address(PREPROD.magic, hashlib.blake2b(name.encode(), digest_size=64).digest())


def voucher(name: str) -> str:
    return addresses.byron_address(PREPROD.magic, hashlib.blake2b(name.encode(), digest_size=32).digest())


GENESIS = {voucher("lost"): 7, voucher("redeemed"): 5, voucher("empty"): 0, byron("rich"): 100, byron("nothing"): 0}


def of_genesis(where: str) -> str:
    """The id under which the output of the genesis at an address is spent."""
    return addresses.genesis_output_id(where)


def spends(tx_id: str, index: int = 0) -> Json:
    return {"transaction": {"id": tx_id}, "index": index}


def output(to: str, lovelace: int) -> Json:
    return {"address": to, "value": {"ada": {"lovelace": lovelace}}}


def genesis_outputs() -> list[GenesisOutput]:
    return sorted(
        GenesisOutput(bytes.fromhex(of_genesis(text)), address.of_node(text), lovelace)
        for text, lovelace in GENESIS.items()
    )


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREPROD)
    await beginning.begin(connection, PREPROD, Genesis(genesis_outputs()))
    yield connection
    await connection.close()


async def unspent(db: asyncpg.Connection) -> dict[str, int]:
    """The unspent lovelace of each address that has an unspent output."""
    rows = await db.fetch(
        "SELECT raw, sum(lovelace)::bigint AS lovelace FROM utxo JOIN address USING (address_no) GROUP BY raw"
    )
    return {address.show(row["raw"]): row["lovelace"] for row in rows}


async def in_byron(chain: Written) -> None:
    """One voucher is redeemed; its ada goes to a person and, with change, to the address of a voucher."""
    made = [output(byron("ann"), 2), output(voucher("change"), 3)]
    await chain.append(100, tx("redeems", *made, inputs=[spends(of_genesis(voucher("redeemed")))]), era="byron")


async def in_shelley(chain: Written, slot_no: int = SHELLEY, era: str = "shelley") -> None:
    """Rich ada goes to the address of a voucher after Byron."""
    made = [output(voucher("late"), 40), output(byron("rich"), 60)]
    await chain.append(slot_no, tx("pays late", *made, inputs=[spends(of_genesis(byron("rich")))]), era=era)


BYRON = {
    voucher("lost"): 7, voucher("change"): 3, voucher("empty"): 0, byron("ann"): 2, byron("rich"): 100,
    byron("nothing"): 0,
}  # fmt: skip
AFTER_BYRON = {
    voucher("lost"): 7, voucher("change"): 3, voucher("late"): 40, byron("ann"): 2, byron("rich"): 60
}  # fmt: skip
AFTER_SHELLEY = {voucher("late"): 40, byron("ann"): 2, byron("rich"): 60}


async def test_vouchers_that_nobody_redeemed_end_with_shelley(db: asyncpg.Connection) -> None:
    chain = Written(db, network=PREPROD)
    await in_byron(chain)
    assert await unspent(db) == BYRON
    await in_shelley(chain)
    assert await unspent(db) == AFTER_BYRON
    await chain.append(ALLEGRA, era="allegra")
    assert await unspent(db) == AFTER_SHELLEY
    await chain.append(ALLEGRA + 20, era="allegra")
    await chain.append(PREPROD.epoch_start(6), era="mary")
    assert await unspent(db) == AFTER_SHELLEY


@pytest.mark.parametrize("bulk", [False, True])
async def test_a_rollback_brings_them_back_and_another_fork_may_redeem_them(
    database_url: str, db: asyncpg.Connection, *, bulk: bool
) -> None:
    """To Shelley, then to Byron, and then to a block before an output that was dropped."""
    chain = Written(db, network=PREPROD, bulk=bulk)
    await chain.append(50, era="byron")
    await in_byron(chain)
    await in_shelley(chain)
    await chain.append(ALLEGRA, era="allegra")
    await chain.back_to(SHELLEY)
    if not bulk:
        assert await unspent(db) == AFTER_BYRON
    await chain.append(ALLEGRA + 20, era="allegra")
    await chain.back_to(100)
    if not bulk:
        assert await unspent(db) == BYRON
    await in_shelley(chain, ALLEGRA, era="allegra")
    await chain.back_to(50)
    if not bulk:
        assert await unspent(db) == GENESIS
    again = tx("again", output(byron("ann"), 7), inputs=[spends(of_genesis(voucher("lost")))])
    await chain.append(110, again, era="byron")
    await chain.append(ALLEGRA, era="allegra")
    if bulk:
        await chain.finalize()
    assert await unspent(db) == {byron("ann"): 7, byron("rich"): 100}
    assert await verified(database_url, PREPROD) == {}


async def test_an_era_without_blocks_drops_its_outputs_too(database_url: str, db: asyncpg.Connection) -> None:
    chain = Written(db, network=PREPROD)
    await in_byron(chain)
    await in_shelley(chain, ALLEGRA, era="allegra")
    assert await unspent(db) == AFTER_SHELLEY
    assert await verified(database_url, PREPROD) == {}


async def test_a_chain_that_begins_after_shelley_begins_without_them(database_url: str, db: asyncpg.Connection) -> None:
    await Written(db, network=PREPROD).append(ALLEGRA, era="alonzo")
    assert await unspent(db) == {byron("rich"): 100}
    assert await verified(database_url, PREPROD) == {}


async def test_bulk_and_a_live_index_agree(db: asyncpg.Connection) -> None:
    dumps = []
    for bulk in (False, True):
        await beginning.begin(db, PREPROD, Genesis(genesis_outputs()))
        chain = Written(db, network=PREPROD, bulk=bulk)
        await in_byron(chain)
        await in_shelley(chain)
        await chain.append(ALLEGRA, era="allegra")
        if bulk:
            await chain.finalize()
        dumps.append(await dump(db, PREPROD.schema))
    assert len(dumps[0]["dropped_output"]) == 4
    live, from_bulk = dumps
    assert differences(live, from_bulk) == []


async def test_the_voucher_of_the_genesis_keeps_its_history(db: asyncpg.Connection) -> None:
    """An output that made and spent another one in Byron is part of history, whatever happens later."""
    chain = Written(db, network=PREPROD)
    await in_byron(chain)
    await chain.append(ALLEGRA, era="allegra")
    moved = await db.fetch("SELECT raw FROM address_tx_entry JOIN address USING (address_no)")
    assert sorted(address.show(row["raw"]) for row in moved) == sorted(
        [voucher("redeemed"), voucher("change"), byron("ann")]
    )


PLANTED = {
    "a voucher still unspent": "INSERT INTO utxo (tx_id, lovelace, address_no, output_index)"
    " SELECT tx_id, lovelace, address_no, output_index FROM dropped_output WHERE lovelace = 7",
    "a voucher still unspent, not dropped": "WITH gone AS (DELETE FROM dropped_output WHERE lovelace = 7 RETURNING *)"
    " INSERT INTO utxo (tx_id, lovelace, address_no, output_index)"
    " SELECT tx_id, lovelace, address_no, output_index FROM gone",
    "no lovelace still unspent, not dropped": "WITH gone AS (DELETE FROM dropped_output WHERE lovelace = 0 RETURNING *)"
    " INSERT INTO utxo (tx_id, lovelace, address_no, output_index)"
    " SELECT tx_id, lovelace, address_no, output_index FROM gone",
    "a later output of a voucher dropped": "WITH gone AS (DELETE FROM utxo WHERE lovelace = 40 RETURNING *)"
    " INSERT INTO dropped_output (tx_id, slot_no, lovelace, address_no, output_index)"
    " SELECT tx_id, (SELECT max(slot_no) FROM era_start), lovelace, address_no, output_index FROM gone",
    "an output of a person dropped": "WITH gone AS (DELETE FROM utxo WHERE lovelace = 2 RETURNING *)"
    " INSERT INTO dropped_output (tx_id, slot_no, lovelace, address_no, output_index)"
    " SELECT tx_id, (SELECT max(slot_no) FROM era_start), lovelace, address_no, output_index FROM gone",
    "dropped when Shelley began": "UPDATE dropped_output SET slot_no = (SELECT min(slot_no) FROM era_start)"
    " WHERE lovelace = 7",
    "dropped nowhere": "DELETE FROM dropped_output WHERE lovelace = 3",
    "with other lovelace": "UPDATE dropped_output SET lovelace = 4 WHERE lovelace = 3",
}


async def test_verify_finds_each_error_in_what_was_dropped(database_url: str, db: asyncpg.Connection) -> None:
    chain = Written(db, network=PREPROD)
    await in_byron(chain)
    await in_shelley(chain)
    await chain.append(ALLEGRA, era="allegra")
    alone = await in_turns(database_url, PREPROD)
    unseen = [
        name for name, error in PLANTED.items() if not await planted(alone, error, partial(within, network=PREPROD))
    ]
    await alone.close()
    assert unseen == []


async def test_addresses_of_vouchers_are_told_from_others(db: asyncpg.Connection) -> None:
    """Mainnet's: vouchers of its genesis, and addresses that its first transactions paid to. And longer ones."""
    genesis = read_genesis(VECTORS / "genesis-mainnet-vouchers.json").byron_funds
    with lzma.open(VECTORS / "mainnet-byron-from-genesis.jsonl.xz") as recorded:
        blocks = [json.loads(line) for line in recorded]
    outputs = [each for block in blocks for tx in block.get("transactions", []) for each in tx["outputs"]]
    texts = dict.fromkeys(genesis, True) | {each["address"]: False for each in outputs}
    texts |= {
        addresses.byron_address(PREPROD.magic, b"k" * 64, b"p" * 300): False,
        addresses.byron_address(PREPROD.magic, b"k" * 32, b"p" * 300): True,
        person("ann", staked=True): False,
    }
    raws = [address.of_node(text) for text in texts]
    rows = await db.fetch(
        "SELECT is_redeem_address(raw) AS told FROM unnest($1::bytea[]) WITH ORDINALITY AS a (raw, n) ORDER BY n", raws
    )
    assert dict(zip(texts, (row["told"] for row in rows), strict=True)) == texts
