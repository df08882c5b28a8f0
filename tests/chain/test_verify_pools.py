"""`verify` finds errors in stake, pools and epochs, and none in a correct index."""

from shared import database
from shared.network import PREVIEW
from tests.chain.harness import Ledgerline, Node
from tests.chain.planted import verified
from tests.chain.pool_life import life_of
from tests.chain.scripted import Scripted

# Check -> an error, and the least that verify must report.
PLANTED = {
    "delegation": (
        "UPDATE stake SET active_epoch_no = active_epoch_no + 1 WHERE pool_no IS NOT NULL",
        "from epoch 12, recomputed pool_no",
    ),
    "pool_reaping": (
        "INSERT INTO pool_retirement SELECT 1::bigint << 40, pool_no, 11, 0 FROM stake WHERE pool_no IS NOT NULL",
        "in epoch 11: indexed none, recomputed one",
    ),
    "pool_epoch": (
        "UPDATE pool_epoch SET blocks = blocks + 1 WHERE epoch_no = 0",
        "in epoch 0: indexed 2, recomputed 1",
    ),
    "active_stake": (
        "UPDATE pool_epoch SET active_stake = active_stake - 1 WHERE epoch_no = 11",
        "in epoch 11: indexed 1499999999, recomputed 1500000000",
    ),
    "delegator": ("UPDATE delegator SET amount = amount + 1", "indexed 1 in the list of pool_no"),
    "delegator_bucket": (
        "UPDATE delegator_bucket SET lovelace = lovelace + 5 WHERE delegators > 0",
        "indexed 1 delegators with 5",
    ),
    "live_stake": ("UPDATE live_stake SET lovelace = lovelace + 3", "live_stake: indexed"),
}


async def test_an_error_in_each_table_of_stake_and_pools_is_found(ledgerline: Ledgerline) -> None:
    chain = Scripted()
    for write, _ in life_of(chain):
        write(chain)
    with Node(chain) as node, ledgerline.indexing("preview", node.url) as process:
        process.says("ledger_state.compared")
        assert process.stop() == 0
    assert await verified(ledgerline.database_url, PREVIEW) == {}
    db = await database.connect(ledgerline.database_url, PREVIEW)
    for statement, _ in PLANTED.values():
        assert int((await db.execute(statement)).split()[-1]) >= 1, statement
    await db.close()
    found = await verified(ledgerline.database_url, PREVIEW)
    for check, (_, least) in PLANTED.items():
        assert any(least in difference for difference in found[check]), (check, found)
