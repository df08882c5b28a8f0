"""What bars a use of a key: the networks that it may be used from, and the name of another network before it."""

from uuid import UUID

import pytest

from api.admin.limits import Networks
from api.keys.limits.verdicts import GoodKey
from api.keys.restrictions import KeyUse, bits, parse


def test_networks_are_kept_in_one_notation() -> None:
    given = ["10.1.2.3", "10.1.2.3/32", "2001:DB8:0::/32", "::ffff:10.0.0.0/104"]
    assert Networks().of_json(given) == ("10.1.2.3/32", "2001:db8::/32", "10.0.0.0/8")


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
        ("192.0.2.128/25", "192.0.2.200", "192.0.2.127"),
        ("203.0.113.7/32", "203.0.113.7", "203.0.113.6"),
        ("0.0.0.0/0", "1.2.3.4", "::1"),
        ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
        ("::/0", "::1", "0.0.0.1"),
    ],
)
def test_a_network_contains_its_addresses_and_no_others(network: str, inside: str, outside: str) -> None:
    restrictions = parse([network], [])
    assert restrictions.bars(KeyUse("", bits(inside))) is None
    assert restrictions.bars(KeyUse("", bits(outside))) == "ip"
    assert restrictions.bars(KeyUse("", bits(None))) == "ip"


def test_a_name_of_another_network_bars_a_key_that_no_restriction_bars() -> None:
    key = GoodKey(UUID(int=1), 2, 60, None, restrictions=parse([], ["pools"]))
    assert key.bars(KeyUse("pools")) is key.bars(KeyUse("pools", network_id=2)) is None
    assert key.bars(KeyUse("pools", network_id=0)) == "network"
    assert key.bars(KeyUse("assets", network_id=0)) == "scope"
