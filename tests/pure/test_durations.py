"""Histograms of durations."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from api.usage import durations

WIDTH = 0.125
took_us = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=200)


def histogram(each_us: list[int]) -> list[int]:
    return durations.packed(Counter(map(durations.bucket_of, each_us)))


@given(st.integers(0, 2**32 - 1))
def test_a_bucket_contains_its_durations_and_is_narrow(each_us: int) -> None:
    low, high = durations.bounds_of(durations.bucket_of(each_us))
    assert low <= each_us < high
    assert high - low <= max(low * WIDTH, 1)
    assert durations.bounds_of(durations.bucket_of(high))[0] == high, "no gap to the next one"


@given(took_us)
def test_percentiles_are_close_to_those_of_the_durations(each_us: list[int]) -> None:
    found = durations.percentiles_ms(histogram(each_us), (50, 95, 99))
    for percent, shown_ms in zip((50, 95, 99), found, strict=True):
        exact_us = sorted(each_us)[-(-len(each_us) * percent // 100) - 1]
        assert abs(shown_ms * 1000 - exact_us) <= max(exact_us * WIDTH, 1) + 1


def test_percentiles_of_nothing_are_0() -> None:
    assert durations.percentiles_ms([], (50, 95, 99)) == [0.0, 0.0, 0.0]
