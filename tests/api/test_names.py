"""The names of numbers in rows: cached until the numbering of the index changes."""

from uuid import UUID, uuid4

import asyncpg
import pytest

from api.chain import names
from shared import database
from shared.ledger import AddressNo, AssetNo
from shared.network import PREVIEW
from shared.packed import Output
from tests.api.chains import Chain
from tests.api.client import Client
from tests.api.payments import ALICE, BOB, pays


async def paid_to(api: Client, key: str) -> list[str]:
    reply = await api.get(f"/v1/tx/address/{ALICE}", key)
    return [output["address"] for output in reply.body["data"][0]["outputs"]]


async def test_cached_names_of_another_numbering_are_not_used(
    api: Client, chain: Chain, key: str, db: asyncpg.Connection
) -> None:
    """As after Postgres lost commits in a crash, and their numbers were assigned again."""
    await chain.append(10, pays("a", ALICE, BOB))
    assert await paid_to(api, key) == [ALICE, BOB]
    await db.execute(
        "UPDATE chain_preview.address SET raw = other.raw FROM chain_preview.address other"
        " WHERE address.address_no = 1 - other.address_no"
    )
    await db.execute("UPDATE chain_preview.tip SET numbering = gen_random_uuid()")
    assert await paid_to(api, key) == [BOB, ALICE]


async def test_rows_are_read_again_if_the_numbering_changes_before_their_names_are_read(
    database_url: str, chain: Chain
) -> None:
    await chain.append(10, pays("a", ALICE))
    db = await database.connect(database_url, PREVIEW)
    numberings = [uuid4(), await db.fetchval("SELECT numbering FROM tip")]

    async def read() -> names.Names:
        return await names.resolve(db, UUID(int=numberings.pop(0).int), [Output(AddressNo(0), 1)])

    assert (await names.until_consistent(read)).addresses == {AddressNo(0): ALICE}
    assert numberings == []
    await db.close()


async def test_an_unassigned_number_is_never_shown(database_url: str, chain: Chain) -> None:
    await chain.append(10, pays("a", ALICE))
    db = await database.connect(database_url, PREVIEW)
    numbering = await db.fetchval("SELECT numbering FROM tip")
    for outputs, assets in (([Output(AddressNo(7), 1)], []), ([], [AssetNo(7)])):
        with pytest.raises(names.Renumbered):
            await names.resolve(db, numbering, outputs, assets)
    await db.close()


async def test_more_names_than_are_cached_are_all_shown(
    database_url: str, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "MAX_ADDRESSES", 2)
    await chain.append(10, pays("a", ALICE, BOB))
    db = await database.connect(database_url, PREVIEW)
    numbering = await db.fetchval("SELECT numbering FROM tip")
    for _ in range(2):
        both = await names.resolve(db, numbering, [Output(AddressNo(no), 1) for no in (0, 1)])
        assert both.addresses == {AddressNo(0): ALICE, AddressNo(1): BOB}
    await db.close()
