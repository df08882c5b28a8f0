"""Chains written row by row, as small as a test needs them."""

import hashlib
from collections import Counter

import asyncpg
import msgspec

from indexer.blocks.effects import Assets, PaidOutput
from shared import packed
from shared.ledger import AddressNo, AssetNo, fingerprint_digest, fingerprint_number, tx_id_of

FOLLOWED = "INSERT INTO partner.event_mark (network_id, step, slot_no, block_no, block_hash) VALUES (1, 1, 10, 0, '')"
"""Preview is followed for events, as far as callers can see."""


class Input(msgspec.Struct, frozen=True):
    """An input, with the output that it spends as the node reports it."""

    tx_hash: bytes
    output_index: int
    source: PaidOutput | None


class Tx(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction; its hash is that of its name."""

    name: str
    inputs: list[Input] = []
    outputs: list[PaidOutput] = []
    first_index: int = 0
    fee: int | None = 170_000
    size: int | None = 300
    mint: Assets = {}
    extra: packed.Extra = packed.Extra()

    @property
    def hash(self) -> bytes:
        return hash_of(self.name)


def hash_of(name: str) -> bytes:
    """A made-up hash of a name, 32 bytes."""
    return hashlib.blake2b(name.encode(), digest_size=32).digest()


class Chain:
    """Appends blocks to the tables of a connection's network, and counts the rows of their histories."""

    def __init__(self, db: asyncpg.Connection) -> None:
        self._db = db
        self._blocks = 0
        self._address_nos: dict[bytes, AddressNo] = {}
        self._policy_nos: dict[bytes, int] = {}
        self._asset_nos: dict[tuple[bytes, bytes], AssetNo] = {}
        self._lengths: Counter[int] = Counter()

    async def append(self, slot_no: int, *txs: Tx) -> str:
        """Write a block and move the tip to it; returns the block's hash."""
        block_hash = hash_of(f"block {slot_no}")
        issuer = "INSERT INTO pool (pool_no, pool_id) VALUES (1000, $1) ON CONFLICT (pool_no) DO NOTHING"
        await self._db.execute(issuer, bytes(28))
        counts = {"block_no": self._blocks, "tx_count": len(txs), "size": 1_000}
        await self._insert("block", slot_no=slot_no, pool_no=1000, hash=block_hash, **counts)
        for index, tx in enumerate(txs):
            await self._insert_tx(tx_id_of(slot_no, index), tx)
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
        """Put the index into bulk, or make it live again."""
        await self._db.execute("UPDATE tip SET phase = $1", phase)

    async def _insert_tx(self, key: int, tx: Tx) -> None:
        await self._insert(
            "tx",
            tx_id=key,
            fee=tx.fee,
            size=tx.size,
            hash=tx.hash,
            outputs=packed.pack_outputs(tx.first_index, [await self._packed(output) for output in tx.outputs]),
            inputs=packed.pack_inputs([await self._packed_input(spent) for spent in tx.inputs]),
            mint=packed.pack_mint(await self._numbered(tx.mint)),
            extra=packed.pack_extra(tx.extra),
        )
        spent = [spent.source.address for spent in tx.inputs if spent.source is not None]
        for address in dict.fromkeys([*spent, *(output.address for output in tx.outputs)]):
            address_no = self._address_nos[address]
            await self._db.execute(
                "INSERT INTO address_tx AS present VALUES ($1, $2, int8send($3))"
                " ON CONFLICT (address_no, chunk) DO UPDATE SET tx_ids = present.tx_ids || excluded.tx_ids",
                address_no,
                self._lengths[address_no] >> 6,
                key,
            )
            self._lengths[address_no] += 1

    async def _packed_input(self, spent: Input) -> bytes:
        source = None if spent.source is None else await self._packed(spent.source)
        return packed.pack_input(packed.output_key(spent.tx_hash, spent.output_index), source)

    async def _packed(self, output: PaidOutput) -> bytes:
        if output.address not in self._address_nos:
            self._address_nos[output.address] = address_no = AddressNo(len(self._address_nos))
            await self._insert("address", address_no=address_no, raw=output.address)
        quantities = await self._numbered(output.assets)
        return packed.pack_output(self._address_nos[output.address], output.lovelace, quantities)

    async def _numbered(self, assets: Assets) -> packed.Quantities:
        quantities: packed.Quantities = {}
        for policy_id, names in assets.items():
            if policy_id not in self._policy_nos:
                self._policy_nos[policy_id] = policy_no = len(self._policy_nos)
                await self._insert("policy", policy_no=policy_no, policy_id=policy_id)
            for name, quantity in names.items():
                if (policy_id, name) not in self._asset_nos:
                    self._asset_nos[policy_id, name] = asset_no = AssetNo(len(self._asset_nos))
                    policy_no = self._policy_nos[policy_id]
                    number = fingerprint_number(fingerprint_digest(policy_id + name))
                    await self._insert("asset", asset_no=asset_no, policy_no=policy_no, fingerprint=number, name=name)
                quantities[self._asset_nos[policy_id, name]] = quantity
        return quantities

    async def _insert(self, table: str, **values: object) -> None:
        places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
        statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"  # noqa: S608
        await self._db.execute(statement, *values.values())
