"""What addresses and accounts with long histories, and payment credentials, have spent: kept as blocks come and go, and
after bulk.
"""

from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import asyncpg
import pytest

from indexer.store import backward, position
from shared import address, database
from shared.network import PREVIEW
from tests.chain.written import ADA, Json, Written, pays, person, tx

SHORT = "CREATE OR REPLACE FUNCTION is_long_history(entries integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS"
LONGEST_SHORT = 3
PEOPLE = [person("ann", staked=True), person("bob", staked=True), person("carl")]
# Two addresses of one account, and three of one payment credential.
PEOPLE.append(address.show(b"\x00" + address.parse(PEOPLE[1], PREVIEW)[1:29] + address.parse(PEOPLE[0], PREVIEW)[29:]))
PEOPLE.append(person("bob"))
HUGE = (1 << 64) - 1


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await database.connect(database_url, PREVIEW)
    await connection.execute(f"{SHORT} 'SELECT entries > {LONGEST_SHORT}'")
    yield connection
    await connection.close()


def owners_of(payee: str) -> list[bytes]:
    raw = address.parse(payee, PREVIEW)
    return [owner for owner in (raw, address.stake_of(raw)) if owner is not None]


def expected(blocks: list[list[Json]]) -> dict[tuple[bytes, str], int]:
    """What the owners of long histories have spent, by their bytes and the asset's name; and what is spent from other
    addresses of payment credentials than their first, by the hash of these.
    """
    outputs: dict[tuple[str, int], Json] = {}
    entries, sent, first = Counter[bytes](), Counter[tuple[bytes, str]](), dict[bytes, bytes]()
    for each in (each for block in blocks for each in block):
        spent = [outputs[source["transaction"]["id"], source["index"]] for source in each["inputs"]]
        outputs.update({(each["id"], index): output for index, output in enumerate(each["outputs"])})
        entries.update({owner for output in (*spent, *each["outputs"]) for owner in owners_of(output["address"])})
        for output in each["outputs"]:
            raw = address.parse(output["address"], PREVIEW)
            first.setdefault(raw[1:29], raw)
        for output in spent:
            raw = address.parse(output["address"], PREVIEW)
            others = [raw[1:29]] if first[raw[1:29]] != raw else []
            for owner in (*owners_of(output["address"]), *others):
                for policy, quantities in output["value"].items():
                    for name, quantity in quantities.items():
                        sent[owner, "lovelace" if policy == "ada" else name] += quantity
    return {key: quantity for key, quantity in sent.items() if key[0] in first or entries[key[0]] > LONGEST_SHORT}


async def stored(db: asyncpg.Connection) -> dict[tuple[bytes, str], int]:
    rows = await db.fetch(
        "SELECT raw, coalesce(encode(name, 'hex'), 'lovelace'), quantity FROM address_sent JOIN address"
        " USING (address_no) LEFT JOIN asset USING (asset_no) UNION ALL"
        " SELECT raw, coalesce(encode(name, 'hex'), 'lovelace'), quantity FROM account_sent JOIN stake"
        " USING (stake_no) LEFT JOIN asset USING (asset_no) UNION ALL"
        " SELECT payment_hash(raw), coalesce(encode(name, 'hex'), 'lovelace'), quantity FROM credential_sent s"
        " JOIN address a ON a.address_no = s.credential_no LEFT JOIN asset USING (asset_no)"
    )
    return {(raw, name): int(quantity) for raw, name, quantity in rows}


class Payments:
    """Blocks of payments between a few people. Some outputs are spent in their block."""

    def __init__(self, seed: int) -> None:
        self.random, self.blocks, self.number = Random(seed), list[list[Json]](), 0

    def unspent(self) -> list[tuple[str, int]]:
        every = [each for block in self.blocks for each in block]
        spent = {(source["name"], source["index"]) for each in every for source in each["sources"]}
        made = [(each["name"], index) for each in every for index in range(len(each["outputs"]))]
        return [output for output in made if output not in spent]

    def block(self) -> list[Json]:
        """The next block."""
        self.blocks.append([])
        for _ in range(self.random.randint(1, 3)):
            self.number += 1
            unspent = self.unspent()
            spends = self.random.sample(unspent, min(len(unspent), self.random.randint(0, 3)))
            assets = [("aa", self.random.choice((1, 7, HUGE))), ("bb", 5)]
            outputs = [
                pays(self.random.choice(PEOPLE), *self.random.sample(assets, self.random.randint(0, 2)))
                for _ in range(self.random.randint(1, 3))
            ]
            made = tx(f"{self.number}", *outputs, spends=tuple(spends))
            named = {"name": f"{self.number}", "sources": [{"name": name, "index": index} for name, index in spends]}
            self.blocks[-1].append(made | named)
        return self.blocks[-1]


def sent(block: list[Json]) -> list[Json]:
    """The transactions as a node sends them."""
    return [{name: part for name, part in each.items() if name not in ("name", "sources")} for each in block]


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_spent_follows_blocks_and_rollbacks(db: asyncpg.Connection, seed: int) -> None:
    payments, chain = Payments(seed), Written(db)
    seen = set[bool]()
    for _ in range(60):
        if len(payments.blocks) > 3 and payments.random.random() < 0.4:
            del payments.blocks[-payments.random.randint(1, min(12, len(payments.blocks) - 1)) :]
            await chain.back_to(10 * len(payments.blocks))
        else:
            await chain.append(10 * (len(payments.blocks) + 1), *sent(payments.block()))
        found = expected(payments.blocks)
        seen.add(bool(found))
        assert await stored(db) == found
    assert seen == {False, True}


@pytest.mark.parametrize("seed", range(2))
async def test_what_is_spent_is_added_up_when_bulk_ends(db: asyncpg.Connection, seed: int) -> None:
    payments, chain = Payments(seed), Written(db, bulk=True)
    for _ in range(20):
        await chain.append(10 * (len(payments.blocks) + 1), *sent(payments.block()))
    del payments.blocks[-8:]
    point = await position.last_at_or_before(db, 10 * len(payments.blocks))
    assert point is not None
    await backward.rollback(db, PREVIEW, point)
    for _ in range(5):
        await chain.append(10 * (len(payments.blocks) + 1), *sent(payments.block()))
    assert await stored(db) == {}
    await chain.finalize()
    assert await stored(db) == expected(payments.blocks) != {}
    assert not await db.fetch("SELECT FROM address_sent_staged")


async def test_a_history_that_becomes_long_at_once_has_all_that_it_spent(db: asyncpg.Connection) -> None:
    """A batch far from the tip has thousands of blocks."""
    ann = PEOPLE[0]
    blocks = [(10, [tx("0", pays(ann, ("aa", HUGE)))])]
    blocks += [(10 + at, [tx(f"{at}", pays(ann, ("aa", HUGE)), spends=((f"{at - 1}", 0),))]) for at in range(1, 9)]
    await Written(db).append_batch(blocks)
    raw, account = owners_of(ann)
    lovelace, quantity = 8 * 2 * ADA, 8 * HUGE
    assert await stored(db) == {
        (raw, "lovelace"): lovelace,
        (raw, "aa"): quantity,
        (account, "lovelace"): lovelace,
        (account, "aa"): quantity,
    }
