"""Chains of a few transactions that a test writes down, indexed by the indexer's own steps on a connection.

They begin at block 1, so that nothing has to balance: inputs from before it are unknown.
"""

import hashlib
import json
from typing import Any

import asyncpg

from indexer import balance, bulk, effects, frames, parcels, rows, staking, store
from indexer.known import known_to
from indexer.ogmios import Forward
from shared import address
from shared.network import PREVIEW

Json = dict[str, Any]
POLICY = hashlib.blake2b(b"policy", digest_size=28).hexdigest()
ADA = 1_000_000

_RULES = balance.Rules(stake_deposit=2 * ADA, pool_deposit=500 * ADA, from_origin=False)


def hash_of(name: str) -> str:
    """The hash of the block or transaction of that name."""
    return hashlib.blake2b(name.encode(), digest_size=32).hexdigest()


def person(name: str, *, staked: bool = False) -> str:
    """The address of somebody, with a stake part or without."""
    key = hashlib.blake2b(name.encode(), digest_size=28).digest()
    return address.show(b"\x00" + key + key if staked else b"\x60" + key)


def pays(to: str, *assets: tuple[str, int], policy: str = POLICY, **datum: str) -> Json:
    """An output with assets by name in hex and quantity; `datum` or `datumHash` may follow."""
    value: Json = {"ada": {"lovelace": 2 * ADA}}
    if assets:
        value[policy] = dict(assets)
    return {"address": to, "value": value, **datum}


def tx(name: str, *outputs: Json, spends: tuple[tuple[str, int], ...] = (), **rest: Any) -> Json:
    """A transaction: its outputs, what it spends (name, index), and anything else in Ogmios' words."""
    return {
        "id": hash_of(name),
        "inputs": [{"transaction": {"id": hash_of(source)}, "index": index} for source, index in spends],
        "outputs": list(outputs),
        "fee": {"ada": {"lovelace": 170_000}},
        **rest,
    }


def mints(*assets: tuple[str, int], policy: str = POLICY) -> Json:
    """The mint of a transaction."""
    return {policy: dict(assets)}


class Written:
    """A chain of preview on a connection to its schema."""

    def __init__(self, db: asyncpg.Connection, *, bulk: bool = False) -> None:
        self._db, self.bulk = db, bulk

    async def append(self, slot_no: int, *transactions: Json) -> str:
        """Index a block; returns its hash."""
        present = await store.position(self._db)
        tip = None if present is None else present.point
        block_no = 1 if present is None else present.block_no + 1
        block = {
            "type": "praos",
            "era": "conway",
            "id": hash_of(f"block {slot_no} {[each['id'] for each in transactions]}"),
            "ancestor": "" if tip is None else tip.block_hash.hex(),
            "height": block_no,
            "slot": slot_no,
            "issuer": {"verificationKey": "00" * 32},
            "transactions": list(transactions),
        }
        frame = {"result": {"direction": "forward", "block": block, "tip": "origin"}}
        answer = frames.read(json.dumps(frame).encode())
        assert isinstance(answer, frames.NextBlock) and answer.block is not None
        node_tip = frames.NodePoint(slot_no, answer.block.id, block_no)
        parcel = parcels.pack(Forward(effects.of_block(answer.block), node_tip), PREVIEW)
        known = await known_to(self._db, PREVIEW, bulk=self.bulk)
        unborn = await known.learn(self._db, [parcel.names])
        crossed = staking.boundaries(tip, parcel.point, PREVIEW)
        prepared = rows.of([parcel], unborn, crossed)
        rows.add(prepared, parcel, known, _RULES)
        await store.append(self._db, prepared, node_tip, bulk=self.bulk)
        return parcel.point.block_hash.hex()

    async def back_to(self, slot_no: int) -> None:
        """Roll back to the block at a slot."""
        point = await store.last_at_or_before(self._db, slot_no)
        assert point is not None, f"no block at slot {slot_no}"
        assert point.slot_no == slot_no, f"no block at slot {slot_no}"
        await store.rollback(self._db, PREVIEW, point)

    async def finalize(self) -> None:
        """End bulk."""
        await bulk.finalize(self._db, 0)
        self.bulk = False
