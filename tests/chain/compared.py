"""Compares an answer with the expected one, and raises an error that names the first difference."""

from typing import Any

MAX_LENGTH = 300


def same(question: str, told: Any, expected: Any) -> None:
    """Raise AssertionError unless both are equal: the question, the field, its value and the expected value."""
    found = difference(told, expected, "the answer")
    if found is not None:
        raise AssertionError(f"{question}: {found}")


def difference(told: Any, expected: Any, field: str) -> str | None:
    """The first difference between two values of JSON; None if they are equal."""
    if isinstance(told, dict) and isinstance(expected, dict):
        for name in [*expected, *(name for name in told if name not in expected)]:
            if name not in told or name not in expected:
                one, value = ("lacks", expected[name]) if name not in told else ("should lack", told[name])
                return f"{field} {one} {name}, {shortened(value)}"
            found = difference(told[name], expected[name], f"{field}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(told, list) and isinstance(expected, list):
        for place, (one, other) in enumerate(zip(told, expected, strict=False)):
            found = difference(one, other, f"{field}[{place}]")
            if found is not None:
                return found
        return None if len(told) == len(expected) else f"{field} has {len(told)} entries, expected {len(expected)}"
    equal = told == expected and isinstance(told, bool) == isinstance(expected, bool)
    return None if equal else f"{field} is {shortened(told)}, expected {shortened(expected)}"


def shortened(value: Any) -> str:
    """A value as text of a bounded length."""
    text = repr(value)
    return text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
