"""Pages of lists: `count`, `page` and `order`. A page number becomes an offset in the list.

Errors of these parameters, and of numbers in paths, are in Blockfrost's words, which programs compare or show.
"""

import re
from typing import Annotated, Literal

from api import errors
from api.parameters import Choice, Integer, Question

MAX_COUNT = 100
MAX_NUMBER = 2**31 - 1
"""The largest number of an epoch or a slot that Blockfrost takes, and the largest integer of Postgres."""
_MAX_PAGE = 21_474_836
_INTEGER = re.compile("-?[0-9]+")


class InQuery(Integer):
    """An integer in a query, in whose errors the limit is named that it exceeds."""

    def __init__(self, name: str, low: int, high: int) -> None:
        super().__init__(low, high, message=f"querystring/{name} must be integer")
        self._wrong = f"querystring/{name} must be"

    def of_text(self, text: str) -> int:
        if not _INTEGER.fullmatch(text):
            raise ValueError(text)
        number = int(text)  # ValueError beyond 4,300 digits
        if number < self.low:
            raise errors.invalid_parameter(f"{self._wrong} >= {self.low}")
        if number > self.high:
            raise errors.invalid_parameter(f"{self._wrong} <= {self.high}")
        return number


class InPath(Integer):
    """A number in a path, such as that of a slot."""

    def __init__(self, name: str) -> None:
        super().__init__(0, MAX_NUMBER, message=f"Missing, out of range or malformed {name}.")


_Direction = Annotated[
    Literal["asc", "desc"],
    Choice("asc", "desc", message="querystring/order must be equal to one of the allowed values"),
]


class UnorderedPage(Question, frozen=True, kw_only=True):
    """A page of a list whose order is fixed."""

    count: Annotated[int, InQuery("count", 1, MAX_COUNT)] = MAX_COUNT
    page: Annotated[int, InQuery("page", 1, _MAX_PAGE)] = 1

    @property
    def offset(self) -> int:
        """The number of entries on the pages before."""
        return (self.page - 1) * self.count


class Page(UnorderedPage, frozen=True, kw_only=True):
    """A page of a list that is oldest first, unless `order` is `desc`."""

    order: _Direction = "asc"
