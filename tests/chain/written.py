"""Chains of a few transactions written in a test, indexed by the indexer's own steps.

They begin at block 1, so transactions need not balance: earlier inputs are unknown.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import asyncpg

from indexer.blocks import effects, packed_block
from indexer.ogmios import frames
from indexer.rows import rows, staking, value_check
from indexer.rows.histories import AssetStates
from indexer.rows.resolver import new_resolver
from indexer.store import backward, finish_bulk, forward, position
from shared import address
from shared.network import PREVIEW, Network

Json = dict[str, Any]
POLICY = hashlib.blake2b(b"policy", digest_size=28).hexdigest()
ADA = 1_000_000

_RULES = value_check.Rules(value_check.Deposits(2 * ADA, 500 * ADA), from_origin=False)


def hash_of(name: str) -> str:
    """The hash of the block or transaction of that name."""
    return hashlib.blake2b(name.encode(), digest_size=32).hexdigest()


def person(name: str, *, staked: bool = False) -> str:
    """A made-up person's address, with or without a stake part."""
    key = hashlib.blake2b(name.encode(), digest_size=28).digest()
    return address.show(b"\x00" + key + key if staked else b"\x60" + key)


def reward_account(name: str) -> str:
    """The reward account of a person whose address is staked."""
    return address.show_stake(b"\xe0" + hashlib.blake2b(name.encode(), digest_size=28).digest())


def pays(to: str, *assets: tuple[str, int], policy: str = POLICY, **datum: str) -> Json:
    """An output with assets (name in hex, quantity), and possibly a `datum` or `datumHash`."""
    value: Json = {"ada": {"lovelace": 2 * ADA}}
    if assets:
        value[policy] = dict(assets)
    return {"address": to, "value": value, **datum}


def tx(name: str, *outputs: Json, spends: tuple[tuple[str, int], ...] = (), **rest: Any) -> Json:
    """A transaction: its outputs, its inputs (name, index), and other fields of Ogmios."""
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


def _block(slot_no: int, block_no: int, ancestor: str, transactions: Sequence[Json], era: str) -> Json:
    return {
        "type": "praos",
        "era": era,
        "id": hash_of(f"block {slot_no} {[each['id'] for each in transactions]}"),
        "ancestor": ancestor,
        "height": block_no,
        "slot": slot_no,
        "issuer": {"verificationKey": "00" * 32},
        "size": {"bytes": 1_000},
        "transactions": list(transactions),
    }


class Written:
    """A chain on a connection to its network's schema."""

    def __init__(self, db: asyncpg.Connection, *, bulk: bool = False, network: Network = PREVIEW) -> None:
        self._db, self.bulk, self._network = db, bulk, network

    async def append(self, slot_no: int, *transactions: Json, era: str = "conway", to_tip: int = 0) -> str:
        """Index a block, `to_tip` blocks before the node's tip; returns its hash."""
        return await self.append_batch([(slot_no, transactions)], era=era, to_tip=to_tip)

    async def append_batch(
        self, blocks: Sequence[tuple[int, Sequence[Json]]], *, era: str = "conway", to_tip: int = 0
    ) -> str:
        """Index blocks, each with its slot, in one commit; returns the hash of the last one."""
        present = await position.read(self._db)
        ancestor = "" if present is None else present.block_hash.hex()
        block_no = 0 if present is None else present.block_no
        batch = []
        for slot_no, transactions in blocks:
            block_no += 1
            batch.append(_block(slot_no, block_no, ancestor, transactions, era))
            ancestor = batch[-1]["id"]
        return await self.index(*batch, to_tip=to_tip)

    async def index(self, *blocks: Json, to_tip: int = 0) -> str:
        """Index blocks as the node reports them, in one commit; returns the hash of the last one."""
        present = await position.read(self._db)
        tip = None if present is None else present.point
        packed = []
        for block in blocks:
            answer = frames.read(
                json.dumps({"result": {"direction": "forward", "block": block, "tip": "origin"}}).encode()
            )
            assert isinstance(answer, frames.NextBlock) and answer.block is not None
            node_tip = frames.NodePoint(block["slot"], answer.block.id, block["height"] + to_tip)
            packed.append(packed_block.pack(effects.of_block(answer.block), node_tip, self._network))
        resolver = await new_resolver(self._db, self._network)
        first_seen = await resolver.look_up(self._db, [each.lookups for each in packed])
        begun = staking.epochs_begun(tip, packed[0].point, self._network)
        era = "byron" if present is None else present.era
        built = await rows.build(packed, first_seen, begun, era, resolver, _RULES)
        if self.bulk:
            await forward.stage(self._db, built.rows, node_tip)
        else:
            await forward.append(self._db, built.rows, await AssetStates().entries_of(self._db, built.rows), node_tip)
        return packed[-1].point.block_hash.hex()

    async def back_to(self, slot_no: int) -> None:
        """Roll back to the block at a slot."""
        point = await position.last_at_or_before(self._db, slot_no)
        assert point is not None, f"no block at slot {slot_no}"
        assert point.slot_no == slot_no, f"no block at slot {slot_no}"
        await backward.rollback(self._db, self._network, point)

    async def finalize(self) -> None:
        """End bulk."""
        await finish_bulk.finalize(self._db, 0)
        self.bulk = False
