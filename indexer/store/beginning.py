"""How an index begins: with an empty chain, its genesis, and row numbers under a new id."""

import asyncpg

from indexer.blocks.genesis import Genesis
from indexer.rows import tables
from indexer.rows.amounts import Amounts
from indexer.rows.outputs import utxo_row
from indexer.rows.resolver import new_resolver
from indexer.rows.staking import of_genesis
from indexer.store import balances, epochs, forward, moves
from indexer.store.moves import Moves
from shared import ledger, schema, sql
from shared.network import Network


async def begin(db: asyncpg.Connection, network: Network, genesis: Genesis) -> None:
    """Erase the chain, then write its genesis: outputs, pools and delegations."""
    async with schema.commit(db):
        await erase(db)
        await forget_verification(db, network)
        outputs = [
            tables.GenesisOutput(output.tx_hash, ledger.tx_id_of(-1 - place, 0), output.address, output.lovelace)
            for place, output in enumerate(genesis.outputs)
        ]
        await forward.copy(db, tables.GENESIS_OUTPUT, outputs)
        resolver = await new_resolver(db, network)
        first_seen = await resolver.look_up_numbers(
            db,
            dict.fromkeys(output.address for output in reversed(genesis.outputs)),
            set(),
            genesis.accounts,
            genesis.pools.keys() | set(genesis.delegations.values()),
        )
        staking = of_genesis(genesis, resolver, first_seen)
        await forward.copy_all(db, first_seen)
        await balances.count_addresses(db)
        paid = [resolver.genesis_output(row.tx_id, row.address, row.lovelace) for row in outputs]
        await epochs.change_delegations(db, staking)
        amounts = Amounts()
        amounts.move(paid, 1)
        delegators = await epochs.change_rewards(db, staking, 0)
        await moves.make(db, Moves(amounts, delegators=delegators, added=[utxo_row(output) for output in paid]))
        await epochs.begin(db, staking.begun)


async def erase(db: asyncpg.Connection) -> None:
    """Empty every table of the chain. The counts of rollbacks stay: their metrics must not fall."""
    async with schema.commit(db):
        await db.execute("TRUNCATE " + ", ".join(tables.NAMES))


async def forget_verification(db: asyncpg.Connection, network: Network) -> None:
    """Drop the record of the last `verify`, since a new index begins. Runs inside a commit."""
    await _forget_verification.run(db, network.network_id)


async def renumber(db: asyncpg.Connection) -> None:
    """Set a new id as `tip.numbering`, which invalidates all caches of row numbers: Postgres may have lost commits that
    assigned some.
    """
    async with schema.commit(db):
        await _renumber.run(db)


_sql = sql.beside(__file__)
_forget_verification = _sql.command("forget_verification")
_renumber = _sql.command("renumber")
