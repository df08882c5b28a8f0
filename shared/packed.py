"""Inputs, outputs and extras of a transaction <-> the bytes of its row.

Each column begins with a version byte, then MessagePack: one row per transaction is copied faster, stored smaller and
read with less work than one row per input and output (docs/decisions/0002).
"""

from collections.abc import Sequence

import msgspec

_VERSION = b"\x01"

Assets = dict[bytes, dict[bytes, int]]
"""Policy id (28 bytes) -> asset name (0 to 32 bytes) -> quantity."""


OutputKey = bytes
"""What stands for an output: how a packed input that spends it begins. It holds the transaction's hash from its fourth
byte on, and the index behind that.
"""


class Output(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a transaction paid: raw address bytes, lovelace and native assets."""

    address: bytes
    lovelace: int
    assets: Assets = {}


class Input(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a transaction spent; `source` is None where it lies before the first indexed block."""

    tx_hash: bytes
    output_index: int
    source: Output | None


class Extra(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The rest of a transaction, for those that have any of it.

    Withdrawals, and credits (Dijkstra's payments to reward accounts), are lovelace by reward account (29 bytes).
    Metadata is kept by label, as the CBOR bytes where the node sends them, as the node's JSON otherwise. A transaction
    with `valid` false failed its scripts.
    """

    mint: Assets = {}
    withdrawals: dict[bytes, int] = {}
    metadata_cbor: dict[int, bytes] = {}
    metadata_json: dict[int, bytes] = {}
    invalid_before: int | None = None
    invalid_hereafter: int | None = None
    valid: bool = True
    credits: dict[bytes, int] = {}


class Relay(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How to reach a pool, as its certificate says: an address of either kind, or a host name (of a service record if
    there is no port).
    """

    port: int | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    hostname: str | None = None


class PoolParameters(msgspec.Struct, frozen=True, gc=False):
    """What a registration says of a pool.

    Pledge and cost are lovelace, the margin a ratio like `1/100`; reward account and owners have the 29 bytes of
    reward accounts (CIP-19).
    """

    vrf_key_hash: bytes
    pledge: int
    fixed_cost: int
    margin: str
    reward_account: bytes | None = None
    owners: list[bytes] = []
    relays: list[Relay] = []
    metadata_url: str | None = None
    metadata_hash: bytes | None = None


_encode = msgspec.msgpack.Encoder().encode
_index = msgspec.msgpack.Decoder(int)
_outputs = msgspec.msgpack.Decoder(tuple[int, list[Output]])
_inputs = msgspec.msgpack.Decoder(list[Input])
_extra = msgspec.msgpack.Decoder(Extra)
_pool_parameters = msgspec.msgpack.Decoder(PoolParameters)


def pack_output(output: Output) -> bytes:
    """An output as it stands in its own transaction's row, and in that of the transaction that spends it."""
    return _encode(output)


def pack_outputs(first_index: int, outputs: Sequence[bytes]) -> bytes:
    """Packed outputs as bytes; `first_index` is 0, or the number of declared outputs before a collateral return.

    The last bytes are those of the outputs.
    """
    return b"".join((_VERSION, _array(2), _encode(first_index), _array(len(outputs)), *outputs))


def unpack_outputs(data: bytes) -> tuple[int, list[Output]]:
    """The index of the first output, and the outputs."""
    return _outputs.decode(_body(data))


def output_key(tx_hash: bytes, index: int) -> OutputKey:
    """The key of an output, by its transaction's hash (32 bytes) and its index there."""
    return _INPUT + tx_hash + _encode(index)


def output_of(key: OutputKey) -> tuple[bytes, int]:
    """The transaction's hash and the index of the output with this key."""
    return key[3:35], _index.decode(key[35:])


def pack_input(key: OutputKey, source: bytes | None) -> bytes:
    """An input by the key of the output that it spends, and that output, packed, if it is known."""
    return key + (_NIL if source is None else source)


def pack_inputs(inputs: Sequence[bytes]) -> bytes:
    """Packed inputs as bytes, in the transaction's order."""
    return b"".join((_VERSION, _array(len(inputs)), *inputs))


def unpack_inputs(data: bytes) -> list[Input]:
    """The inputs, each with the output that it spent."""
    return _inputs.decode(_body(data))


def pack_extra(extra: Extra) -> bytes | None:
    """The extras as bytes, None where a transaction has none."""
    return None if extra == _NOTHING else _VERSION + _encode(extra)


def unpack_extra(data: bytes | None) -> Extra:
    """The extras of a row."""
    return _NOTHING if data is None else _extra.decode(_body(data))


def mints(extra: bytes) -> bool:
    """Whether the packed extras of a transaction have a mint, which then comes first: without unpacking them."""
    return extra[2:7] == _MINT


def pack_pool_parameters(parameters: PoolParameters) -> bytes:
    """A pool's parameters as bytes."""
    return _VERSION + _encode(parameters)


def unpack_pool_parameters(data: bytes) -> PoolParameters:
    """The parameters of a row."""
    return _pool_parameters.decode(_body(data))


_NOTHING = Extra()
_MINT = _encode("mint")


_NIL = _encode(None)
# An array of three, of which the first is 32 bytes: the head of an input, and of the hash in it.
_INPUT = b"\x93\xc4\x20"


def _array(length: int) -> bytes:
    """The head of an array (MessagePack specification, "array format family")."""
    if length < 1 << 4:
        return bytes((0x90 | length,))
    return b"\xdc" + length.to_bytes(2) if length < 1 << 16 else b"\xdd" + length.to_bytes(4)


def _body(data: bytes) -> memoryview:
    assert data[:1] == _VERSION, f"unknown version of packed bytes: {data[:1].hex()}"
    return memoryview(data)[1:]
