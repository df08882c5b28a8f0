"""How often verify runs."""

import pytest

from indexer.verify import rounds


@pytest.mark.parametrize("wrong", ["24", "0h", "1.5h", "-1h", "1w"])
def test_an_invalid_duration_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*', expected a number and s, m, h or d, like 24h$"):
        rounds.parse_duration(wrong)


def test_a_duration_is_a_number_with_a_unit() -> None:
    assert [rounds.parse_duration(text) for text in ("90s", "30m", "24h", "7d")] == [90, 1_800, 86_400, 604_800]
