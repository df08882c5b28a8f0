"""The partner of a campaign: its credentials, and the rotation of their keys while callers use them."""

import asyncio
import os
from collections.abc import Sequence
from hashlib import sha256
from random import Random

import aiohttp
import asyncpg
import msgspec

from tests.chain.harness import NETWORK_IDS

ROTATE_EVERY_S, AGAIN_AFTER_S = 5.0, 0.5
OVERLAP_S = 300
"""Longer than the outage of any fault, so that a rotation whose answer is lost leaves time for another."""


class Key(msgspec.Struct, frozen=True):
    """An API key, the credential that it belongs to, its limit per minute, and its quota per month, if it has one."""

    text: str
    credential_id: str
    per_minute: int
    quota: int | None = None


class Partner:
    """An admin key, and its credentials as callers use them: `texts` has the current key of each credential."""

    def __init__(self, admin_key: str, keys: Sequence[Key]) -> None:
        self.admin_key, self.keys = admin_key, keys
        self.texts = {key.credential_id: key.text for key in keys}
        self.rotations = 0

    async def rotate(self, ports: Sequence[int], random: Random) -> None:
        """Until cancelled, rotate the key of one credential after the other through any of the API hosts.

        Callers use the new key from its answer on. Without an answer the key may have been replaced by an
        unknown one, so the rotation is repeated while the former key is still valid.
        """
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=8)) as session:
            while True:
                await asyncio.sleep(ROTATE_EVERY_S)
                credential_id = random.choice(list(self.texts))
                while (text := await self._rotated(session, random.choice(ports), credential_id)) is None:
                    await asyncio.sleep(AGAIN_AFTER_S)
                self.texts[credential_id] = text
                self.rotations += 1

    async def _rotated(self, session: aiohttp.ClientSession, port: int, credential_id: str) -> str | None:
        url = f"http://127.0.0.1:{port}/v1/admin/credentials/{credential_id}/rotate"
        headers = {"Authorization": f"Bearer {self.admin_key}"}
        try:
            async with session.post(url, headers=headers, json={"overlap_seconds": OVERLAP_S}) as answer:
                body = await answer.json()
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
        if answer.status == 503:
            return None
        assert answer.status == 200, f"a rotation was answered with {answer.status}: {body}"
        key: str = body["data"]["api_key"]
        return key


async def new_partner(
    database_url: str, network: str, limits: Sequence[int], quotas: Sequence[int | None] = ()
) -> Partner:
    """Insert a partner whose credentials have these limits per minute and quotas per month directly into the tables."""
    connection = await asyncpg.connect(database_url)
    try:
        admin_key = f"iiak_admin_{os.urandom(20).hex()}"
        owner = await connection.fetchval(
            "INSERT INTO partner.admin_key (entity_name, key_prefix, key_hash, permissions)"
            " VALUES ('campaign', 'iiak_admin_', $1, '{manage_users,manage_credentials}') RETURNING id",
            sha256(admin_key.encode()).digest(),
        )
        account = await connection.fetchval(
            "INSERT INTO partner.user_account (admin_key_id, name) VALUES ($1, 'campaign') RETURNING id", owner
        )
        keys = []
        for number, limit in enumerate(limits):
            text, quota = f"iiak_{os.urandom(24).hex()}", quotas[number] if quotas else None
            credential_id = await connection.fetchval(
                "INSERT INTO partner.credential (user_account_id, admin_key_id, name, api_key_prefix, key_hash,"
                " network_id, rate_limit_per_minute, quota_requests, quota_per)"
                " VALUES ($1, $2, 'campaign', $3, $4, $5, $6, $7, $8) RETURNING id",
                account,
                owner,
                text[:12],
                sha256(text.encode()).digest(),
                NETWORK_IDS[network],
                limit,
                quota,
                None if quota is None else "month",
            )
            keys.append(Key(text, str(credential_id), limit, quota))
        return Partner(admin_key, keys)
    finally:
        await connection.close()
