"""Keys that may submit transactions, and the path for it."""

import asyncpg

from api.keys import tokens

SUBMIT, EVALUATE = "/v1/tx/submit", "/v1/tx/evaluate"


async def grant(db: asyncpg.Connection, *scopes: str) -> None:
    await db.execute("UPDATE partner.credential SET scopes = $1", list(scopes))


async def new_key(db: asyncpg.Connection, scopes: list[str]) -> str:
    key = tokens.new_api_key()
    await db.execute(
        """
        INSERT INTO partner.credential
            (user_account_id, admin_key_id, rate_limit_per_minute, network_id, key_hash, api_key_prefix, name, scopes)
        SELECT user_account_id, admin_key_id, 10000, network_id, $1, $2, 'tests', $3 FROM partner.credential LIMIT 1
        """,
        tokens.hash_of(key),
        tokens.prefix_of(key),
        scopes,
    )
    return key
