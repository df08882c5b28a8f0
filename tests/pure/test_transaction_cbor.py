"""What is read of a transaction before the node gets it, against real blocks and the rules of the ledger.

Ogmios' JSON of each recorded transaction says what was to be read, and the header of its block how large it is.
"""

import lzma
import random
import zlib
from hashlib import blake2b
from typing import Any

import cbor2
import msgspec
import pytest
from cbor2 import CBORTag
from hypothesis import assume, given
from hypothesis import strategies as st

from api.chain import transaction_cbor
from api.chain.transaction_cbor import MAX_BYTES, contents, read
from api.errors import Refusal
from shared.cbor import Reader
from shared.network import MAINNET, PREPROD, PREVIEW, Network
from tests.chain.harness import recorded
from tests.chain.recordings import FILES, File
from tests.pure.cbor_items import items

NETWORKS = {network.name: network for network in (MAINNET, PREVIEW, PREPROD)}
SET = 258
KEY, SIGNATURE, HASH = bytes(32), bytes(64), bytes(28)
FAUCET, ON_MAINNET = b"\x60" + HASH, b"\x61" + HASH
STAKE, MAINNET_STAKE = b"\xe0" + HASH, b"\xe1" + HASH
INPUT = [KEY, 0]
BODY: dict[int, Any] = {0: [INPUT], 1: [[FAUCET, 5]], 2: 0}
SIGNED: dict[int, Any] = {0: [[KEY, SIGNATURE]]}
ANCHOR = ["https://example.org", KEY]
SHAPE = (
    "a transaction must be an array of body, witnesses and auxiliary data, with or without the validity flag before the"
    " last"
)


def code_of(sent: bytes, network: Network = PREVIEW) -> str:
    """The code with which it is refused, or "" if it goes to the node."""
    try:
        read(sent, network)
    except Refusal as refused:
        return refused.code
    return ""


def message_of(sent: bytes) -> str:
    with pytest.raises(Refusal) as refused:
        read(sent, PREVIEW)
    return refused.value.message


def mutated(of: tuple[bytes, int]) -> bytes:
    """A transaction with a changed byte, and one that is cut off or doubled."""
    sent, seed = bytearray(of[0][:600]), random.Random(of[1])
    sent[seed.randrange(len(sent))] = seed.randrange(256)
    at = seed.randrange(len(sent))
    return bytes(sent[:at] + seed.choice((b"", sent[at : at + 1] * 2)) + sent[at + 1 :])


def written(body: Any = BODY, witnesses: Any = SIGNED, *rest: Any) -> bytes:
    return cbor2.dumps([body, witnesses, *(rest or (True, None))])


class Transaction(msgspec.Struct):
    """What Ogmios says of a transaction in a block."""

    id: str
    spends: str = "inputs"
    validityInterval: dict[str, int] = {}  # noqa: N815 - Ogmios' names
    cbor: str | None = None

    @property
    def sent(self) -> bytes:
        assert self.cbor is not None
        return bytes.fromhex(self.cbor)


class Block(msgspec.Struct):
    """A recorded block. Boundary blocks of Byron have neither slot nor size."""

    era: str
    slot: int = 0
    size: dict[str, int] = {}
    transactions: list[Transaction] = []

    @property
    def size_of_body(self) -> int:
        """The size that follows from the transactions (CDDL `block`): that of their bodies, witnesses and auxiliary
        data and, since Alonzo, of the indexes of invalid ones.
        """
        txs = self.transactions
        with_auxiliary = [index for index, tx in enumerate(txs) if parts_of(tx.sent)[-1] != b"\xf6"]
        size = sum(contents(tx.sent).size_bytes - 1 for tx in txs) - (len(txs) - len(with_auxiliary))
        size += 2 * around(len(txs)) + around(len(with_auxiliary)) + sum(map(integer, with_auxiliary))
        if self.era not in ("shelley", "allegra", "mary"):
            invalid = [index for index, tx in enumerate(txs) if tx.spends == "collaterals"]
            size += around(len(invalid)) + sum(map(integer, invalid))
        return size


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_every_recorded_transaction_goes_to_the_node(file: File) -> None:
    """As it was when its block was made, but those of Byron, which nodes have not accepted since Shelley."""
    network, blocks = NETWORKS[file.network], msgspec.json.Decoder(Block)
    with lzma.open(recorded(file.name)) as lines:
        for block in map(blocks.decode, lines):
            txs = [tx for tx in block.transactions if tx.cbor is not None]
            if block.era == "byron":
                assert {code_of(tx.sent, network) for tx in txs} <= {"invalid_transaction"}
                continue
            for tx in txs:
                found = read(tx.sent, network)
                assert found.tx_hash.hex() == tx.id
                assert found.signed, tx.id
                assert found.invalid_hereafter == tx.validityInterval.get("invalidAfter"), tx.id
                assert found.invalid_hereafter is None or found.invalid_hereafter > block.slot, tx.id
            if len(txs) == len(block.transactions):  # all have their CBOR
                assert block.size_of_body == block.size["bytes"], block.slot


def parts_of(sent: bytes) -> list[bytes]:
    reader = Reader(sent)
    return [reader.skip() for _ in reader.elements("a transaction")]


def around(count: int) -> int:
    """The bytes around the elements of a list or map of a block: nodes write more than 23 with an indefinite length."""
    return 1 if count < 24 else 2


def integer(number: int) -> int:
    return len(cbor2.dumps(number))


def proposal(action: Any) -> dict[int, Any]:
    return BODY | {20: CBORTag(SET, [[100_000_000_000, STAKE, action, ANCHOR]])}


def nested(levels: int) -> bytes:
    """A body with an output whose inline datum nests constructors."""
    datum = b"\xd8\x79\x81" * levels + b"\x00"
    inline = cbor2.dumps([1, CBORTag(24, datum)])
    output = b"\xa3\x00" + cbor2.dumps(FAUCET) + b"\x01\x05\x02" + inline
    return b"\xa3\x00\x81" + cbor2.dumps(INPUT) + b"\x01\x81" + output + b"\x02\x00"


def of_parts(body: bytes, witnesses: bytes = cbor2.dumps(SIGNED), *rest: bytes) -> bytes:
    parts = [body, witnesses, *(rest or (b"\xf5", b"\xf6"))]
    return bytes((0x80 + len(parts),)) + b"".join(parts)


COLD = [0, HASH]
VALID = {
    "a bootstrap witness in a set": written(BODY, {2: CBORTag(SET, [[KEY, SIGNATURE, KEY, b"\xa0"]])}),
    "signatures in a set": written(BODY, {0: CBORTag(SET, [[KEY, SIGNATURE]])}),
    "a hard fork": written(proposal([1, None, [10, 0]])),
    "a constitution": written(proposal([5, None, [ANCHOR, None]])),
    "a committee": written(proposal([4, None, CBORTag(SET, [COLD]), {(0, HASH): 100}, CBORTag(30, [2, 3])])),
    "no confidence": written(proposal([3, [KEY, 0]])),
    "cost models": written(proposal([0, None, {18: {0: [1] * 166, 2: [-1] * 350}}, None])),
    "a withdrawal from the treasury": written(proposal([2, {STAKE: 10**12}, HASH])),
    "votes": written(BODY | {19: {(4, HASH): {(KEY, 0): [1, None]}}}),
    "three elements": written(BODY, SIGNED, None),
    "three elements with metadata": written(BODY, SIGNED, {721: {"a": [b"b"]}}),
    "scripts that fail": written(BODY, SIGNED, False, None),
    "a datum 200 constructors deep": of_parts(nested(200)),
    "a datum 5,000 constructors deep": of_parts(nested(5_000)),
    "a redeemer 5,000 arrays deep": of_parts(
        cbor2.dumps(BODY), b"\xa2\x00" + cbor2.dumps(SIGNED[0]) + b"\x04\x81" + b"\x9f" * 5_000 + b"\xff" * 5_000
    ),
    "indefinite lengths": b"\x9f\xbf" + cbor2.dumps(BODY)[1:] + b"\xff" + cbor2.dumps(SIGNED) + b"\xf5\xf6\xff",
    "long heads": b"\x9b\0\0\0\0\0\0\0\4" + cbor2.dumps(BODY) + cbor2.dumps(SIGNED) + b"\xf5\xf6",
    "a key of the body in a long form": of_parts(b"\xa3\x18\x00" + cbor2.dumps(BODY)[2:]),
    "a duplicate key in a datum": of_parts(
        cbor2.dumps(BODY), b"\xa2\x00" + cbor2.dumps(SIGNED[0]) + b"\x04\x81\xa2\0\0\0\0"
    ),
    "large integers in a datum": written(BODY, SIGNED | {4: [2**300, -(2**300)]}),
    "a native script, and no signature": written(BODY, {1: [[1, []]]}),
    "a reference to a script, and no signature": written(BODY | {18: CBORTag(SET, [INPUT])}, {}),
    "a signed sub-transaction": written(BODY | {23: CBORTag(SET, [[{0: [INPUT], 1: []}, SIGNED, None]])}, {}, None),
    "a guard": written(BODY | {14: [COLD]}, SIGNED, None),
}


@pytest.mark.parametrize("sent", VALID.values(), ids=VALID)
def test_the_node_judges_what_libraries_can_not_read(sent: bytes) -> None:
    found = read(sent, PREVIEW)
    body = parts_of(sent)[0]
    assert found.signed
    assert found.tx_hash == blake2b(body, digest_size=32).digest()
    assert contents(sent).size_bytes <= len(sent)


NOT_SIGNED = {
    "no witnesses": written(BODY, {}),
    "empty sets": written(BODY | {18: []}, {0: [], 1: CBORTag(SET, []), 2: []}),
    "a script that needs collateral": written(BODY, {3: [b"\0"], 4: [0], 5: [[0, 0, 0, [0, 0]]]}),
    "a sub-transaction without witnesses": written(BODY | {23: [[{0: [INPUT], 1: []}, {}, None]]}, {}, None),
}


@pytest.mark.parametrize("sent", NOT_SIGNED.values(), ids=NOT_SIGNED)
def test_nothing_in_it_could_authorise_it(sent: bytes) -> None:
    assert not read(sent, PREVIEW).signed


def sub(body: dict[int, Any]) -> dict[int, Any]:
    """A body with a sub-transaction that has these fields."""
    return BODY | {23: CBORTag(SET, [[{0: [INPUT], 1: []} | body, SIGNED, None]])}


def byron(attributes: dict[int, bytes]) -> bytes:
    payload = cbor2.dumps([HASH, attributes, 0])
    return cbor2.dumps([CBORTag(24, payload), zlib.crc32(payload)])


PATH, MAGIC = {1: b"\x58\x1c" + HASH}, {2: cbor2.dumps(2)}
FOREIGN = {
    "an output": {1: [[FAUCET, 1], [ON_MAINNET, 1]]},
    "an output that is a map": {1: [{1: 5, 0: ON_MAINNET}]},
    "a Byron address": {1: [[byron(PATH), 5]]},
    "the return of the collateral": {16: {0: ON_MAINNET, 1: 5}},
    "a withdrawal": {5: {STAKE: 1, MAINNET_STAKE: 0}},
    "a direct deposit": {25: {MAINNET_STAKE: 1}},
    "the network id": {15: 1},
}


@pytest.mark.parametrize("fields", FOREIGN.values(), ids=FOREIGN)
def test_a_transaction_of_another_network_is_refused(fields: dict[int, Any]) -> None:
    assert code_of(written(BODY | fields)) == "foreign_transaction"
    assert code_of(written(sub(fields))) == "foreign_transaction"


@given(st.sampled_from([FAUCET, byron(PATH | MAGIC)]), st.sampled_from([ON_MAINNET, byron(PATH), byron({})]))
def test_all_outputs_belong_to_the_network_of_the_key(test: bytes, main: bytes) -> None:
    for form in (lambda raw: [raw, 5], lambda raw: {0: raw, 1: [5, {HASH: {b"": 1}}], 3: CBORTag(24, b"\0")}):
        assert code_of(written(BODY | {1: [form(test)]})) == code_of(written(BODY | {1: [form(main)]}), MAINNET) == ""
        assert code_of(written(BODY | {1: [form(test)]}), MAINNET) == "foreign_transaction"
        assert code_of(written(BODY | {1: [form(test), form(main)]})) == "foreign_transaction"


def test_a_transaction_ends_with_the_first_of_its_validity_intervals() -> None:
    assert read(written(BODY), PREVIEW).invalid_hereafter is None
    assert read(written(BODY | {3: 2**64 - 1}), PREVIEW).invalid_hereafter == 2**64 - 1
    assert read(written(sub({3: 90}) | {3: 100}, SIGNED, None), PREVIEW).invalid_hereafter == 90
    assert read(written(sub({3: 90}) | {3: 80}, SIGNED, None), PREVIEW).invalid_hereafter == 80


def of_size(size_bytes: int, *flag: bool) -> bytes:
    """A transaction of this size as the ledger counts it."""
    fixed = written(BODY, SIGNED, {1: [b""] * 256})
    filler = size_bytes - len(fixed)
    return written(BODY, SIGNED, *flag, {1: [b"x" * (filler - 2), *[b""] * 255]})


def test_the_validity_flag_and_the_length_of_a_head_do_not_count() -> None:
    largest = of_size(MAX_BYTES)
    forms = [largest, of_size(MAX_BYTES, True), b"\x9f" + of_size(MAX_BYTES, False)[1:] + b"\xff"]
    forms.append(b"\x9b" + (4).to_bytes(8) + forms[1][1:])
    assert [len(form) for form in forms] == [16_384, 16_385, 16_386, 16_393]
    assert [code_of(form) for form in forms] == [""] * 4
    assert {contents(form).size_bytes for form in forms} == {16_384}
    for form in (of_size(MAX_BYTES + 1), of_size(MAX_BYTES + 1, True), bytes(transaction_cbor.MAX_SENT_BYTES + 1)):
        assert code_of(form) == "transaction_too_large"


def test_a_refusal_names_what_was_expected() -> None:
    prefix = "Invalid transaction: its bytes are not the CBOR of a transaction: "
    for sent, said in {
        b"\x81" * 16_000: "the bytes end where an item was expected, at byte 16000",
        b"\x9f" * 16_000: "the bytes end where an item was expected, at byte 16000",
        b"\xa0": "a transaction must be an array, not a map (byte 0)",
        b"\x80": SHAPE,
        cbor2.dumps([BODY, SIGNED]): SHAPE,
        cbor2.dumps([BODY, SIGNED, True]): SHAPE,
        cbor2.dumps([BODY, SIGNED, None, None]): SHAPE,
        cbor2.dumps([BODY, SIGNED, True, None, None]): SHAPE,
        written() + b"\0\0": f"it ends at byte {len(written())}, but 2 bytes follow",
        written([]): "the body must be a map, not an array (byte 1)",
        written({}): "the body must have field 1 (outputs)",
        written({1: {}}): "field 1 (outputs) must be an array, not a map (byte 3)",
        written({1: [7]}): "output 0 must be an array, not an unsigned integer (byte 4)",
        written({1: [["a", 5]]}): "the address of output 0 must be a byte string, not a text (byte 5)",
        written({1: [[b"", 5]]}): "the address of output 0 must be an address",
        written({1: [[b"\x80", 5]]}): "the address of output 0 must be an address",
        written(BODY | {3: -1}): "field 3 (end of the validity interval) must be an unsigned integer, not a negative",
        written(BODY | {15: None}): "field 15 (network id) must be an unsigned integer, not a value",
        written(BODY | {5: []}): "field 5 (withdrawals) must be a map, not an array",
        written(BODY | {"fee": 1}): "a key of the body must be an unsigned integer, not a text",
        written(BODY, []): "the witness set must be a map, not an array",
    }.items():
        assert message_of(sent).startswith(prefix + said)


@given(st.dictionaries(st.integers(26, 2**64 - 1), items, max_size=4), items, items)
def test_whatever_the_service_need_not_know_goes_to_the_node(
    fields: dict[int, bytes], value: bytes, aux: bytes
) -> None:
    """Fields that no era has yet, and any value of the others: the id is the hash of the bytes as they were sent."""
    body = (
        b"\xbf" + b"".join(cbor2.dumps(key) + item for key, item in fields.items()) + b"\x01\x80\x02" + value + b"\xff"
    )
    witnesses = b"\xa2\x00\x81\x00\x07" + value
    assume(aux not in (b"\xf4", b"\xf5"))
    for sent in (of_parts(body, witnesses, aux), of_parts(body, witnesses, b"\xf5", aux)):
        found = read(sent, PREVIEW)
        assert found.tx_hash == blake2b(body, digest_size=32).digest()
        assert found.signed


@given(st.binary(max_size=60) | st.tuples(st.sampled_from(list(VALID.values())), st.integers(0, 2**32)).map(mutated))
def test_any_bytes_are_read_or_refused(sent: bytes) -> None:
    assert code_of(sent) in ("", "invalid_transaction", "foreign_transaction")
