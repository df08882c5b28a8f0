"""`verify` finds errors in each derived table, and none in a correct index."""

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from itertools import count, islice
from typing import Any

import asyncpg
import cbor2
import pytest

from indexer.store.outputs import opens
from indexer.verify import readers
from indexer.verify import run as verify
from indexer.verify.results import NotComplete
from indexer.verify.tables import catalog, digests, histories
from indexer.verify.tables.checks import CHECKS
from shared import database
from shared.ledger import tx_id_of
from shared.network import PREVIEW
from tests.chain.harness import ROOT, Ledgerline
from tests.chain.in_turns import InTurns, in_turns
from tests.chain.planted import expected_once, planted, told, verified, within
from tests.chain.written import POLICY, Json, Written, hash_of, mints, pays, person, reward_account, tx
from tests.patience import PATIENCE_S

Verified = Callable[[], Awaitable[dict[str, list[str]]]]

COIN, PIECE = b"Coin".hex(), b"Piece".hex()
REFERENCE, NFT = "000643b0" + PIECE, "000de140" + PIECE
REDEEMERS = [{"validator": {"purpose": "mint", "index": 0}}]
MANY = 6_000  # holders: enough for buckets
MAX_QUANTITY = 2**63 - 1


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    yield connection
    await connection.close()


@pytest.fixture
async def verified_beside(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Verified]:
    """What verify finds in snapshots of its own, with a process that reads history."""
    monkeypatch.setattr(catalog, "expected", expected_once)
    connection = await database.connect(database_url, PREVIEW)
    async with readers.in_processes(database_url, PREVIEW, 1) as reading:
        monkeypatch.setattr(verify, "in_processes", lambda *_: nullcontext(reading))

        async def found() -> dict[str, list[str]]:
            return told((await verify.verify(connection, database_url, PREVIEW, lambda *_: None))[1])

        yield found
    await connection.close()


def label_721() -> Json:
    label = {POLICY: {"Coin": {"name": "Coin"}}}
    return {"metadata": {"hash": "00" * 32, "labels": {"721": {"cbor": cbor2.dumps(label).hex()}}}}


async def write(chain: Written) -> None:
    """A chain with something in every derived table: large sums, burns, buckets, reference tokens, stake."""
    everybody = [pays(person(f"p{number}"), (COIN, number % 7 + 1)) for number in range(MANY)]
    total = sum(number % 7 + 1 for number in range(MANY))
    await chain.append(10, tx("many", *everybody, mint=mints((COIN, total)), **label_721()))
    rich = pays(person("rich", staked=True), (COIN, MAX_QUANTITY))
    await chain.append(20, *(tx(f"rich{number}", rich, mint=mints((COIN, MAX_QUANTITY))) for number in range(3)))
    pair = pays(person("pair"), (REFERENCE, 1), (NFT, 1), datumHash="11" * 32)
    body = cbor2.dumps(cbor2.CBORTag(121, [{b"name": b"x"}, 1]))
    poor = pays(person("rich"), (NFT, 2))  # another address with the same payment credential
    await chain.append(30, tx("pair", pair, poor, mint=mints((REFERENCE, 1), (NFT, 3))))
    again = pays(person("pair"), (REFERENCE, 1), datum=body.hex())
    burned = tx("again", again, spends=(("pair", 0),), mint=mints((NFT, -1)), redeemers=REDEEMERS)
    await chain.append(40, burned)
    merged = tx(
        "merged",
        pays(person("rich", staked=True), (COIN, 2 * MAX_QUANTITY)),
        spends=(("rich0", 0), ("rich1", 0)),
        withdrawals={reward_account("rich"): {"ada": {"lovelace": 7}}},
    )
    plain = pays(person("plain"))
    await chain.append(50, merged, tx("later", plain, spends=(("rich2", 0), ("many", 3)), mint=mints((COIN, -5))))


@pytest.mark.parametrize("bulk", [False, True])
async def test_a_correct_index_has_no_differences(database_url: str, db: asyncpg.Connection, bulk: bool) -> None:
    chain = Written(db, bulk=bulk)
    await write(chain)
    if bulk:
        await chain.back_to(20)
        await chain.append(60, tx("other", pays(person("x"), (NFT, 1)), mint=mints((NFT, 1))))
        await chain.finalize()
    assert await db.fetchval("SELECT count(*) FROM holder_bucket") >= 5
    assert await verified(database_url, PREVIEW) == {}
    await chain.back_to(20)
    assert await verified(database_url, PREVIEW) == {}


async def test_an_asset_may_be_paid_before_its_first_indexed_mint(database_url: str, db: asyncpg.Connection) -> None:
    chain = Written(db)
    await chain.append(10, tx("paid", pays(person("x"), (COIN, 5)), pays(person("x"), (PIECE, 5))))
    await chain.append(20, tx("minted", pays(person("x"), (COIN, 1)), mint=mints((COIN, 1))))
    assert await verified(database_url, PREVIEW) == {}
    await db.execute("UPDATE asset SET first_tx_id = first_tx_id + 1 WHERE mint_count = 0")
    assert (await verified(database_url, PREVIEW)).keys() == {"asset"}


async def test_processes_without_remaining_work_end_silently(
    database_url: str, db: asyncpg.Connection, capfd: pytest.CaptureFixture[str]
) -> None:
    await write(Written(db))
    _, found = await verify.verify(db, database_url, PREVIEW, lambda *_: None, processes=4)
    assert found == []
    await asyncio.sleep(2)  # for any output of a process that starts too late
    assert capfd.readouterr().err == ""


async def test_bulk_sums_of_an_older_program_are_replaced(database_url: str, db: asyncpg.Connection) -> None:
    """Before schema version 2 bulk updated supplies with each batch; rollbacks in bulk no longer do so."""
    chain = Written(db, bulk=True)
    await chain.append(10, tx("stays", pays(person("x"), (COIN, 3)), mint=mints((COIN, 3))))
    await chain.append(20, tx("goes", pays(person("x"), (PIECE, 5)), mint=mints((PIECE, 5))))
    moved = "UPDATE asset SET supply = $2, mint_count = 1, first_tx_id = $3, first_mint_tx_id = $3 WHERE name = $1"
    await db.execute(moved, bytes.fromhex(COIN), 3, 10 << 16)
    await db.execute(moved, bytes.fromhex(PIECE), 5, 20 << 16)
    await db.execute("UPDATE policy SET asset_count = 2")
    await chain.back_to(10)
    await chain.finalize()
    assert await verified(database_url, PREVIEW) == {}


async def test_a_reference_token_that_is_burned_is_spent(database_url: str, db: asyncpg.Connection) -> None:
    chain = Written(db)
    await chain.append(10, tx("made", pays(person("p"), (REFERENCE, 1)), mint=mints((REFERENCE, 1))))
    await chain.append(20, tx("burned", pays(person("p")), spends=(("made", 0),), mint=mints((REFERENCE, -1))))
    assert await db.fetchval("SELECT spent_tx_id FROM reference_output") == 20 << 16
    assert await verified(database_url, PREVIEW) == {}


async def test_the_spending_of_a_reference_token_is_never_lost(db: asyncpg.Connection) -> None:
    chain = Written(db)
    await chain.append(10, tx("made", pays(person("p"), (REFERENCE, 1)), mint=mints((REFERENCE, 1))))
    await db.execute("DELETE FROM reference_output")
    with pytest.raises(AssertionError, match="0 rows of"):
        await chain.append(20, tx("burned", pays(person("p")), spends=(("made", 0),), mint=mints((REFERENCE, -1))))
    assert await db.fetchval("SELECT slot_no FROM tip") == 10


async def test_a_wrong_schema_is_named_and_nothing_else_is_compared(
    db: asyncpg.Connection, verified_beside: Verified
) -> None:
    await Written(db).append(10, tx("a", pays(person("x"))))
    await db.execute("UPDATE tip SET tx_count = 7; DROP INDEX tx_hash")
    assert list(await verified_beside()) == ["schema"]
    await db.execute("DROP TABLE tip")
    with pytest.raises(NotComplete, match=r"table chain_preview\.tip: indexed None"):
        await verified_beside()


async def test_verify_beside_a_writing_indexer_finds_no_difference(
    db: asyncpg.Connection, verified_beside: Verified
) -> None:
    chain = Written(db)
    await write(chain)
    written, enough = 0, asyncio.Event()

    async def write_on() -> None:
        nonlocal written
        while not enough.is_set():
            moved = pays(person(f"p{written}"), (COIN, 100))
            spends = (("many", 10 + written),)
            await chain.append(100 + written, tx(f"beside{written}", moved, spends=spends, mint=mints((COIN, 99))))
            written += 1
            if written % 5 == 0:
                await chain.back_to(98 + written)

    writing = asyncio.create_task(write_on())
    while written < 20 and not writing.done():
        assert await verified_beside() == {}
    enough.set()
    await writing
    assert await verified_beside() == {}


# Table -> an error in it, and the least that verify must report. Spent reference tokens are compared with `spender`, in
# which there is an error, too.
PLANTED: dict[str, tuple[str, str]] = {
    "tip": ("UPDATE tip SET tx_count = tx_count + 1", "tx_count of tip: indexed 9, recomputed 8"),
    "block": ("UPDATE block SET tx_count = 2 WHERE slot_no = 10", "tx_count of block 10: indexed 2, recomputed 1"),
    "address": (
        "INSERT INTO address (address_no, stake_no, raw) SELECT 1000000, stake_no, raw FROM address"
        " WHERE address_no = 17",
        "recomputed one number",
    ),
    "policy": ("UPDATE policy SET asset_count = 2", f"asset_count of policy {POLICY}: indexed 2, recomputed 3"),
    "asset": (
        "UPDATE asset SET supply = supply + 1 WHERE mint_count = 4",
        f"supply of asset {POLICY}.{COIN}: indexed 27670116110564351414, recomputed 27670116110564351413",
    ),
    "fingerprint": ("UPDATE asset SET fingerprint = fingerprint # 1 WHERE mint_count = 4", "fingerprint of asset_no "),
    "minted_asset": (
        "UPDATE minted_asset SET asset_nos = asset_nos[2:]",
        "asset_no at place 2 of minted_asset: indexed None, recomputed ",
    ),
    "asset_bucket": (
        "INSERT INTO asset_bucket VALUES (1, 0, '', 5)",
        "asset_bucket of policy_no 1 from supply 0, name : indexed 5, recomputed None",
    ),
    "address_tx": ("DELETE FROM address_tx WHERE address_no = 21", "address_tx of addr_test1"),
    "asset_tx": (
        "UPDATE asset_tx SET entries = set_byte(entries, 35, get_byte(entries, 35) - 1)"
        " WHERE length(entries) > 18 AND quantity_at(entries, 26) > 5",
        f"asset_tx of asset {POLICY}.{COIN}: ",
    ),
    "mint": ("UPDATE mint SET named = true WHERE quantity < 0", f"mint of asset {POLICY}."),
    "holder": (
        "UPDATE holder SET quantity = quantity + 1 WHERE quantity > 9223372036854775807",
        "indexed 18446744073709551615, recomputed 18446744073709551614",
    ),
    "policy_holder": (
        "DELETE FROM policy_holder WHERE quantity > 9223372036854775807",
        "indexed None, recomputed 18446744073709551614",
    ),
    "holder_bucket": (
        "UPDATE holder_bucket SET holders = holders - 1 WHERE lowest_quantity = 0",
        "from quantity 0, address_no 0",
    ),
    "policy_holder_bucket": (
        "DELETE FROM policy_holder_bucket WHERE lowest_address_no > 0",
        "policy_holder_bucket of policy_no 1 from quantity",
    ),
    "account_tx": (
        "UPDATE account_tx SET tx_ids = set_byte(tx_ids, 7, 1)",
        f"account_tx of {reward_account('rich')}: indexed tx_id 1310721, 2 times, recomputed tx_id 1310721",
    ),
    "account_withdrawal": (
        "UPDATE account_withdrawal SET entries = set_byte(entries, 17, 8)",
        f"account_withdrawal of {reward_account('rich')}: indexed tx_id 3276800 with 8 lovelace, "
        "recomputed tx_id 3276800 with 7 lovelace",
    ),
    "label_tx": (
        "UPDATE label_tx SET tx_ids = set_byte(tx_ids, 7, 1)",
        "label_tx of label 721: indexed tx_id 655361, recomputed None",
    ),
    "redeemer_tx": (
        "UPDATE redeemer_tx SET tx_ids = set_byte(tx_ids, 7, 1)",
        f"redeemer_tx of script {POLICY[:16]}…: indexed tx_id 2621441, 1 times, second half 412548427, recomputed None",
    ),
    "spender": (
        "UPDATE spender SET entries = set_byte(entries, 7, 1) WHERE slot_no = 30",
        f"spender of output {hash_of('pair')}#0: indexed tx_id 2621441, recomputed tx_id 2621440",
    ),
    "dropped_output": (
        "INSERT INTO dropped_output SELECT tx_id, 10, lovelace, address_no, output_index FROM utxo"
        " WHERE tx_id = 40 << 16",
        f"slot that dropped output 0 of tx_id 2621440, of {person('pair')}: indexed 10, recomputed None",
    ),
    "utxo": (
        "UPDATE utxo SET lovelace = lovelace + 1 WHERE tx_id = 40 << 16",
        f"utxo {hash_of('again')}#0 of {person('pair')}: indexed 2000001 lovelace, ",
    ),
    "utxo_bucket": (
        "INSERT INTO utxo_bucket VALUES (1, -9223372036854775808, 0, 3, 4)",
        "utxo_bucket of address_no 1 from tx_id -9223372036854775808, output_index 0: "
        "indexed 3 outputs with 4, recomputed None",
    ),
    "credential_utxo_bucket": (
        "INSERT INTO credential_utxo_bucket VALUES (1, 5, 1, 0, 0)",
        "credential_utxo_bucket of credential_no 1 from tx_id 5, output_index 1: "
        "indexed 0 outputs with 0, recomputed None",
    ),
    "account_utxo_bucket": (
        "INSERT INTO account_utxo_bucket VALUES (1, 5, 1, 0, 0)",
        "account_utxo_bucket of stake_no 1 from tx_id 5, output_index 1: indexed 0 outputs with 0, recomputed None",
    ),
    "utxo_asset": (
        "INSERT INTO utxo_asset VALUES (1, 2, 3, 4)",
        "utxo_asset of address_no 1, asset_no 2, output 4 of tx_id 3: indexed a row, recomputed None",
    ),
    "credential_utxo_asset": (
        "INSERT INTO credential_utxo_asset VALUES (1, 2, 3, 4)",
        "credential_utxo_asset of credential_no 1, asset_no 2, output 4 of tx_id 3: indexed a row, recomputed None",
    ),
    "account_utxo_asset": (
        "INSERT INTO account_utxo_asset VALUES (1, 2, 3, 4)",
        "account_utxo_asset of stake_no 1, asset_no 2, output 4 of tx_id 3: indexed a row, recomputed None",
    ),
    "credential_tx": (
        "UPDATE credential_tx SET tx_ids = set_byte(tx_ids, 7, 1)",
        f"credential_tx of {person('rich', staked=True)}: indexed tx_id 1966081, recomputed None",
    ),
    "credential_holder": (
        "UPDATE credential_holder SET quantity = quantity + 1",
        f"held by the payment credential of {person('rich', staked=True)}: indexed 3, recomputed 2",
    ),
    "account_holder": (
        "UPDATE account_holder SET quantity = quantity + 1 WHERE account_no > 0",
        f"{reward_account('rich')}: indexed 18446744073709551615, recomputed 18446744073709551614",
    ),
    "policy_account_holder": (
        "DELETE FROM policy_account_holder WHERE account_no > 0",
        f"{reward_account('rich')}: indexed None, recomputed 18446744073709551614",
    ),
    "account_holder_bucket": (
        "UPDATE account_holder_bucket SET holders = holders - 1 WHERE lowest_quantity = 0",
        "from quantity 0, account_no 0",
    ),
    "policy_account_holder_bucket": (
        "DELETE FROM policy_account_holder_bucket WHERE lowest_account_no <> 0",
        "policy_account_holder_bucket of policy_no 1 from quantity",
    ),
    "address_sent": (
        "INSERT INTO address_sent SELECT address_no, 0, 5 FROM utxo WHERE tx_id = 40 << 16",
        f"lovelace spent by {person('pair')}: indexed 5, recomputed None",
    ),
    "credential_sent": (
        "INSERT INTO credential_sent SELECT address_no, 0, 5 FROM utxo WHERE tx_id = 40 << 16",
        f"lovelace spent by the payment credential of {person('pair')}: indexed 5, recomputed None",
    ),
    "account_sent": (
        "INSERT INTO account_sent SELECT stake_no, 0, 5 FROM stake",
        f"lovelace spent by {reward_account('rich')}: indexed 5, recomputed None",
    ),
    "stake": ("UPDATE stake SET balance = balance - 1", "balance of stake credential e0"),
    "address_count": (
        "UPDATE stake SET address_count = address_count + 1",
        "address_count of stake credential e0",
    ),
    "reference_output": (
        "UPDATE reference_output SET spent_tx_id = NULL",
        "in output 0 of tx_id 1966080: indexed 0, recomputed 2621441",
    ),
    "script_output": (
        "INSERT INTO script_output SELECT tx_id, 0, NULL, sha224('') FROM tx WHERE tx_id = 40 << 16",
        "spending of the reference script in output 0 of tx_id 2621440: indexed 0, recomputed None",
    ),
    "datum": (
        "INSERT INTO datum (hash, tx_id, body) VALUES ('\\x00', 1966080, '\\x01')",
        "hash of datum: indexed 00, recomputed ",
    ),
    "script": (
        "INSERT INTO script (hash, tx_id, seq, language, body) VALUES ('\\x00', 1966080, 0, 2, '\\x01')",
        "hash of script: indexed 00, recomputed ",
    ),
}


async def test_an_error_in_each_derived_table_is_found_and_named(database_url: str, db: asyncpg.Connection) -> None:
    await write(Written(db))
    of_entries = {*histories.HISTORIES, *digests.CHANGING, *digests.GROWING}
    assert of_entries | {name for name, _ in CHECKS} <= PLANTED.keys(), "each check has an error planted for it"
    for statement, _ in PLANTED.values():
        assert int((await db.execute(statement)).split()[-1]) >= 1, statement
    found = await verified(database_url, PREVIEW)
    for check, (_, said) in PLANTED.items():
        assert any(said in difference for difference in found[check]), (check, found[check])


LONG_LISTS = {
    *("utxo_bucket", "account_utxo_bucket", "utxo_asset", "account_utxo_asset"),
    *("credential_utxo_bucket", "credential_utxo_asset"),
    *("holder_bucket", "policy_holder_bucket", "account_holder_bucket", "policy_account_holder_bucket"),
}

# Single errors: a moved row, a row with a wrong owner, a figure off by the size of a machine word.
SUBTLE = (
    "UPDATE address_tx SET tx_ids = set_byte(tx_ids, 7, get_byte(tx_ids, 7) + 1) WHERE address_no = 21",
    "UPDATE address_tx SET address_no = 1000001 WHERE address_no = 21",
    "UPDATE address_tx SET chunk = chunk + 1 WHERE address_no = 21",
    "UPDATE address_tx SET tx_ids = substr(tx_ids, 9) || substr(tx_ids, 1, 8) WHERE length(tx_ids) = 16",
    "UPDATE account_tx SET stake_no = 1000001",
    "UPDATE account_tx SET chunk = chunk + 1",
    "UPDATE account_tx SET tx_ids = substr(tx_ids, 9) || substr(tx_ids, 1, 8)",
    "DELETE FROM account_tx",
    "UPDATE label_tx SET label_no = label_no + 1",
    "UPDATE label_tx SET chunk = chunk + 1",
    "DELETE FROM label_tx",
    "UPDATE redeemer_tx SET script_key = set_byte(script_key, 0, 1)",
    "UPDATE redeemer_tx SET script_key = set_byte(script_key, 15, 1)",
    "UPDATE redeemer_tx SET chunk = chunk + 1",
    "UPDATE redeemer_tx SET tx_ids = tx_ids || tx_ids",
    "DELETE FROM redeemer_tx",
    "UPDATE tip SET script_lovelace = script_lovelace + 1",
    "UPDATE minted_asset SET chunk = chunk + 1",
    "UPDATE minted_asset SET asset_nos = asset_nos[2:3] || asset_nos[1:1]",
    "UPDATE account_withdrawal SET stake_no = 1000001",
    "UPDATE account_withdrawal SET entries = set_byte(entries, 7, 1)",
    "DELETE FROM account_withdrawal",
    "UPDATE spender SET slot_no = 31 WHERE slot_no = 30",
    "UPDATE spender SET entries = set_byte(entries, 11, 1) WHERE slot_no = 30",
    "UPDATE spender SET entries = set_byte(entries, 9, 1) WHERE slot_no = 30",
    "UPDATE spender SET entries = entries || entries WHERE slot_no = 30",
    "UPDATE spender SET entries = substr(entries, 25, 12) || substr(entries, 1, 24) WHERE slot_no = 20",
    "DELETE FROM spender WHERE slot_no = 10",
    "INSERT INTO spender SELECT 11, entries FROM spender WHERE slot_no = 10",
    "UPDATE utxo SET tx_id = tx_id + 1 WHERE tx_id = 40 << 16",
    "UPDATE utxo SET output_index = output_index + 1 WHERE tx_id = 40 << 16",
    "UPDATE utxo SET address_no = 1 WHERE tx_id = 40 << 16",
    "UPDATE utxo SET stake_no = 1 WHERE tx_id = 40 << 16",
    "UPDATE utxo SET asset_nos = NULL WHERE tx_id = 40 << 16",
    "UPDATE utxo SET asset_nos = '{}' WHERE ctid = (SELECT min(ctid) FROM utxo WHERE asset_nos IS NULL)",
    "UPDATE utxo SET asset_nos = asset_nos || asset_nos WHERE tx_id = 40 << 16",
    "UPDATE utxo SET asset_nos = asset_nos || 1 WHERE tx_id = 40 << 16",
    "INSERT INTO utxo SELECT tx_id, lovelace, address_no, stake_no, credential_no, 77, asset_nos FROM utxo"
    " WHERE tx_id = 40 << 16",
    "UPDATE utxo SET credential_no = 1 WHERE tx_id = 40 << 16",
    "UPDATE utxo SET credential_no = NULL WHERE credential_no IS NOT NULL",
    "UPDATE address SET credential_no = 1 WHERE address_no = 21",
    "UPDATE address SET credential_no = NULL WHERE credential_no IS NOT NULL",
    "UPDATE credential_tx SET credential_no = 1000001",
    "DELETE FROM credential_tx",
    "UPDATE credential_holder SET credential_no = 1",
    "DELETE FROM credential_holder",
    "DELETE FROM utxo WHERE tx_id = 40 << 16",
    "UPDATE account_holder SET account_no = account_no + 1000000 WHERE account_no > 0",
    "UPDATE account_holder SET asset_no = 1000001 WHERE account_no > 0",
    "DELETE FROM account_holder WHERE account_no > 0",
    "UPDATE policy_account_holder SET quantity = quantity + 1 WHERE account_no > 0",
    "UPDATE policy_account_holder SET account_no = 1000001 WHERE account_no > 0",
    "UPDATE asset_tx SET asset_no = 1000001 WHERE tx_id_at(entries, 0) = 655360",
    "DELETE FROM asset_tx WHERE tx_id_at(entries, 0) = 655360",
    "UPDATE asset_tx SET entries = entries || int8send(tx_id_at(entries, length(entries) - 18) + 1)"
    " || quantity_bytes(0)",
    "UPDATE mint SET quantity = quantity + 1 WHERE quantity = -5",
    "INSERT INTO mint SELECT asset_no, max(seq) + 1, max(tx_id) + 1, 0, NULL, false FROM mint GROUP BY asset_no",
    "DELETE FROM mint WHERE quantity = -5",
    "UPDATE holder SET quantity = quantity + 18446744073709551616 WHERE quantity > 9223372036854775807",
    "UPDATE holder SET address_no = 1000001 WHERE quantity > 9223372036854775807",
    "UPDATE holder SET asset_no = 1000001 WHERE quantity > 9223372036854775807",
    "UPDATE policy_holder SET quantity = quantity + 18446744073709551616 WHERE quantity > 9223372036854775807",
    "UPDATE asset SET supply = supply::numeric(40, 1) WHERE asset_no = 1",
    "UPDATE asset SET first_tx_id = first_tx_id + 1 WHERE asset_no = 1",
    "UPDATE asset SET first_mint_tx_id = NULL WHERE asset_no = 1",
    "UPDATE asset SET mint_count = mint_count + 1 WHERE asset_no = 1",
    "UPDATE asset SET burn_count = burn_count - 1 WHERE burn_count > 0",
    "DELETE FROM asset WHERE asset_no = 1",
    "UPDATE reference_output SET output_index = 7",
    "UPDATE reference_output SET spent_tx_id = spent_tx_id + 1 WHERE spent_tx_id IS NOT NULL",
    "DELETE FROM reference_output WHERE spent_tx_id IS NULL",
)


async def test_no_single_error_escapes(database_url: str, db: asyncpg.Connection) -> None:
    """Each is named on its own, where no other one would bring verify to list the entries of its table."""
    await write(Written(db))
    connection = await in_turns(database_url, PREVIEW)
    assert await connection.learn(partial(within, network=PREVIEW)) == {}
    for statement in (*(statement for statement, _ in PLANTED.values()), *SUBTLE):
        found = await planted(connection, statement, partial(within, network=PREVIEW))
        assert found, statement
        assert "checksum" not in found, (statement, found)
    await connection.close()


async def pay_exchange(chain: Written) -> None:
    """Pay an account so that its list of unspent outputs has buckets, and those of its address and of its payment
    credential, whose first address is another one.
    """
    await chain.append(55, tx("exchange", pays(person("exchange"))))
    slots = (slot_no for slot_no in count(60) if any(opens(tx_id_of(slot_no, 0), index) for index in range(6)))
    outputs = [pays(person("exchange", staked=True), (COIN, 1)), *[pays(person("exchange", staked=True))] * 5]
    for slot_no in islice(slots, 5):
        await chain.append(slot_no, tx(f"pay{slot_no}", *outputs, mint=mints((COIN, 1))))


async def test_an_error_in_any_column_of_a_long_list_is_found(database_url: str, db: asyncpg.Connection) -> None:
    chain = Written(db)
    await write(chain)
    await pay_exchange(chain)
    assert await verified(database_url, PREVIEW) == {}
    columns = "SELECT column_name FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2"
    checks = dict(CHECKS)
    for table in sorted(LONG_LISTS):
        names = [row["column_name"] for row in await db.fetch(columns, PREVIEW.schema, table)]
        assert len(names) >= 4
        for end in ("min", "max"):
            row = f"WHERE ctid = (SELECT {end}(ctid) FROM {table})"  # noqa: S608
            statements = [f"UPDATE {table} SET {name} = {name} + 1000003 {row}" for name in names]  # noqa: S608
            for statement in (*statements, f"DELETE FROM {table} {row}"):  # noqa: S608
                undone = db.transaction()
                await undone.start()
                assert await db.execute(statement) in ("UPDATE 1", "DELETE 1")
                found = await checks[table].all(db, 5)
                await undone.rollback()
                assert any(difference.what.startswith(f"{table} of ") for difference in found), statement


def pass_on(number: int) -> Json:
    """A transaction in which an exchange spends what the one before paid to it."""
    paid = pays(person("exchange", staked=True), (COIN, 5))
    return tx(f"on{number}", paid, pays(person("x")), spends=((f"on{number - 1}", 0),))


async def test_an_error_in_what_a_long_history_has_spent_is_found(database_url: str, db: asyncpg.Connection) -> None:
    await Written(db).append_batch([(10 + number, [pass_on(number)]) for number in range(70)])
    settings = {"search_path": PREVIEW.schema}
    in_turns = await asyncpg.connect(database_url, connection_class=InTurns, server_settings=settings)
    for table, owner_no in (("address_sent", "address_no"), ("account_sent", "stake_no")):
        assert await db.fetchval(f"SELECT count(*) FROM {table} WHERE quantity IN (69 * 2000000, 69 * 5)") == 2  # noqa: S608
        changes = ("quantity = quantity + 1", "asset_no = 1000001", f"{owner_no} = {owner_no} + 1000000")
        for change in (*changes, "quantity = quantity::numeric(40, 1)"):
            statement = f"UPDATE {table} SET {change} WHERE ctid = (SELECT max(ctid) FROM {table})"  # noqa: S608
            found = await planted(in_turns, statement, partial(within, network=PREVIEW))
            assert found is not None and found.keys() == {table}, (statement, found)
        found = await planted(in_turns, f"DELETE FROM {table}", partial(within, network=PREVIEW))  # noqa: S608
        assert found is not None and len(found[table]) == 2
    await in_turns.close()


async def test_a_history_may_become_long_and_short_again_beside_verify(
    db: asyncpg.Connection, verified_beside: Verified
) -> None:
    chain, enough = Written(db), asyncio.Event()
    await chain.append_batch([(10 + number, [pass_on(number)]) for number in range(60)])

    async def write_on() -> None:
        number = 60
        while not enough.is_set():
            await chain.append(10 + number, pass_on(number))
            number += 1
            if number == 72:
                await chain.back_to(10 + 60)
                number = 61

    writing, rounds = asyncio.create_task(write_on()), 0
    while rounds < 8 and not writing.done():
        assert await verified_beside() == {}
        rounds += 1
    enough.set()
    await writing


async def test_an_error_in_the_very_first_transaction_is_found(database_url: str, db: asyncpg.Connection) -> None:
    """The transaction with tx_id 0."""
    chain = Written(db)
    await chain.append(0, tx("first", pays(person("x"))))
    await chain.append(10, tx("second", pays(person("x"))))
    assert await verified(database_url, PREVIEW) == {}
    await db.execute("UPDATE address_tx SET tx_ids = substr(tx_ids, 9)")
    assert (await verified(database_url, PREVIEW)).keys() == {"address_tx"}


# Byte strings with two numbers, and their figures split between both: every sum over both is right.
TWICE = {
    "stake_no": """WITH less AS (UPDATE stake SET balance = balance - 5 WHERE balance > 5 RETURNING raw)
        INSERT INTO stake (stake_no, balance, raw) SELECT 1000001, 5, raw FROM less""",
    "pool_no": "INSERT INTO pool (pool_no, pool_id) SELECT 1000001, pool_id FROM pool LIMIT 1",
    "policy_no": "INSERT INTO policy (policy_no, policy_id) SELECT 1000001, policy_id FROM policy",
    "asset_no": """UPDATE mint SET asset_no = 1000001, seq = 0 WHERE quantity = -1;
        UPDATE asset SET supply = 1, burn_count = 0 WHERE supply = 0;
        UPDATE policy SET asset_count = asset_count + 1;
        INSERT INTO asset SELECT 1000001, policy_no, fingerprint, name, -1, 0, 1, 2621440 FROM asset
        WHERE first_tx_id = 1966080 AND left(encode(name, 'hex'), 8) = '000de140'""",
}


@pytest.mark.parametrize("number", TWICE)
async def test_a_byte_string_with_two_numbers_is_found(database_url: str, db: asyncpg.Connection, number: str) -> None:
    await write(Written(db))
    assert (await db.execute(TWICE[number])).endswith(" 1")
    assert any(said.startswith(f"{number} of ") for said in (await verified(database_url, PREVIEW))["address"])


OF_ONE = hashlib.blake2b(b"\x01", digest_size=32).hexdigest()
BLOCKS = {
    "a transaction without a block": (
        "UPDATE tx SET tx_id = 11 << 16 WHERE tx_id = 10 << 16",
        "tx_count of block 11: indexed None, recomputed 1",
    ),
    "a transaction after the last block": (
        "UPDATE tx SET tx_id = 1::bigint << 46 WHERE tx_id = 10 << 16",
        f"tx_count of block {1 << 30}: indexed None, recomputed 1",
    ),
    "a transaction before the first block": (
        "UPDATE tx SET tx_id = 9 << 16 WHERE tx_id = 10 << 16",
        "tx_count of block 9: indexed None, recomputed 1",
    ),
    "a transaction before slot 0": (
        "UPDATE tx SET tx_id = -7 WHERE tx_id = 10 << 16",
        f"tx_id of tx {hash_of('many')}: indexed -7, recomputed at least 0",
    ),
    "a block without transactions": (
        "DELETE FROM tx WHERE tx_id = 10 << 16",
        "tx_count of block 10: indexed 1, recomputed 0",
    ),
    "a block without a row": (
        "DELETE FROM block WHERE slot_no = 20",
        "tx_count of block 20: indexed None, recomputed 3",
    ),
    "a gap among transactions": (
        "UPDATE tx SET tx_id = tx_id + 3 WHERE tx_id = (20 << 16) + 2",
        "transactions of block 20: indexed the last of 3 has index 5, recomputed index 2",
    ),
    "a gap among blocks": (
        "UPDATE block SET block_no = block_no + 1 WHERE slot_no > 20",
        "block_no of block 30: indexed 4, recomputed 3",
    ),
    "a short hash": (
        "UPDATE tx SET hash = substr(hash, 1, 31) WHERE tx_id = 10 << 16",
        "length of hash of tx_id 655360: indexed 31, recomputed 32",
    ),
    "a datum of an unknown transaction": (
        f"INSERT INTO datum (hash, tx_id, body) VALUES ('\\x{OF_ONE}', 11 << 16, '\\x01')",  # noqa: S608
        f"tx_id of datum {OF_ONE}: indexed {11 << 16}, recomputed an existing one",
    ),
    "a datum of a transaction before slot 0": (
        f"INSERT INTO datum (hash, tx_id, body) VALUES ('\\x{OF_ONE}', -7, '\\x01')",  # noqa: S608
        f"tx_id of datum {OF_ONE}: indexed -7, recomputed an existing one",
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
async def test_what_differs_from_the_transactions_of_a_block_is_named(
    database_url: str, db: asyncpg.Connection, name: str
) -> None:
    await write(Written(db))
    statement, said = BLOCKS[name]
    assert int((await db.execute(statement)).split()[-1]) >= 1
    found = await verified(database_url, PREVIEW)
    assert any(said in difference for differences in found.values() for difference in differences), found


async def test_parts_of_history_leave_nothing_out(db: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "PART_TRANSACTIONS", 3)
    await write(Written(db))
    parts = await readers.parts_of(db)
    assert [part.first_tx_id for part in parts] == [0, *(part.next_tx_id for part in parts[:-1])]
    assert parts[-1].next_tx_id == 2**63 - 1
    assert [part.transactions for part in parts] == [1, 5, 2]


async def test_rows_in_a_wrong_order_are_found(database_url: str, db: asyncpg.Connection) -> None:
    await write(Written(db))
    await db.execute("UPDATE asset_tx SET chunk = chunk + 1 WHERE chunk = 0")
    await db.execute("UPDATE mint SET seq = seq + 100 WHERE seq = 0")
    found = await verified(database_url, PREVIEW)
    assert found.keys() == {"asset_tx", "mint"}


# Starts verify, and waits once its processes are at work.
_AT_WORK = """
import asyncio, sys, tempfile
from functools import partial
from pathlib import Path
from indexer.rows.value_check import Deposits
from indexer.verify import moments, parts, readers
from shared import database
from shared.network import PREVIEW

async def main(url):
    db = await database.connect(url, PREVIEW)
    async with moments.noting(db) as noted, readers.in_processes(url, PREVIEW, 1) as reading:
        reading.begin(noted, await readers.parts_of(db))
        context = parts.Context(Path(tempfile.mkdtemp()), "preview", True, Deposits(0, 0))
        await reading.first(partial(parts.write_numbers, context), None)
        print("at work", flush=True)
        await asyncio.sleep(3_600)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_killed_verify_leaves_no_process_behind(database_url: str, db: asyncpg.Connection) -> None:
    """A remaining process would keep its snapshot, and Postgres every later dead row."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    await Written(db).append(10, tx("a", pays(person("x"))))
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _AT_WORK, database_url, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert killed.stdout is not None
    assert await killed.stdout.readline() == b"at work\n"
    assert await db.fetchval(others) == 2
    killed.kill()
    await killed.wait()
    async with asyncio.timeout(PATIENCE_S):
        while await db.fetchval(others):
            await asyncio.sleep(0.1)


def test_the_command_prints_differences_and_exits_with_1(ledgerline: Ledgerline, finish: Any) -> None:
    async def spoil() -> None:
        db = await database.connect(ledgerline.database_url, PREVIEW)
        chain = Written(db)
        await chain.append(10, tx("a", pays(person("p"), (COIN, 1)), mint=mints((COIN, 1))))
        assert ledgerline.run("indexer", "verify", "--network", "preview").returncode == 0
        await db.execute("UPDATE holder SET quantity = 2")
        await db.close()

    finish(spoil())
    told = ledgerline.run("indexer", "verify", "--network", "preview")
    assert told.returncode == 1
    assert "holder: 1 difference\n" in told.stdout
    assert f"asset {POLICY}.{COIN} held by {person('p')}: indexed 2, recomputed 1" in told.stdout
    unknown = ledgerline.run("indexer", "verify", "--network", "mainnet")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "mainnet: nothing is indexed yet" in unknown.stderr
