"""The address that a request is said to come from."""

from ipaddress import ip_network

import pytest

from api.keys import caller


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        (None, [], None),
        ("9.9.9.9", ["1.1.1.1"], "9.9.9.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1, 2.2.2.2"], "2.2.2.2"),
        ("10.0.0.1", ["1.1.1.1", "10.0.0.2"], "1.1.1.1"),
        ("10.0.0.1", ["10.0.0.3,10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["1.1.1.1, junk"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["1.1.1.1"], "1.1.1.1"),
    ],
)
def test_the_origin_is_the_nearest_untrusted_address(
    peer: str | None, forwarded: list[str], expected: str | None
) -> None:
    assert caller.ip_address(peer, forwarded, (ip_network("10.0.0.0/8"),)) == expected
