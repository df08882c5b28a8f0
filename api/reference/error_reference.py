"""The reference of error codes, from the docstrings of errors.py: first the cause, then what the caller can do."""

import inspect

import msgspec

from api import errors
from api.errors import Refusal


class Documented(msgspec.Struct, frozen=True):
    """A code in the reference: its status, and the causes and remedies of the errors that have it."""

    code: str
    status: int
    causes: list[str] = []
    remedies: list[str] = []


def documented() -> list[Documented]:
    """Every code, in the order of errors.py."""
    entries: dict[str, Documented] = {}
    for name, make in vars(errors).items():
        if inspect.isfunction(make) and inspect.signature(make).return_annotation is Refusal:
            refusal: Refusal = make(*inspect.signature(make).parameters)
            cause, _, remedy = (inspect.getdoc(make) or "").partition("\n\n")
            assert remedy, f"errors.{name} has no remedy"
            entry = entries.setdefault(refusal.code, Documented(refusal.code, refusal.status))
            assert entry.status == refusal.status, f"errors.{name} has another status than its code"
            entry.causes.append(" ".join(cause.split()))
            entry.remedies.append(" ".join(remedy.split()))
    return list(entries.values())
