"""Chains written row by row, as small as a test needs them."""

import hashlib
from collections import Counter

import asyncpg
import msgspec

from shared import packed
from shared.ledger import tx_id


class Tx(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction; its hash is that of its name."""

    name: str
    inputs: list[packed.Input] = []
    outputs: list[packed.Output] = []
    first_index: int = 0
    fee: int | None = 170_000
    size: int | None = 300
    extra: packed.Extra = packed.Extra()

    @property
    def hash(self) -> bytes:
        return hash_of(self.name)


def hash_of(name: str) -> bytes:
    """32 bytes that stand for a thing."""
    return hashlib.blake2b(name.encode(), digest_size=32).digest()


def _packed_input(spent: packed.Input) -> bytes:
    source = None if spent.source is None else packed.pack_output(spent.source)
    return packed.pack_input(packed.output_key(spent.tx_hash, spent.output_index), source)


class Chain:
    """Appends blocks to the tables of a connection's network, and keeps what their histories need to know."""

    def __init__(self, db: asyncpg.Connection) -> None:
        self._db = db
        self._blocks = 0
        self._address_ids: dict[bytes, int] = {}
        self._lengths: Counter[int] = Counter()

    async def append(self, slot_no: int, *txs: Tx) -> str:
        """Write a block and move the tip to it; returns the block's hash."""
        block_hash = hash_of(f"block {slot_no}")
        await self._insert("block", slot_no=slot_no, block_no=self._blocks, tx_count=len(txs), hash=block_hash)
        for index, tx in enumerate(txs):
            await self._insert_tx(tx_id(slot_no, index), tx)
        await self._db.execute("DELETE FROM tip")
        await self._insert(
            "tip",
            slot_no=slot_no,
            block_no=self._blocks,
            block_hash=block_hash,
            first_block_no=0,
            tx_count=0,
            phase="live",
        )
        self._blocks += 1
        return block_hash.hex()

    async def set_phase(self, phase: str) -> None:
        """As if the indexer were in bulk, or live again."""
        await self._db.execute("UPDATE tip SET phase = $1", phase)

    async def _insert_tx(self, key: int, tx: Tx) -> None:
        await self._insert(
            "tx",
            tx_id=key,
            fee=tx.fee,
            size=tx.size,
            hash=tx.hash,
            outputs=packed.pack_outputs(tx.first_index, [packed.pack_output(output) for output in tx.outputs]),
            inputs=packed.pack_inputs([_packed_input(spent) for spent in tx.inputs]),
            extra=packed.pack_extra(tx.extra),
        )
        spent = [spent.source.address for spent in tx.inputs if spent.source is not None]
        for address in dict.fromkeys([*spent, *(output.address for output in tx.outputs)]):
            if address not in self._address_ids:
                self._address_ids[address] = len(self._address_ids)
                await self._insert("address", address_id=self._address_ids[address], raw=address)
            address_id = self._address_ids[address]
            await self._insert("address_tx", address_id=address_id, seq=self._lengths[address_id], tx_id=key)
            self._lengths[address_id] += 1

    async def _insert(self, table: str, **values: object) -> None:
        places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
        statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"  # noqa: S608
        await self._db.execute(statement, *values.values())
