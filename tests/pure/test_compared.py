"""A difference between an answer and the model is named with its field."""

from typing import Any

import pytest

from tests.chain.compared import difference, same


@pytest.mark.parametrize(
    ("told", "expected", "found"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "it.a[1].b is 2, expected 3"),
        ({"a": 1}, {"a": 1, "b": None}, "it lacks b, None"),
        ({"a": 1, "b": None}, {"a": 1}, "it should lack b, None"),
        ([1, 2], [1], "it has 2 entries, expected 1"),
        ([2, 1], [1], "it[0] is 2, expected 1"),
        ({"a": True}, {"a": 1}, "it.a is True, expected 1"),
        ({"a": "1"}, {"a": 1}, "it.a is '1', expected 1"),
        ({"a": [], "b": 0.5}, {"b": 0.5, "a": []}, None),
    ],
)
def test_the_first_difference_is_named(told: Any, expected: Any, found: str | None) -> None:
    assert difference(told, expected, "it") == found


def test_an_error_names_the_question() -> None:
    with pytest.raises(AssertionError, match=r"/v1/network: the answer\.tip is None, expected 'x'"):
        same("/v1/network", {"tip": None}, {"tip": "x"})
