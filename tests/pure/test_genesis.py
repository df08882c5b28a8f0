"""Vouchers of Byron's genesis (AVVM): the address that a key redeems, and the id under which its output is spent."""

import base64
import hashlib

import pytest

from indexer.blocks.genesis import redeem_address
from shared import address
from shared.network import MAINNET


@pytest.mark.parametrize(
    ("key", "redeems", "spent_as"),
    [  # of mainnet's genesis, as spent on chain
        (
            "-0BJDi-gauylk4LptQTgjMeo7kY9lTCbZv12vwOSTZk=",
            "Ae2tdPwUPEZHFQnrr2dYB4GEQ8WVKspEyrg29pJ3f7qdjzaxjeShEEokF5f",
            "8ee33c9906974706223d7d500d63bbee2369d7150f972757a9fdded2f706b938",
        ),
    ],
)
def test_a_voucher_redeems_the_address_that_it_redeemed_on_mainnet(key: str, redeems: str, spent_as: str) -> None:
    raw = redeem_address(base64.urlsafe_b64decode(key), MAINNET)
    assert address.show(raw) == redeems
    assert address.parse(redeems, MAINNET) == raw
    assert hashlib.blake2b(raw, digest_size=32).hexdigest() == spent_as
