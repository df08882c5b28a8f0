"""The kinds of transaction in a generated chain. A function for each kind makes one from an empty draft.

The function raises `Impossible` if the chain lacks something that it needs; the generator then tries another kind.
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
