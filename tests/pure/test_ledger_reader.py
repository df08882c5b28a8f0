"""What the indexer reads from the node's ledger."""

import pytest

from devnet.addresses import LedgerCredential, raw
from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from devnet.votes import StakeAccount
from indexer.ledger import reader
from indexer.ogmios import connection as ogmios
from indexer.ogmios import frames


@pytest.mark.parametrize("version", [(6, 11), (6, 12), (6, 14), (7, 0)])
async def test_a_key_and_a_script_with_the_same_hash_have_their_own_rewards(version: tuple[int, int]) -> None:
    chain = Generated(Options(seed=2, eras=(("babbage", 0), ("conway", 2))), 3)
    key, script = (LedgerCredential(origin, "ab" * 28) for origin in ("verificationKey", "script"))
    async with NodeServer(chain, dialect=Dialect(version)) as node:
        accounts = node.ledger_after(2).accounts
        accounts |= {key: StakeAccount(2_000_000, rewards=5), script: StakeAccount(2_000_000, rewards=7)}
        connection = await ogmios.connect(node.url)
        raws = [raw(chain.cast.reward_address(who)) for who in (key, script)]
        told = await reader.summaries_of(connection, raws)
        await connection.close()
    rewards = {each.hex(): frames.lovelace(summary.rewards) for each, summary in told.items()}
    assert rewards == {"e0" + key.hash: 5, "f0" + script.hash: 7}
