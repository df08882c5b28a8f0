"""Pages of lists: `count`, `page` and `order`. A page number becomes an offset in the list."""

from typing import Annotated

from api.parameters import Integer, Order, Question

MAX_COUNT = 100
MAX_NUMBER = 2**31 - 1
"""The largest number of an epoch or a slot that Blockfrost takes, and the largest integer of Postgres."""
_MAX_PAGE = 21_474_836


class UnorderedPage(Question, frozen=True, kw_only=True):
    """A page of a list whose order is fixed."""

    count: Annotated[int, Integer(1, MAX_COUNT)] = MAX_COUNT
    page: Annotated[int, Integer(1, _MAX_PAGE)] = 1

    @property
    def offset(self) -> int:
        """The number of entries on the pages before."""
        return (self.page - 1) * self.count


class Page(UnorderedPage, frozen=True, kw_only=True):
    """A page of a list that is oldest first, unless `order` is `desc`."""

    order: Order = "asc"
