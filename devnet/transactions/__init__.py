"""The kinds of transaction that a generated chain holds. One function makes each from an empty draft.

It raises `Impossible` if the chain lacks what it needs; the generator then tries another kind.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from devnet.draft import Draft
from devnet.parameters import PROTOCOL_MAJOR


class TransactionKind(NamedTuple):
    """A function that makes transactions, and the first and last era in which they are valid."""

    make: Callable[[Draft], dict[str, Any]]
    since: str = "shelley"
    until: str = next(reversed(PROTOCOL_MAJOR))
