"""What the answers of this folder share: how long a list is, free-form data, over which period usage is added up."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from api import errors
from api.parameters import Moment, Question

USUAL_PERIOD = timedelta(days=30)

Json = Annotated[msgspec.Raw, msgspec.Meta(extra_json_schema={"type": "object"})]
"""An object that is given back as it was stored."""


class Total(msgspec.Struct, frozen=True):
    """How many rows match."""

    total: int


class Period(Question, frozen=True, kw_only=True):
    """From when to when. Both are exact to the minute: `start_date` counts from the beginning of its minute on, and
    `end_date` up to the end of its minute, unless that is where the minute begins.
    """

    start_date: Annotated[datetime | None, Moment("Invalid start_date format")] = None
    end_date: Annotated[datetime | None, Moment("Invalid end_date format", last=True)] = None

    def check(self) -> None:
        """Refuse a period that runs backwards."""
        if self.start_date is not None and self.end_date is not None and self.start_date > self.end_date:
            raise errors.dates_reversed()

    def resolved(self, usual_start: datetime | None = None) -> tuple[datetime, datetime]:
        """Start and end, which default to `usual_start` (nothing was before it) or 30 days ago, and to now."""
        now = datetime.now(UTC)
        end = self.end_date or now
        start = self.start_date or (now - USUAL_PERIOD if usual_start is None else min(usual_start, end))
        if start > end:
            raise errors.dates_reversed()
        return start, end
