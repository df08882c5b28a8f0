"""Requests for every kind of list and object of an indexed chain, spread over its addresses, assets and pools."""

from collections.abc import Mapping, Sequence

import asyncpg

from api.chain.pools import show_pool_id
from shared import address

_ADDRESS = "SELECT raw FROM address WHERE address_no >= $1 ORDER BY address_no LIMIT 1"
_STAKE = "SELECT raw FROM stake WHERE stake_no >= $1 ORDER BY stake_no LIMIT 1"
_POLICY = "SELECT policy_id FROM policy WHERE policy_no >= $1 ORDER BY policy_no LIMIT 1"
_ASSET = """
SELECT policy_id, name FROM asset JOIN policy USING (policy_no)
WHERE asset_no >= $1 AND first_tx_id IS NOT NULL ORDER BY asset_no LIMIT 1
"""
_TRANSACTION = "SELECT hash FROM tx WHERE tx_id >= $1 ORDER BY tx_id LIMIT 1"
_POOL = """
SELECT pool_id FROM pool WHERE pool_no >= $1 AND EXISTS (SELECT FROM pool_update WHERE pool_no = pool.pool_no)
ORDER BY pool_no LIMIT 1
"""


async def requests(db: asyncpg.Connection, count: int, *, popular: bool) -> Mapping[str, Sequence[str]]:
    """Paths of `count` requests of each kind, by kind.

    With `popular`, the requests are for the oldest objects, which have the longest lists in a chain of `bench.chain`;
    otherwise they are spread evenly over all objects.
    """

    async def rows(statement: str, table: str, column: str, first: int = 1) -> list[asyncpg.Record]:
        lowest, highest = await db.fetchrow(
            f"SELECT min({column}), max({column}) FROM {table}"  # noqa: S608 - of our own names
        )
        start = max(lowest, first)
        step = 1 if popular and table != "tx" else max((highest - start) // count, 1)
        fetched = [
            await db.fetchrow(statement, start + number * step % (highest - start + 1)) for number in range(count)
        ]
        return [row for row in fetched if row is not None]

    genesis: int = await db.fetchval("SELECT count(*) FROM genesis_output")
    addresses = [address.show(row["raw"]) for row in await rows(_ADDRESS, "address", "address_no", genesis + 1)]
    accounts = [address.show_stake(row["raw"]) for row in await rows(_STAKE, "stake", "stake_no")]
    policies = [row["policy_id"].hex() for row in await rows(_POLICY, "policy", "policy_no")]
    assets = [f"{row['policy_id'].hex()}.{row['name'].hex()}" for row in await rows(_ASSET, "asset", "asset_no")]
    pools = [show_pool_id(row["pool_id"]) for row in await rows(_POOL, "pool", "pool_no")]
    transactions = [row["hash"].hex() for row in await rows(_TRANSACTION, "tx", "tx_id")]
    return _paths(addresses, accounts, policies, assets, pools, transactions)


def _paths(
    addresses: list[str],
    accounts: list[str],
    policies: list[str],
    assets: list[str],
    pools: list[str],
    transactions: list[str],
) -> Mapping[str, Sequence[str]]:
    """The paths by kind."""
    return {
        "history, 100": [f"/v1/tx/history/{text}" for text in addresses],
        "in full, 20": [f"/v1/tx/address/{text}" for text in addresses],
        "address": [f"/v1/addresses/{text}" for text in addresses],
        "unspent outputs, 100": [f"/v1/addresses/{text}/utxos" for text in addresses],
        "assets of an address, 100": [f"/v1/addresses/{text}/assets" for text in addresses],
        "account": [f"/v1/accounts/{text}" for text in accounts],
        "addresses of an account, 100": [f"/v1/accounts/{text}/addresses" for text in accounts],
        "unspent outputs of an account, 100": [f"/v1/accounts/{text}/utxos" for text in accounts],
        "transaction": [f"/v1/tx/hash/{tx_hash}" for tx_hash in transactions],
        "asset": [f"/v1/assets/{asset}" for asset in assets],
        "holders, 100": [f"/v1/assets/{asset}/holders" for asset in assets],
        "transactions of an asset, 100": [f"/v1/assets/{asset}/transactions" for asset in assets],
        "mints, 100": [f"/v1/assets/{asset}/mints" for asset in assets],
        "assets of a policy, 100": [f"/v1/assets/policy/{policy_id}" for policy_id in policies],
        "holders of a policy, 100": [f"/v1/assets/policy/{policy_id}/holders" for policy_id in policies],
        "pool": [f"/v1/pools/{pool_id}" for pool_id in pools],
        "delegators, 100": [f"/v1/pools/{pool_id}/delegators/list" for pool_id in pools],
    }
