"""Addresses derived from the public key of an account, as Blockfrost and pycardano derive them."""

import pytest
from pycardano import Address, HDWallet, PaymentVerificationKey, StakeVerificationKey
from pycardano import Network as Kind

from api.blockfrost.derivation import derive
from shared.network import MAINNET, PREVIEW

XPUB = bytes.fromhex(
    "7ec9738746cb4708df52a455b43aa3fdee8955abaf37f68ffc79bb84fbf9e1b3"
    "9d77e2deb9749faf890ff8326d350ed3fd0e4aa271b35cad063692af87102152"
)


@pytest.mark.parametrize(
    ("role", "index", "shown"),
    [
        (
            0,
            0,
            "addr1qxykyqgwd577heaunndagj66z0n2z0jgedjcn3qxlrujpjq49ucjdfty5p5qlw5qe28v9k988stffc2g0hx2xx86a2dqnt753m",
        ),
        (
            1,
            1,
            "addr1qx8dz454rqaxjhrynjhppwq22wwk2dtkz022ngxgcdahflc49ucjdfty5p5qlw5qe28v9k988stffc2g0hx2xx86a2dqq078gh",
        ),
        (
            0,
            3,
            "addr1qy9ltwrqmtl9vu2y9y24aaxppyfhjhyhrfdgy8usxuu3hdq49ucjdfty5p5qlw5qe28v9k988stffc2g0hx2xx86a2dqjrqcu2",
        ),
        (
            1,
            3,
            "addr1qytpyxyh5j023fq88xhj862guwrymhwjadt5czqvumpv02s49ucjdfty5p5qlw5qe28v9k988stffc2g0hx2xx86a2dq56wr69",
        ),
    ],
)
def test_addresses_are_those_of_blockfrosts_own_tests(role: int, index: int, shown: str) -> None:
    """blockfrost-tests, `addresses-xpub`."""
    assert derive(XPUB, role, index, MAINNET) == shown


def public_key(*path: int) -> bytes:
    """The key that pycardano derives."""
    wallet = HDWallet(public_key=XPUB[:32], chain_code=XPUB[32:])
    for number in path:
        wallet = wallet.derive(number, private=False)
    return bytes(wallet.public_key)


@pytest.mark.parametrize("index", [0, 7, 2**31 - 1])
def test_other_paths_are_those_of_pycardano(index: int) -> None:
    """A path of role 2 leads to a stake address."""
    account = StakeVerificationKey(public_key(2, 0)).hash()
    for role in (0, 1, 3, 2**31 - 1):
        owner = PaymentVerificationKey(public_key(role, index)).hash()
        assert derive(XPUB, role, index, PREVIEW) == Address(owner, account, Kind.TESTNET).encode()
    stake = StakeVerificationKey(public_key(2, index)).hash()
    for network, kind in ((PREVIEW, Kind.TESTNET), (MAINNET, Kind.MAINNET)):
        assert derive(XPUB, 2, index, network) == Address(None, stake, kind).encode()


def test_bytes_that_are_no_point_of_the_curve_are_refused() -> None:
    with pytest.raises(RuntimeError):
        derive(b"\x02" * 64, 0, 0, MAINNET)
