"""A chain whose answers are as long as valid transactions can make them, and an address with ordinary ones."""

import asyncpg

from shared import address, packed
from shared.ledger import AddressNo, AssetNo, tx_id_of

INPUTS, ASSETS = 243, 880
"""A transaction of 16 KiB spends at most about so many outputs, and a value of 5,000 bytes has so many assets."""

LONG = address.show(b"\x60" + b"\1" * 28)
"""The address of the long transactions, and of outputs with all the assets that fit."""
ORDINARY = address.show(b"\x60" + b"\2" * 28)

SETS = 40
"""Of ASSETS assets each: an API process keeps the names of fewer."""

_ORDINARY_TRANSACTIONS = 200
HOLDING_TRANSACTIONS, _OUTPUTS = 170, 3
_POLICY = b"\3" * 28


def hash_at(number: int) -> bytes:
    """The hash of the transaction with this number: first the long ones, then the others."""
    return number.to_bytes(32)


async def fill(db: asyncpg.Connection, long_ones: int, inputs: int = INPUTS, assets: int = SETS * ASSETS) -> None:
    """Write a chain of `long_ones` long transactions on a connection to its network. ASSETS divides `assets`."""
    value = [
        packed.pack_output(AddressNo(1), 2_000_000, {AssetNo(number * ASSETS + place): 1 for place in range(ASSETS)})
        for number in range(assets // ASSETS)
    ]
    paid = packed.pack_outputs(0, [packed.pack_output(AddressNo(1), 5_000_000, {})])
    spent = [
        packed.pack_input(packed.output_key(hash_at(place), 0), value[place % len(value)]) for place in range(inputs)
    ]
    held = packed.pack_outputs(0, value[:_OUTPUTS])
    plain = packed.pack_output(AddressNo(2), 2_000_000, {AssetNo(7): 3})
    ordinary = packed.pack_inputs([packed.pack_input(packed.output_key(hash_at(place), 0), plain) for place in (1, 2)])
    rows = [(packed.pack_inputs(spent), paid, 1)] * long_ones
    rows += [(packed.pack_inputs([]), held, 1)] * HOLDING_TRANSACTIONS
    rows += [(ordinary, packed.pack_outputs(0, [plain, plain]), 2)] * _ORDINARY_TRANSACTIONS
    await db.execute("INSERT INTO policy (policy_no, policy_id) VALUES (1, $1)", _POLICY)
    await db.execute(
        "INSERT INTO asset (asset_no, policy_no, fingerprint, name, supply, first_tx_id)"
        " SELECT n, 1, n, int4send(n), 1, 0 FROM generate_series(0, $1::integer - 1) AS n",
        assets,
    )
    await db.executemany(
        "INSERT INTO address (address_no, raw) VALUES ($1, $2)",
        [(1, b"\x60" + b"\1" * 28), (2, b"\x60" + b"\2" * 28)],
    )
    await db.execute("INSERT INTO pool (pool_no, pool_id) VALUES (1, $1)", b"\5" * 28)
    await db.execute(
        "INSERT INTO block (slot_no, block_no, tx_count, pool_no, size, hash) VALUES (1, 1, $1, 1, 1, $2)",
        len(rows),
        b"\4" * 32,
    )
    await db.executemany(
        "INSERT INTO tx (tx_id, fee, size, hash, outputs, inputs) VALUES ($1, 200000, 16000, $2, $3, $4)",
        [(tx_id_of(1, n), hash_at(n), outputs, inputs) for n, (inputs, outputs, _) in enumerate(rows)],
    )
    await db.executemany(
        "INSERT INTO address_tx (address_no, chunk, tx_ids)"
        " SELECT $1::integer, chunk, string_agg(int8send(tx_id), '' ORDER BY tx_id)"
        " FROM (SELECT (row_number() OVER (ORDER BY tx_id) - 1) >> 6 AS chunk, tx_id"
        " FROM unnest($2::bigint[]) AS tx_id) AS numbered GROUP BY chunk",
        [(owner, [tx_id_of(1, n) for n, row in enumerate(rows) if row[2] == owner]) for owner in (1, 2)],
    )
    await db.executemany(
        "INSERT INTO utxo (tx_id, lovelace, address_no, output_index) VALUES ($1, 2000000, 1, $2)",
        [(tx_id_of(1, long_ones + n), index) for n in range(HOLDING_TRANSACTIONS) for index in range(_OUTPUTS)],
    )
    await db.execute(
        "INSERT INTO tip (slot_no, block_no, block_hash, first_block_no, tx_count, phase)"
        " VALUES (1, 1, $1, 0, $2, 'live')",
        b"\4" * 32,
        len(rows),
    )
