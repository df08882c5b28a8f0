"""Data of outputs that this API's answers lack: the blocks and places of their transactions, and their spenders."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from api.blockfrost import amounts
from api.blockfrost.amounts import Amount
from api.chain.utxos import UnspentOutput
from api.repeats import kept
from shared import packed, sql
from shared.ledger import AddressNo, slot_of
from shared.network import Network
from shared.sql import Connection

_OF_BYRON = {
    "mainnet": "5f20df933584822601f9e3f8c024eb5eb252fe8cefb24d1317dc3d432e940ebb",
    "preprod": "d4b8de7a11d929a323373cbab6c1a9bdc931beffff11db111cf9d57356ee1937",
    "preview": "83de1d7302569ad56cf9139a41e2e11346d4cb4a31c00142557b6ab3fa550761",
}
_TIP = -1
_OF_SHELLEY = b"Shelley Genesis Block Hash ".ljust(32, b"\0").hex()


class Unspent(msgspec.Struct, frozen=True):
    """An unspent output. `tx_index` repeats `output_index`.

    Outputs of the genesis are in a block that Blockfrost has made up. Its hash is that of Byron's configuration or, for
    funds of Shelley's, a text.
    """

    address: str
    tx_hash: str
    tx_index: int
    output_index: int
    amount: list[Amount]
    block: str
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None


class BlockAt(msgspec.Struct, frozen=True):
    """A block by its slot."""

    slot_no: int
    block_no: int
    hash: bytes


class Placed(msgspec.Struct, frozen=True):
    """A transaction's number."""

    hash: bytes
    tx_id: int


class Named(msgspec.Struct, frozen=True):
    """An output that a transaction names, and what the outputs of its transaction carry, packed."""

    output: packed.Input
    attached: bytes | None = None


class _Made(msgspec.Struct, frozen=True):
    tx_id: int
    hash: bytes
    outputs: bytes
    attached: bytes | None


class _GenesisOutput(msgspec.Struct, frozen=True):
    tx_id: int
    tx_hash: bytes
    address_no: AddressNo
    lovelace: int


class _Paid(msgspec.Struct, frozen=True):
    hash: bytes
    outputs: bytes


class _Neighbour(msgspec.Struct, frozen=True):
    hash: bytes
    output_index: int | None  # that it spends; null for a transaction whose outputs are spent, _TIP for the last block
    attached: bytes | None


_sql = sql.beside(__file__)
_blocks_at = _sql.query("blocks_at", BlockAt)
_placed = _sql.query("placed", Placed)
_made = _sql.query("made", _Made)
_of_genesis = _sql.query("of_genesis", _GenesisOutput)
_paid = _sql.query("paid", _Paid)
_before_and_after = _sql.query("before_and_after", _Neighbour)


async def unspent(db: Connection, unspent_outputs: list[UnspentOutput], network: Network) -> list[Unspent]:
    """Unspent outputs as Blockfrost shows them, in the snapshot in which they were found."""
    blocks = await blocks_at(db, [output.slot_no for output in unspent_outputs if output.slot_no is not None])
    return [
        Unspent(
            address=output.address,
            tx_hash=output.tx_hash,
            tx_index=output.output_index,
            output_index=output.output_index,
            amount=amounts.from_value(output.value),
            block=_genesis_block(output.address, network)
            if output.slot_no is None
            else blocks[output.slot_no].hash.hex(),
            data_hash=output.data_hash,
            inline_datum=output.inline_datum,
            reference_script_hash=output.reference_script_hash,
        )
        for output in unspent_outputs
    ]


async def blocks_at(db: Connection, slots: Iterable[int]) -> Mapping[int, BlockAt]:
    """The blocks at slots."""
    return {row.slot_no: row for row in await _blocks_at.all(db, list(set(slots)))}


async def placed(db: Connection, hashes: Iterable[str]) -> Mapping[str, Placed]:
    """Transactions by hash; unknown ones are omitted."""
    wanted = [bytes.fromhex(digits) for digits in set(hashes)]
    return {row.hash.hex(): row for row in await _placed.all(db, wanted)}


async def named(db: Connection, wanted: Sequence[packed.Referred]) -> list[Named]:
    """The outputs that a transaction names without spending them. One from before the index has no source."""
    tx_ids = {tx_id for tx_id, _ in wanted if isinstance(tx_id, int)}
    first = {tx_id for tx_id in tx_ids if tx_id < 0}
    made = {row.tx_id: row for row in await _made.all(db, list(tx_ids - first))} if tx_ids > first else {}
    genesis = {row.tx_id: row for row in await _of_genesis.all(db, list(first))} if first else {}
    found = []
    for name, index in wanted:
        if isinstance(name, bytes):
            found.append(Named(packed.Input(name, index, None)))
        elif name in first:
            output = packed.Output(genesis[name].address_no, genesis[name].lovelace)
            found.append(Named(packed.Input(genesis[name].tx_hash, index, output)))
        else:
            row = made[name]
            source = packed.unpack_output_at(row.outputs, index)
            found.append(Named(packed.Input(row.hash, index, source), row.attached))
    return found


async def paid(db: Connection, hashes: Iterable[str]) -> Mapping[str, int]:
    """The lovelace in the outputs of transactions, by hash."""
    rows = await _paid.all(db, [bytes.fromhex(digits) for digits in set(hashes)])
    return {row.hash.hex(): sum(output.lovelace for output in packed.unpack_outputs(row.outputs)[1]) for row in rows}


async def before_and_after(
    db: Connection, tx_id: int, spent: Iterable[bytes], tip_hash: bytes
) -> tuple[Mapping[bytes, bytes], Mapping[int, str]]:
    """What the outputs of the transactions `spent` carry, packed, by hash, if anything; and the hash of the transaction
    that spent each spent output of transaction `tx_id`, by index.

    `tip_hash` is the last block as of the statements so far. Raises Moved if it is another now.
    """
    carried, spenders = dict[bytes, bytes](), dict[int, str]()
    for row in await _before_and_after.all(db, slot_of(tx_id), tx_id, list(set(spent))):
        if row.output_index == _TIP:
            kept.require_same(db, row.hash == tip_hash)
        elif row.output_index is not None:
            spenders[row.output_index] = row.hash.hex()
        elif row.attached is not None:
            carried[row.hash] = row.attached
    return carried, spenders


def _genesis_block(address: str, network: Network) -> str:
    """The block of an output of the genesis, as cardano-db-sync stores it."""
    return _OF_SHELLEY if address.startswith("addr") else _OF_BYRON[network.name]
