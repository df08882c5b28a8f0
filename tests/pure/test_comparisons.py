"""How differences from the node's ledger are named."""

import pytest

from indexer.ledger.comparisons import MAX_LETTERS, excerpts


@pytest.mark.parametrize("length", [0, 10, MAX_LETTERS // 2, MAX_LETTERS, 5 * MAX_LETTERS])
@pytest.mark.parametrize("rest", [0, 10, 5 * MAX_LETTERS])
def test_what_differs_is_shown_whatever_the_length(length: int, rest: int) -> None:
    """A cost model has thousands of letters, of which one may differ."""
    shown = excerpts("a" * length + "b" + "c" * rest, "a" * length + "d")
    assert all(len(each) <= MAX_LETTERS + 2 for each in shown)
    assert shown[0].lstrip("…a")[0] == "b"
    assert shown[1].lstrip("…a") == "d"


def test_short_values_are_shown_whole() -> None:
    assert excerpts("none", "5") == ("none", "5")
