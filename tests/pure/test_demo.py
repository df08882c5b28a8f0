"""What the demo repeats, since it must not import the API."""

from api.keys import restrictions
from devnet import demo


def test_the_key_of_the_demo_has_every_scope() -> None:
    assert demo.SCOPES == restrictions.SCOPES
