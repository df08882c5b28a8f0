"""DELETE of an account erases every column that may hold personal data, also one that is added tomorrow."""

from typing import Any
from uuid import UUID

import asyncpg

from tests.api.partners import Partner, an_account

KEPT = {
    "user_account.status": "a word of ours",
    "credential.quota_per": "a word of ours",
    "credential.scopes": "words of ours",
    "credential.key_hash": "of a random key, which a request with it is refused by",
    "credential.api_key_prefix": "of a random key, by which usage is attributed",
    "former_key.key_hash": "of a random key, which a request with it is refused by",
    "subscription.state": "a word of ours; its subjects and its log are dropped in the background",
    "event_notice_once.kind": "a word of ours",
    "idempotency_key.key_hash": "a hash, which a repeated request is refused by",
    "idempotency_key.body_hash": "a hash, which a repeated request is refused by",
    "idempotency_key.issued_to": "a word of ours",
    "idempotency_key.invalidated": "hashes of random keys",
    "audit_log.target_type": "a word of ours",
    "audit_log.action": "a word of ours",
    "audit_log.ip_address": "of the partner, not of the account",
    "audit_log.details": "only names, references and networks in it go (test_key_life.py)",
}
"""The columns that DELETE leaves as they are, and why. Any other column that can hold text must change or go."""

SAMPLES = {
    "text": "planted",
    "character varying": "planted",
    "text[]": ["planted"],
    "json": '{"planted": true}',
    "jsonb": '{"planted": true}',
    "bytea": b"planted",
    "bytea[]": [b"planted"],
    "inet": "192.0.2.77",
}

_COLUMNS_OF_ACCOUNTS = """
WITH belongs (of_table, owner) AS (
    SELECT to_regclass('partner.user_account'), 'id' UNION SELECT to_regclass('partner.credential'), 'id'
    UNION
    SELECT conrelid::regclass, attname FROM pg_constraint
    JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
    WHERE confrelid IN (to_regclass('partner.user_account'), to_regclass('partner.credential'))
      AND conrelid <> to_regclass('partner.credential')
    UNION
    SELECT attrelid::regclass, attname FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid AND relnamespace = to_regnamespace('partner') AND relkind = 'r'
    WHERE attname = 'target_id'
)
SELECT relname || '.' || attname AS name, relname AS of_table, owner, attname AS column,
       format_type(atttypid, NULL) AS type
FROM belongs
JOIN pg_class ON pg_class.oid = of_table
JOIN pg_attribute ON attrelid = of_table AND attnum > 0 AND NOT attisdropped
JOIN pg_type ON pg_type.oid = atttypid
WHERE typcategory NOT IN ('N', 'B', 'D', 'T') AND format_type(atttypid, NULL) NOT IN ('uuid', 'bigint[]')
"""
"""Every column of a row about an account or one of its credentials, but those of numbers, times, flags and ids."""


async def test_deletion_erases_every_column_that_may_hold_text(partner: Partner, db: asyncpg.Connection) -> None:
    ids = await an_account(partner, db)
    columns = await db.fetch(_COLUMNS_OF_ACCOUNTS)
    assert KEPT.keys() <= {each["name"] for each in columns}
    erased = [each for each in columns if each["name"] not in KEPT]
    planted = {each["name"]: await plant(db, each, ids) for each in erased}
    await partner.data("DELETE", f"/users/{ids[0]}")
    left = [each["name"] for each in erased if planted[each["name"]] & await values(db, each, ids)]
    assert left == [], "`delete` or another statement of api/admin/users.sql must erase them, or KEPT must say why not"


async def plant(db: asyncpg.Connection, column: Any, ids: list[UUID]) -> set[str]:
    """Write a sample into a column of the account's rows; returns the values that it has now."""
    assert column["type"] in SAMPLES, f"{column['name']} needs a sample of {column['type']}"
    statement = "UPDATE partner.{of_table} SET {column} = $1::text::{type} WHERE {owner} = ANY ($2)"
    sample = SAMPLES[column["type"]]
    if not isinstance(sample, str):
        statement = statement.replace("::text", "")
    ended = await db.execute(statement.format(**column), sample, ids)
    assert ended != "UPDATE 0", f"{column['name']}: an_account() makes no such row"
    return await values(db, column, ids)


async def values(db: asyncpg.Connection, column: Any, ids: list[UUID]) -> set[str]:
    """The values of a column in the account's rows, as text."""
    select = "SELECT {column}::text FROM partner.{of_table} WHERE {owner} = ANY ($1) AND {column} IS NOT NULL"
    return {value for (value,) in await db.fetch(select.format(**column), ids)}
