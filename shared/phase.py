"""The phases of an index."""

from enum import StrEnum


class Phase(StrEnum):
    """The phase of an index.

    `tip` has no row while the index is empty. Its `phase` is 'bulk', with `finalize_step` 0 in BULK and above in
    FINISHING, or 'live':

        EMPTY      Nothing is indexed. The first batch decides: BULK if the node's tip is far ahead of it, else LIVE.
        BULK       Histories and amounts are staged without indexes, and nothing can be queried. After the first batch a
                   second process decodes.
        FINISHING  Some of the steps that end bulk are committed. The others follow before any block is written or
                   undone.
        LIVE       Each commit leaves every table current. Only erasing the index returns it to EMPTY.
    """

    EMPTY = "empty"
    BULK = "bulk"
    FINISHING = "finishing"
    LIVE = "live"
