"""The kinds of transaction that a generated chain is made of, each written by one function from a fresh draft.

A kind raises `Impossible` where the chain isn't ready for it; the generator then takes another.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from devnet.draft import Draft


class Kind(NamedTuple):
    """`since` and `until` name the first and last era that knows it."""

    write: Callable[[Draft], dict[str, Any]]
    since: str = "shelley"
    until: str = "dijkstra"
