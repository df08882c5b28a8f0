"""Scripts and datums over HTTP, and those in outputs."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import cbor2
import pytest

from api.chain import contracts
from api.chain.contracts import Carried
from shared import database
from shared.ledger import NATIVE, SECURITY_PARAMETER, datum_hash_of, script_hash_of
from shared.network import PREVIEW
from tests.api.client import Client
from tests.chain.written import Written, hash_of, pays, person, tx

ALICE = person("alice")
KEY = bytes(range(28))
PLUTUS = bytes.fromhex("4e4d01000033222220051200120011")
PLUTUS_HASH = script_hash_of(3, PLUTUS).hex()
NATIVE_BODY = cbor2.dumps([0, KEY])
NATIVE_HASH = script_hash_of(NATIVE, NATIVE_BODY).hex()
BIG = cbor2.dumps(cbor2.CBORTag(121, [2**70, b"\x00"]))
BIG_HASH = datum_hash_of(BIG).hex()


@pytest.fixture
async def chain(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a chain of two blocks that show a datum and two scripts, the datum twice."""
    db = await database.connect(database_url, PREVIEW)
    chain = Written(db)
    native = {"language": "native", "json": {"clause": "signature", "from": KEY.hex()}}
    inline = pays(ALICE, datum=BIG.hex()) | {"script": {"language": "plutus:v3", "cbor": PLUTUS.hex()}}
    await chain.append(10, tx("a", pays(ALICE), inline, scripts={NATIVE_HASH: native}))
    await chain.append(20, tx("b", pays(ALICE, datumHash=BIG_HASH), datums={BIG_HASH: BIG.hex()}))
    yield db
    await db.close()


FIRST = {"first_tx_hash": hash_of("a"), "first_slot_no": 10}


@pytest.mark.usefixtures("chain")
async def test_a_plutus_script(api: Client, key: str) -> None:
    reply = await api.get(f"/v1/scripts/{PLUTUS_HASH.upper()}", key)
    assert reply.body["data"] == {
        "script_hash": PLUTUS_HASH, "language": "plutus:v3", "cbor": PLUTUS.hex(), "size": len(PLUTUS), **FIRST
    }  # fmt: skip
    assert reply.body["last_updated"]["slot_no"] == 20


@pytest.mark.usefixtures("chain")
async def test_a_native_script(api: Client, key: str) -> None:
    reply = await api.get(f"/v1/scripts/{NATIVE_HASH}", key)
    shown = {"json": {"type": "sig", "keyHash": KEY.hex()}, "size": len(NATIVE_BODY), "cbor": NATIVE_BODY.hex()}
    assert reply.body["data"] == {"script_hash": NATIVE_HASH, "language": "native", **shown, **FIRST}


@pytest.mark.usefixtures("chain")
async def test_a_datum_with_a_number_beyond_64_bits(api: Client, key: str) -> None:
    reply = await api.get(f"/v1/datums/{BIG_HASH}", key)
    json = {"constructor": 0, "fields": [{"int": 2**70}, {"bytes": "00"}]}
    assert reply.body["data"] == {"datum_hash": BIG_HASH, "cbor": BIG.hex(), "json": json, **FIRST}


async def test_an_answer_is_immutable_once_no_rollback_can_change_it(
    api: Client, chain: asyncpg.Connection, key: str
) -> None:
    path = f"/v1/datums/{BIG_HASH}"
    assert "immutable" not in (await api.get(path, key)).headers["Cache-Control"]
    await chain.execute("UPDATE tip SET block_no = block_no + $1", SECURITY_PARAMETER)
    assert "immutable" in (await api.get(path, key)).headers["Cache-Control"]


@pytest.mark.usefixtures("chain")
@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        (f"scripts/{'0' * 56}", 404, "Script not found"),
        (f"scripts/{BIG_HASH}", 400, "Invalid script hash format. Expected 56 hex characters"),
        (f"datums/{'0' * 64}", 404, "Datum not found"),
        (f"datums/{NATIVE_HASH}", 400, "Invalid datum hash format. Expected 64 hex characters"),
    ],
)
async def test_unknown_and_malformed_hashes_are_refused(
    api: Client, key: str, path: str, status: int, error: str
) -> None:
    reply = await api.get(f"/v1/{path}", key)
    assert (reply.status, reply.error) == (status, error)


async def test_datums_and_scripts_of_several_outputs_are_read_together(chain: asyncpg.Connection) -> None:
    columns: Any = dict(await chain.fetch("SELECT encode(hash, 'hex'), attached FROM tx"))
    outputs = [(columns[hash_of("a")], 0), (columns[hash_of("a")], 1), (columns[hash_of("b")], 0), (None, 0)]
    assert await contracts.carried(chain, outputs) == [
        Carried(),
        Carried(BIG_HASH, BIG.hex(), PLUTUS_HASH),
        Carried(BIG_HASH, None, None),
        Carried(),
    ]
