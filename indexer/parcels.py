"""A block on its way from the node to its rows: what it did as bytes, and beside them what it names.

Thousands of transactions wait in a batch. As objects they are far more than a processor's cache holds, and to read them
again would take longer than all that is done with them: so they wait as bytes, a tenth of the size, and each block is
unpacked right where its rows are made (docs/decisions/0015).
"""

import msgspec

from indexer import frames, pools
from indexer.effects import Effects, described, reference_tokens
from indexer.ogmios import Forward
from shared import packed
from shared.ledger import Point
from shared.network import Network
from shared.packed import Assets, OutputKey


class Payment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An output. Address and assets are given by their places in Names, with quantities; `reference_tokens` is how many
    of the assets are any (CIP-68); and it is what stands from `begin` to `end` in its transaction's packed outputs.
    """

    address: int
    lovelace: int
    assets: dict[int, int]
    reference_tokens: int
    begin: int
    end: int


class Transaction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a transaction did: effects.Effects, of which all that a row holds is packed already.

    Assets are given by their places in Names. `named` are those that it mints and that its metadata describes (CIP-25).
    `reference_outputs` has the asset, the output's index, and the hash of the datum or the datum, for each reference
    token.
    """

    tx_hash: bytes
    inputs: list[OutputKey]
    first_index: int
    payments: list[Payment]
    mint: dict[int, int]
    named: list[int]
    fee: int | None
    size: int | None
    valid: bool
    withdrawals: dict[bytes, int]
    credits: dict[bytes, int]
    certificates: list[frames.Certificate]
    given: int
    reference_outputs: list[tuple[int, int, bytes | None, bytes | None]]
    datums: dict[bytes, bytes]
    outputs: bytes
    extra: bytes | None


class Names(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What must be known of the past before rows can be made, each once.

    `made` are the hashes of the transactions, `spent` the outputs that others made; `assets` have policy id and name in
    one; `accounts` are reward accounts; `pools` hashes.
    """

    made: list[bytes]
    spent: list[OutputKey]
    addresses: list[bytes]
    assets: list[bytes]
    accounts: list[bytes]
    pools: list[bytes]


class Signs(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an operator may have to be told (`flags`).

    `sized` is whether transactions come with their size, `lossy` whether metadata come in a form without bytes; each
    None where no transaction shows it. `unknown_certificates` has a transaction hash for each kind that we don't know.
    """

    sized: bool | None
    lossy: bool | None
    unknown_certificates: dict[str, bytes]


class Parcel(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block as in effects.BlockEffects, and the node's tip when it came; `size` is how many groups `unpack` gives."""

    point: Point
    block_no: int
    ancestor: str
    ebb: bool
    pool: bytes | None
    tip: frames.NodePoint
    size: int
    names: Names
    signs: Signs
    packed: bytes

    def unpack(self) -> list[list[Transaction]]:
        """The transactions, one group for each as in effects.BlockEffects."""
        return _decode(self.packed)


def pack(forward: Forward, network: Network) -> Parcel:
    """A block as it came. Raises frames.Unreadable."""
    block = forward.block
    transactions = [tx for group in block.transactions for tx in group]
    made = {tx.tx_hash for tx in transactions}
    spent = [key for tx in transactions for key in tx.inputs]
    accounts, hashes = pools.named_by(block, network)
    addresses, assets = _Places(), _Places()
    done = [[_packed(tx, addresses, assets, block.point) for tx in group] for group in block.transactions]
    return Parcel(
        block.point,
        block.block_no,
        block.ancestor,
        block.ebb,
        block.pool,
        forward.tip,
        len(block.transactions),
        Names(
            made=list(made),
            spent=[key for key in spent if packed.output_of(key)[0] not in made],
            addresses=list(addresses),
            assets=list(assets),
            accounts=list(accounts),
            pools=list(hashes),
        ),
        _signs(transactions),
        _encode(done),
    )


class _Places(dict[bytes, int]):
    """The place of each byte string in the order in which they were first asked for."""

    def __missing__(self, key: bytes) -> int:
        place = self[key] = len(self)
        return place


def _packed(tx: Effects, addresses: _Places, assets: _Places, at: Point) -> msgspec.Raw:
    try:
        return msgspec.Raw(_encode(_fields(tx, addresses, assets)))
    except OverflowError as error:
        # No ledger has a number beyond 64 bits.
        where = f"block {at.block_hash.hex()} at slot {at.slot_no}: transaction {tx.tx_hash.hex()}"
        raise frames.Unreadable(f"{where}: {error}") from error


def _fields(tx: Effects, addresses: _Places, assets: _Places) -> tuple[object, ...]:
    """The fields of Transaction."""
    extra = tx.extra
    parts = [packed.pack_output(output) for output in tx.outputs]
    outputs = packed.pack_outputs(tx.first_index, parts)
    payments, end = [], len(outputs) - sum(map(len, parts))
    for output, part in zip(tx.outputs, parts, strict=True):
        begin, end = end, end + len(part)
        held = _by_place(output.assets, assets) if output.assets else output.assets
        payments.append([addresses[output.address], output.lovelace, held, 0, begin, end])
    for place in tx.reference_datums:
        payments[place][_TOKENS] = len(reference_tokens(tx.outputs[place].assets))
    return (
        tx.tx_hash,
        tx.inputs,
        tx.first_index,
        payments,
        _by_place(tx.mint, assets) if tx.mint else tx.mint,
        [assets[asset] for asset in described(tx)] if tx.mint else (),
        tx.fee,
        tx.size,
        extra.valid,
        extra.withdrawals,
        extra.credits,
        tx.certificates,
        tx.given,
        [
            (assets[token], tx.first_index + place, *datum)
            for place, datum in tx.reference_datums.items()
            for token in reference_tokens(tx.outputs[place].assets)
        ],
        tx.datums,
        outputs,
        packed.pack_extra(extra),
    )


def _by_place(bundle: Assets, places: _Places) -> dict[int, int]:
    return {
        places[policy_id + name]: quantity
        for policy_id, quantities in bundle.items()
        for name, quantity in quantities.items()
    }


def _signs(transactions: list[Effects]) -> Signs:
    sized, lossy, unknown = None, None, dict[str, bytes]()
    for tx in transactions:
        sized = tx.size is not None
        if tx.extra.metadata_json:
            lossy = lossy or not all(json.startswith(_DETAILED) for json in tx.extra.metadata_json.values())
        elif tx.extra.metadata_cbor:
            lossy = lossy or False
        for certificate in tx.certificates:
            if certificate.type not in pools.CERTIFICATES:
                unknown.setdefault(certificate.type, tx.tx_hash)
    return Signs(sized, lossy, unknown)


# The place of `reference_tokens` in Payment.
_TOKENS = Payment.__struct_fields__.index("reference_tokens")
# How metadata begin in the form in which Ogmios keeps bytes apart from text.
_DETAILED = (b'{"int"', b'{"string"', b'{"bytes"', b'{"list"', b'{"map"')
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[Transaction]]).decode
