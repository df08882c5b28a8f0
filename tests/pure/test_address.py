"""Addresses and encodings, compared with pycardano, which shares no code with ours, and with real addresses."""

import contextlib
import string

import cbor2
import pycardano
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import address, encoding
from shared.address import ForeignAddress, InvalidAddress
from shared.network import MAINNET, PREPROD, PREVIEW, Network

MAINNET_BYRON = "Ae2tdPwUPEZ3DdaWu8jn553npu6jwEPAJiahruj3xQjPXxgoxfYDWusJz7x"
PREVIEW_BYRON = "FHnt4NL7yPXvDWHa8bVs73UEUdJd64VxWXSFNqetECtYfTd9TtJguJ14Lu3feth"
PREVIEW_BASE = (
    "addr_test1xrdtrqt94egrn8z7galqe7ec6ze4kvk8taltz58tc7r55hk6kxqkttjs8xw9u3m7pnan359ntvevwhm7k9gwh3u8ff0qlk99af"
)

# An output of mainnet, as its wallet writes the address: slot 16,292,793,057 and transaction 1,011,302 do not fit.
WALLETS_POINTER = "addr1gy5p8wv6sr8mgqjrwj7s75pft9y94ftwqey9vnlcqhew2xaumxqe2cdam3npgv60hqa"
NODES_POINTER = "addr1gy5p8wv6sr8mgqjrwj7s75pft9y94ftwqey9vnlcqhew2xcqqqqqfxmvv9"

hashes = st.binary(min_size=28, max_size=28)


def _sizes(bits: int) -> st.SearchStrategy[int]:
    """Numbers on both sides of the ones that fit."""
    fits, edge = st.integers(0, (1 << bits) - 1), st.integers((1 << bits) - 2, (1 << bits) + 1)
    beyond = st.builds(lambda number, words: number + words * 2**64, fits, st.integers(0, 3))
    return st.integers(0, 1 << 80) | fits | edge | beyond


pointers = st.tuples(_sizes(32), _sizes(16), _sizes(16))


def fitting(slot_no: int, index: int, certificate: int) -> tuple[int, int, int]:
    """The pointer of a node that has read this one: a word of 64 bits holds each number while it is read."""
    words = slot_no % 2**64, index % 2**64, certificate % 2**64
    return words if words[0] < 2**32 and words[1] < 2**16 and words[2] < 2**16 else (0, 0, 0)


def shelley_addresses(tag: int) -> st.SearchStrategy[bytes]:
    """Raw base, pointer and enterprise addresses with this network tag, in the form of a node."""
    head = st.integers(0, 7).map(lambda kind: bytes((kind << 4 | tag,)))
    pointer = pointers.map(lambda numbers: pycardano.address.PointerAddress(*fitting(*numbers)).encode())
    tails = {0: hashes, 1: hashes, 2: hashes, 3: hashes, 4: pointer, 5: pointer}
    return head.flatmap(lambda h: st.tuples(st.just(h), hashes, tails.get(h[0] >> 4, st.just(b"")))).map(b"".join)


@given(st.sampled_from([0x40, 0x41, 0x50, 0x51]), hashes, pointers, st.tuples(*[st.integers(0, 30)] * 3))
def test_a_pointer_is_found_under_the_form_of_the_node(
    header: int, payment: bytes, pointer: tuple[int, int, int], zeros: tuple[int, int, int]
) -> None:
    def tail(numbers: tuple[int, int, int], overlong: tuple[int, int, int] = (0, 0, 0)) -> bytes:
        each = [pycardano.address.PointerAddress(number, 0, 0).encode()[:-2] for number in numbers]
        return b"".join(b"\x80" * ahead + number for ahead, number in zip(overlong, each, strict=True))

    head = bytes((header,)) + payment
    wallets, nodes = address.show(head + tail(pointer, zeros)), head + tail(fitting(*pointer))
    assert address.parse(wallets, MAINNET if header & 1 else PREVIEW) == nodes
    assert address.of_node(wallets) == address.of_node(address.show(nodes)) == nodes


def test_a_pointer_of_mainnet_that_does_not_fit() -> None:
    raw = address.parse(WALLETS_POINTER, MAINNET)
    assert address.show(raw) == NODES_POINTER
    assert address.of_node(WALLETS_POINTER) == address.parse(NODES_POINTER, MAINNET) == raw
    assert address.parts_of(raw) == ("pointer", (raw[1:29], "verificationKey"), None)


@given(shelley_addresses(1))
def test_mainnet_addresses_survive_text(raw: bytes) -> None:
    text = address.show(raw)
    assert text.startswith("addr1")
    assert address.parse(text, MAINNET) == address.parse(text.upper(), MAINNET) == address.of_node(text) == raw
    with pytest.raises(ForeignAddress):
        address.parse(text, PREVIEW)


@given(shelley_addresses(0))
def test_test_addresses_belong_to_both_test_networks(raw: bytes) -> None:
    text = address.show(raw)
    assert address.parse(text, PREVIEW) == address.parse(text, PREPROD) == raw
    with pytest.raises(ForeignAddress):
        address.parse(text, MAINNET)


@given(hashes, hashes, st.booleans())
def test_base_addresses_are_pycardanos(payment: bytes, stake: bytes, script: bool) -> None:
    credential = pycardano.ScriptHash if script else pycardano.VerificationKeyHash
    theirs = pycardano.Address(
        pycardano.VerificationKeyHash(payment), credential(stake), network=pycardano.Network.MAINNET
    )
    raw = address.parse(str(theirs), MAINNET)
    assert raw == bytes(theirs)
    stake_only = pycardano.Address(staking_part=credential(stake), network=pycardano.Network.MAINNET)
    account = address.stake_of(raw)
    assert account == bytes(stake_only)
    assert address.show_stake(account) == str(stake_only)


@given(hashes, hashes, st.booleans(), st.booleans())
def test_credentials_are_pycardanos(payment: bytes, stake: bytes, paid_by_script: bool, script: bool) -> None:
    kinds = (pycardano.VerificationKeyHash, pycardano.ScriptHash)
    theirs = pycardano.Address(kinds[paid_by_script](payment), kinds[script](stake), network=pycardano.Network.TESTNET)
    origins = ("verificationKey", "script")
    expected = ("base", (payment, origins[paid_by_script]), (stake, origins[script]))
    assert address.parts_of(bytes(theirs)) == expected
    alone = pycardano.Address(kinds[paid_by_script](payment), network=pycardano.Network.TESTNET)
    assert address.parts_of(bytes(alone)) == ("enterprise", expected[1], None)
    account = pycardano.Address(staking_part=kinds[script](stake), network=pycardano.Network.TESTNET)
    raw = address.parse_stake(str(account), PREVIEW)
    assert raw == address.parse_stake(str(account).upper(), PREPROD) == bytes(account)
    assert address.is_reward_account(raw) and not address.is_reward_account(bytes(theirs))
    assert address.credential_of(raw) == (stake, origins[script])
    with pytest.raises(ForeignAddress):
        address.parse_stake(str(account), MAINNET)
    for wrong in (str(theirs), str(alone), str(account)[:-1], str(account).replace("stake_test", "stake"), "", "é" * 9):
        with pytest.raises(InvalidAddress):
            address.parse_stake(wrong, PREVIEW)


@given(st.sampled_from(["a", "addr", "asset", "pool"]), st.binary(max_size=120))
def test_bech32_survives_and_needs_its_checksum(hrp: str, payload: bytes) -> None:
    text = encoding.bech32_encode(hrp, payload)
    assert encoding.bech32_decode(text) == (hrp, payload)
    assert encoding.bech32_payload(text) == payload
    wrong = text[:-1] + ("q" if text[-1] != "q" else "p")
    with pytest.raises(ValueError, match="checksum"):
        encoding.bech32_decode(wrong)


def test_a_letter_that_becomes_ascii_in_lower_case_is_not_bech32() -> None:
    right = encoding.bech32_encode("pool", bytes(range(28))).upper()
    assert "K" in right
    with pytest.raises(ValueError, match="ASCII"):
        encoding.bech32_decode(right.replace("K", "\u212a"))


@given(
    st.sampled_from(["addr_test", "asset", "stake"]),
    st.integers(1, 64).flatmap(lambda length: st.lists(st.binary(min_size=length, max_size=length), max_size=20)),
)
def test_a_page_of_texts_is_the_text_of_each(hrp: str, payloads: list[bytes]) -> None:
    assert encoding.bech32_encode_all(hrp, payloads) == [encoding.bech32_encode(hrp, payload) for payload in payloads]


@given(st.lists(st.one_of(shelley_addresses(0), shelley_addresses(1), st.just(encoding.base58_decode(MAINNET_BYRON)))))
def test_a_page_of_addresses_is_the_text_of_each(raws: list[bytes]) -> None:
    assert address.show_all(raws) == [address.show(raw) for raw in raws]


@given(st.lists(hashes), st.sampled_from([MAINNET, PREVIEW]))
def test_a_page_of_stake_addresses_is_the_text_of_each(hashes: list[bytes], network: Network) -> None:
    accounts = [address.reward_account(key_hash, "verificationKey", network) for key_hash in hashes]
    assert address.show_stakes(accounts, network) == [address.show_stake(account) for account in accounts]


@given(st.binary(max_size=100))
def test_base58_survives(payload: bytes) -> None:
    assert encoding.base58_decode(encoding.base58_encode(payload)) == payload


@pytest.mark.parametrize(
    ("text", "network"), [(MAINNET_BYRON, MAINNET), (PREVIEW_BYRON, PREVIEW), (PREVIEW_BYRON, PREPROD)]
)
def test_byron_addresses_are_read_and_shown(text: str, network: Network) -> None:
    assert address.show(address.parse(text, network)) == text


@pytest.mark.parametrize(("text", "network"), [(MAINNET_BYRON, PREVIEW), (PREVIEW_BYRON, MAINNET)])
def test_byron_addresses_of_other_networks_are_foreign(text: str, network: Network) -> None:
    with pytest.raises(ForeignAddress):
        address.parse(text, network)


def _bech32(hrp: str, raw: bytes) -> str:
    return encoding.bech32_encode(hrp, raw)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "addr",
        "addr_test1",
        "x",
        PREVIEW_BASE[:-1],
        PREVIEW_BASE + "q",
        PREVIEW_BASE[:-1] + "q",
        PREVIEW_BASE.capitalize(),
        PREVIEW_BASE.replace("addr_test1x", "addr_test1X"),
        " " + PREVIEW_BASE,
        PREVIEW_BASE + "\n",
        "\u0430ddr" + PREVIEW_BASE[4:],  # begins with a letter that only looks like "a"
        PREVIEW_BYRON[:-1],
        PREVIEW_BYRON[:-1] + "i",
        PREVIEW_BYRON + "1",
        "1" + PREVIEW_BYRON,
        "1" * 2_000,
        _bech32("stake_test", b"\xe0" + bytes(28)),
        _bech32("addr_test", b"\xe0" + bytes(28)),
        _bech32("addr_test", b"\x60" + bytes(27)),
        _bech32("addr_test", b"\x60" + bytes(29)),
        _bech32("addr_test", b"\x00" + bytes(28)),
        _bech32("addr_test", b"\x61" + bytes(28)),
        _bech32("addr", b"\x60" + bytes(28)),
        _bech32("addr_test", b"\x62" + bytes(28)),
        _bech32("addr_test", b"\x80" + bytes(28)),
        _bech32("addr_test", b"\x90" + bytes(28)),
        _bech32("addr_test", b""),
        _bech32("pool", bytes(28)),
        encoding.base58_encode(cbor2.dumps([1, 2])),
        encoding.base58_encode(cbor2.dumps([cbor2.CBORTag(24, b"\xff"), 0])),
        encoding.base58_encode(cbor2.dumps({})),
    ],
)
def test_anything_else_is_invalid(text: str) -> None:
    with pytest.raises(InvalidAddress):
        address.parse(text, PREVIEW)


@pytest.mark.parametrize("tail", ["0102", "01020304", "010281", "818181", "0102", "81828384"])
def test_a_pointer_is_three_numbers(tail: str) -> None:
    with pytest.raises(InvalidAddress):
        address.parse(address.show(b"\x40" + bytes(28) + bytes.fromhex(tail)), PREVIEW)


def test_bytes_after_a_base_address_do_not_change_its_stake() -> None:
    raw = b"\x01" + bytes(28) + b"\x07" * 28
    assert address.stake_of(raw + bytes(22)) == address.stake_of(raw) == b"\xe1" + b"\x07" * 28


@given(st.text(string.printable, max_size=120))
def test_no_text_breaks_the_parser(text: str) -> None:
    with contextlib.suppress(InvalidAddress, ForeignAddress):
        address.parse(text, PREVIEW)


@pytest.mark.parametrize("kind", range(4, 9))
def test_pointer_enterprise_and_byron_addresses_have_no_stake(kind: int) -> None:
    assert address.stake_of(bytes((kind << 4,)) + bytes(56)) is None


# The key and the script of the examples in CIP-19, and addresses of both there.
CIP_19 = (
    (
        ("addr_vk1w0l2sr2zgfm26ztc6nl9xy8ghsk5sh6ldwemlpmp9xylzy4dtf7st80zhd",
         "ADDR_VKH1JJFNZHXE966A33PSFENM0CT2UDKKR569QF55V4UPRGKGU8ZSVMG"),
        "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8",
    ),
    (
        ("script1cda3khwqv60360rp5m7akt50m6ttapacs8rqhn5w342z7r35m37",),
        "addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx",
    ),
)  # fmt: skip


@pytest.mark.parametrize("forms, of_address", CIP_19)
def test_each_form_of_a_payment_credential_is_that_of_its_addresses(forms: tuple[str, ...], of_address: str) -> None:
    expected = address.payment_hash_of(address.parse(of_address, MAINNET))
    for form in forms:
        assert address.names_payment_credential(form)
        assert address.parse_payment_credential(form) == expected
    assert expected is not None
    assert address.show_payment_credential(expected, forms[-1]) == forms[-1].lower()


@pytest.mark.parametrize(
    "text",
    [
        "addr_vkh1uwu",
        encoding.bech32_encode("addr_vkh", bytes(27)),
        encoding.bech32_encode("addr_vk", bytes(28)),
        encoding.bech32_encode("script", bytes(32)),
        encoding.bech32_encode("stake_vkh", bytes(28)),
        "script1cda3khwqv60360rp5m7akt50m6ttapacs8rqhn5w342z7r35m38",
        PREVIEW_BASE,
        "",
    ],
)
def test_what_is_no_payment_credential_is_invalid(text: str) -> None:
    with pytest.raises(InvalidAddress):
        address.parse_payment_credential(text)


def test_an_address_of_byron_has_no_payment_credential() -> None:
    assert address.payment_hash_of(address.parse(MAINNET_BYRON, MAINNET)) is None
