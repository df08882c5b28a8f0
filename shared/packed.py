"""Inputs, outputs, what they carry, mints, extras and references of a transaction <-> the bytes in its row.

Each column is a version byte followed by MessagePack. One row per transaction is faster to copy, smaller to store and
cheaper to read than one row per input and output (docs/decisions/0002). Addresses and assets are row numbers, which
only the database of one network knows (docs/decisions/0026).
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from shared.ledger import SCRIPT_KEY_BYTES, AddressNo, AssetNo, LabelNo, ScriptKey, label_no_of

_VERSION = b"\x02"

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, AssertionError)
"""The errors that unpacking raises for bytes that can't be read."""

_ROW_NUMBER = msgspec.Meta(ge=0, lt=1 << 31)
_OUTPUT_INDEX = msgspec.Meta(ge=0, lt=1 << 16)
_INPUT_INDEX = msgspec.Meta(ge=0, lt=1 << 32)  # Byron's CDDL has 32 bits
_Label = Annotated[int, msgspec.Meta(ge=0)]  # MessagePack has no integer beyond 64 bits
_ScriptKey = Annotated[ScriptKey, msgspec.Meta(min_length=SCRIPT_KEY_BYTES, max_length=SCRIPT_KEY_BYTES)]
_NumberedAsset = Annotated[AssetNo, _ROW_NUMBER]
Quantities = dict[_NumberedAsset, int]
"""asset_no -> quantity."""
_HeldQuantities = dict[_NumberedAsset, Annotated[int, msgspec.Meta(ge=1)]]


OutputKey = bytes
"""Identifies an output: the first bytes of the packed input that spends it. The hash of its transaction begins at the
fourth byte, and its index follows the hash.
"""


class Output(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An output of a transaction: the number of its address, lovelace and native assets."""

    address_no: Annotated[AddressNo, _ROW_NUMBER]
    lovelace: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    quantities: _HeldQuantities = {}


class Attached(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The datum and the reference script of an output, by their hashes. `inline`: the output contains the datum itself,
    not only its hash.
    """

    output_index: Annotated[int, _OUTPUT_INDEX]
    datum_hash: bytes | None
    inline: bool
    script_hash: bytes | None


Referred = tuple[int | bytes, Annotated[int, _INPUT_INDEX]]
"""An output by the tx_id of its transaction, or by its hash if it precedes the first indexed block; and its index."""


class Returned(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A collateral return: its address, or the place of an output that pays the same address; and its lovelace."""

    address: Annotated[int, _OUTPUT_INDEX] | bytes
    lovelace: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class References(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The outputs that a transaction names without spending them, and its collateral return."""

    references: list[Referred] = []
    collaterals: list[Referred] = []
    returned: Returned | None = None


class Input(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An input of a transaction. `source` is the output it spends, None if it precedes the first indexed block."""

    tx_hash: bytes
    output_index: Annotated[int, _INPUT_INDEX]
    source: Output | None


# The names of the fields of Extra as they are packed. NOTE: names are stored in every row, so they are short.
_SHORT = {
    "withdrawals": "w",
    "metadata_cbor": "c",
    "metadata_json": "j",
    "invalid_before": "b",
    "invalid_hereafter": "h",
    "valid": "v",
    "credits": "p",
    "certificates": "t",
    "certificate_places": "i",
    "redeemers": "r",
    "spends": "s",
    "donation": "d",
    "instantaneous_rewards": "m",
}


Origin = Literal["verificationKey", "script"]
CREDENTIAL_ORIGINS: tuple[Origin, Origin] = ("verificationKey", "script")
FIXED_REPRESENTATIVES: dict[int, Literal["abstain", "noConfidence"]] = {2: "abstain", 3: "noConfidence"}
CERTIFICATES = (
    "stakeCredentialRegistration",
    "stakeCredentialDeregistration",
    "stakeDelegation",
    "stakePoolRegistration",
    "stakePoolRetirement",
    "genesisDelegation",
    "constitutionalCommitteeDelegation",
    "constitutionalCommitteeRetirement",
    "delegateRepresentativeRegistration",
    "delegateRepresentativeUpdate",
    "delegateRepresentativeRetirement",
)
"""All types of certificates of Ogmios 6 and 7. Rows contain their positions in this tuple: add new ones at the end."""

_SHORT_IN_CERTIFICATE = {
    "type_no": "t",
    "stake": "s",
    "pool_id": "p",
    "pool": "o",
    "retirement_epoch": "e",
    "deposit": "d",
    "representative": "r",
    "cold": "c",
    "hot": "h",
    "genesis": "g",
    "anchor": "a",
}


class Anchor(NamedTuple):
    """Where a document is, and the hash of its content."""

    url: str
    content_hash: bytes


class Certificate(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, rename=_SHORT_IN_CERTIFICATE.__getitem__):
    """A certificate, with the fields that its type has.

    `type_no` is its place in CERTIFICATES, or its name if it is not there. Credentials are as in the CDDL: a byte (0
    for a key, 1 for a script) and the hash (28 bytes). A representative may also be a byte of FIXED_REPRESENTATIVES.
    `cold` and `hot` are a committee member and its delegate, `genesis` a genesis key, its delegate and the delegate's
    VRF key.
    """

    type_no: Annotated[int, msgspec.Meta(ge=0, lt=len(CERTIFICATES))] | str
    stake: bytes | None = None
    pool_id: bytes | None = None
    pool: "PoolParameters | None" = None
    retirement_epoch: int | None = None
    deposit: int | None = None
    representative: bytes | None = None
    cold: bytes | None = None
    hot: bytes | None = None
    genesis: tuple[bytes, bytes, bytes] | None = None
    anchor: Anchor | None = None

    @property
    def type(self) -> str:
        """Ogmios' name of its type."""
        return CERTIFICATES[self.type_no] if isinstance(self.type_no, int) else self.type_no


POTS = ("reserves", "treasury")


class InstantaneousRewards(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A certificate that moves lovelace from a pot to accounts, by credential as in Certificate. An amount may be
    negative in Alonzo and Babbage. `place` is that among the certificates of the transaction's CBOR, `pot_no` that of
    the pot in POTS.
    """

    place: int
    pot_no: Annotated[int, msgspec.Meta(ge=0, lt=len(POTS))]
    amounts: dict[bytes, int]


class Extra(msgspec.Struct, frozen=True, omit_defaults=True, gc=False, rename=_SHORT.__getitem__):
    """Optional parts of a transaction: withdrawals, metadata, validity interval, failed scripts, credits, certificates,
    redeemers, donation, instantaneous rewards.

    Withdrawals and credits (Dijkstra's payments to reward accounts) map reward accounts (29 bytes) to lovelace.
    Metadata is keyed by label: CBOR bytes if the node sends them, else the node's JSON. `valid` is false if the
    transaction's scripts failed. `certificate_places` are those in the transaction's CBOR, None if unknown; it is empty
    if they are 0, 1, 2 and so on. `redeemers` are those that spend nothing, as the keys of their scripts, None if
    unknown; `spends` are the places among the inputs that have one. `donation` is the lovelace that goes to the
    treasury. `instantaneous_rewards` are None if the transaction has some and its CBOR is unknown.
    """

    withdrawals: dict[bytes, int] = {}
    metadata_cbor: dict[_Label, bytes] = {}
    metadata_json: dict[_Label, bytes] = {}
    invalid_before: int | None = None
    invalid_hereafter: int | None = None
    valid: bool = True
    credits: dict[bytes, int] = {}
    certificates: list[Certificate] = []
    certificate_places: list[int | None] = []
    redeemers: list[_ScriptKey | None] = []
    spends: list[Annotated[int, _INPUT_INDEX]] = []
    donation: int = 0
    instantaneous_rewards: list[InstantaneousRewards] | None = []

    @property
    def redeemer_count(self) -> int:
        """The number of its redeemers."""
        return len(self.redeemers) + len(self.spends)

    @property
    def label_nos(self) -> list[LabelNo]:
        """The numbers of the labels of its metadata, none if its scripts failed: the index lists it under each."""
        if not self.valid or not (self.metadata_cbor or self.metadata_json):
            return []
        return [label_no_of(label) for label in (*self.metadata_cbor, *self.metadata_json)]


class _StrictCertificate(Certificate, frozen=True, forbid_unknown_fields=True):
    """A certificate with only known fields, and with a known origin of its stake credential."""

    def __post_init__(self) -> None:
        if self.stake is not None and self.stake[:1] not in (b"\x00", b"\x01"):
            raise ValueError(f"a stake credential that begins with {self.stake[:1].hex()}, expected 00 or 01")


class _StrictExtra(Extra, frozen=True, forbid_unknown_fields=True):
    """Optional parts with only the fields of Extra."""

    certificates: list[_StrictCertificate] = []  # type: ignore[assignment] # mypy: lists are invariant

    def __post_init__(self) -> None:
        if self.certificate_places and len(self.certificate_places) != len(self.certificates):
            raise ValueError(f"{len(self.certificate_places)} places of {len(self.certificates)} certificates")


class Relay(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A relay in a pool's certificate: an IPv4 or IPv6 address, or a host name. A host name without a port names an SRV
    record.
    """

    port: int | None = None
    ipv4: str | None = None
    ipv6: str | None = None
    hostname: str | None = None


class PoolParameters(msgspec.Struct, frozen=True, gc=False):
    """The parameters in a pool registration.

    Pledge and cost are in lovelace; the margin is a ratio such as `1/100`. The reward account and the owners are reward
    accounts of 29 bytes (CIP-19).
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


class Paid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The beginning of an output."""

    address_no: AddressNo
    lovelace: int


class Spent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An input, with the lovelace of the output that it spends, but without its assets."""

    tx_hash: bytes
    output_index: int
    source: Paid | None


_encode = msgspec.msgpack.Encoder().encode
_index = msgspec.msgpack.Decoder(int)
_output = msgspec.msgpack.Decoder(Output)
_outputs = msgspec.msgpack.Decoder(tuple[Annotated[int, _OUTPUT_INDEX], list[Output]])
_payments = msgspec.msgpack.Decoder(tuple[int, list[Paid]])
_raw_outputs = msgspec.msgpack.Decoder(tuple[int, list[msgspec.Raw]])
_raw_inputs = msgspec.msgpack.Decoder(list[msgspec.Raw])
_input = msgspec.msgpack.Decoder(Input)
_spent = msgspec.msgpack.Decoder(list[Spent])
_inputs = msgspec.msgpack.Decoder(list[Input])
_attached = msgspec.msgpack.Decoder(list[Attached])
_mint = msgspec.msgpack.Decoder(Quantities)
_referred = msgspec.msgpack.Decoder(References)
_extra = msgspec.msgpack.Decoder(Extra)
_strict_extra = msgspec.msgpack.Decoder(_StrictExtra)
_pool_parameters = msgspec.msgpack.Decoder(PoolParameters)


def pack_output(address_no: AddressNo, lovelace: int, quantities: Quantities) -> bytes:
    """An output as bytes, for the row of the transaction that made it and for that of the one that spends it."""
    return _encode((address_no, lovelace, quantities) if quantities else (address_no, lovelace))


def pack_outputs(first_index: int, outputs: Sequence[bytes]) -> bytes:
    """The outputs column from packed outputs, which are its last bytes.

    `first_index` is 0, or, before a collateral return, the number of declared outputs.
    """
    return b"".join((_VERSION, _array(2), _encode(first_index), _array(len(outputs)), *outputs))


def unpack_outputs(data: bytes) -> tuple[int, list[Output]]:
    """The index of the first output, and the outputs."""
    return _outputs.decode(_body(data))


def unpack_output_at(data: bytes, index: int) -> Output | None:
    """The output with this index, the others of its transaction are not unpacked; None if there is none."""
    first, outputs = _raw_outputs.decode(_body(data))
    return _output.decode(outputs[index - first]) if 0 <= index - first < len(outputs) else None


def output_indexes(data: bytes) -> range:
    """The indexes of the outputs in an outputs column, which are not unpacked."""
    first, outputs = _raw_outputs.decode(_body(data))
    return range(first, first + len(outputs))


def lovelace_in(data: bytes) -> int:
    """The lovelace of all outputs in an outputs column, whose assets are not unpacked."""
    _, payments = _payments.decode(_body(data))
    return sum(payment.lovelace for payment in payments)


def addresses_in(data: bytes) -> list[AddressNo]:
    """The addresses of all outputs in an outputs column, whose assets are not unpacked."""
    _, payments = _payments.decode(_body(data))
    return [payment.address_no for payment in payments]


def unpack_output(data: bytes) -> Output:
    """An output from pack_output's bytes."""
    return _output.decode(data)


def pack_attached(attached: Sequence[Attached]) -> bytes | None:
    """What the outputs of a transaction carry besides value as bytes, or None if they carry nothing else."""
    return _VERSION + _encode(attached) if attached else None


def unpack_attached(data: bytes | None) -> dict[int, Attached]:
    """The datums and reference scripts of a transaction's outputs by output index; no bytes mean none."""
    return {} if data is None else {attached.output_index: attached for attached in _attached.decode(_body(data))}


def pack_referred(references: References) -> bytes | None:
    """What a transaction names without spending or making it as bytes, or None for nothing."""
    return None if references == _NO_REFERENCES else _VERSION + _encode(references)


def unpack_referred(data: bytes | None) -> References:
    """What a transaction names without spending or making it; no bytes mean nothing."""
    return _NO_REFERENCES if data is None else _referred.decode(_body(data))


def output_key(tx_hash: bytes, index: int) -> OutputKey:
    """The key of an output: the hash of its transaction (32 bytes) and its index there."""
    return _INPUT + tx_hash + _encode(index)


def tx_hash_of(key: OutputKey) -> bytes:
    """The transaction hash in a key."""
    return key[3:35]


def output_of(key: OutputKey) -> tuple[bytes, int]:
    """The transaction hash and the output index in a key."""
    return tx_hash_of(key), _index.decode(key[35:])


def pack_input(key: OutputKey, source: bytes | None) -> bytes:
    """An input as bytes: the key of the output that it spends, and the packed output itself, if known."""
    return key + (_NIL if source is None else source)


def pack_inputs(inputs: Sequence[bytes]) -> bytes:
    """The inputs column from packed inputs, in the transaction's order."""
    return b"".join((_VERSION, _array(len(inputs)), *inputs))


def unpack_inputs(data: bytes) -> list[Input]:
    """The inputs, each with the output that it spends."""
    return _inputs.decode(_body(data))


def each_input(data: bytes) -> Iterator[Input]:
    """The inputs one after the other, so that only one of them is unpacked at a time."""
    return map(_input.decode, _raw_inputs.decode(_body(data)))


def unpack_spent(data: bytes) -> list[Spent]:
    """The inputs without the assets of the outputs that they spend."""
    return _spent.decode(_body(data))


def pack_mint(quantities: Quantities) -> bytes | None:
    """The quantities that a transaction mints (above 0) and burns (below 0) as bytes, or None for nothing."""
    return _VERSION + _encode(quantities) if quantities else None


def unpack_mint(data: bytes | None) -> Quantities:
    """The quantities that a transaction mints and burns; no bytes mean none."""
    quantities = {} if data is None else _mint.decode(_body(data))
    assert 0 not in quantities.values(), "a quantity of 0"
    return quantities


def pack_extra(extra: Extra) -> bytes | None:
    """The extras as bytes, or None if the transaction has none."""
    return None if extra == _NOTHING else _VERSION + _encode(extra)


def may_have_withdrawals(extra: bytes | None) -> bool:
    """Whether packed extras may have withdrawals: if False, they need not be unpacked for them."""
    return extra is not None and _WITHDRAWALS_KEY in extra


def unpack_extra(data: bytes | None) -> Extra:
    """The extras in a row; no bytes mean no extras."""
    return _NOTHING if data is None else _extra.decode(_body(data))


def unpack_extra_strictly(data: bytes | None) -> Extra:
    """The extras in a row, for verify: raises msgspec.ValidationError if a field has a name that is unknown here."""
    return _NOTHING if data is None else _strict_extra.decode(_body(data))


def pack_pool_parameters(parameters: PoolParameters) -> bytes:
    """The parameters of a pool as bytes."""
    return _VERSION + _encode(parameters)


def unpack_pool_parameters(data: bytes) -> PoolParameters:
    """The pool parameters in a row."""
    return _pool_parameters.decode(_body(data))


_NOTHING, _NO_REFERENCES = Extra(), References()
_WITHDRAWALS_KEY = _encode(_SHORT["withdrawals"])
_NIL = _encode(None)
# The start of an input: an array of three elements, the first of them 32 bytes, the hash.
_INPUT = b"\x93\xc4\x20"


def _array(length: int) -> bytes:
    """The first bytes of an array (MessagePack specification, "array format family")."""
    if length < 1 << 4:
        return bytes((0x90 | length,))
    return b"\xdc" + length.to_bytes(2) if length < 1 << 16 else b"\xdd" + length.to_bytes(4)


def _body(data: bytes) -> bytes:
    assert data[:1] == _VERSION, f"unknown version of packed bytes: {data[:1].hex()}"
    return data[1:]
