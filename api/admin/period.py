"""The period of a question about usage."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from api import errors
from api.parameters import Moment, Question
from api.sources import clock

USUAL_PERIOD = timedelta(days=30)
_EARLIEST = datetime.min.replace(tzinfo=UTC) + USUAL_PERIOD


class Period(Question, frozen=True, kw_only=True):
    """The period of usage, exact to the minute: it includes the whole minute of `start_date`, and that of `end_date`
    unless `end_date` is the beginning of a minute. Usage older than USAGE_MINUTES_DAYS is counted in whole days. The
    breakdown and the export count whole hours.
    """

    start_date: Annotated[datetime | None, Moment("Invalid start_date format")] = None
    end_date: Annotated[datetime | None, Moment("Invalid end_date format", last=True)] = None

    def check(self) -> None:
        """Refuse a period that ends before it starts."""
        if self.start_date is not None and self.end_date is not None and self.start_date > self.end_date:
            raise errors.dates_reversed()

    def resolved(self, usual_start: datetime | None = None) -> tuple[datetime, datetime]:
        """Start and end. The start defaults to `usual_start` (no usage is older) or 30 days ago, the end to now.

        The default start of a period that ended earlier is 30 days before its end. The default end of a period that
        starts in the future is its start.
        """
        now = clock.now()
        end = self.end_date or max(now, self.start_date or now)
        if usual_start is None:
            usual_start = (now if now - USUAL_PERIOD <= end else max(end, _EARLIEST)) - USUAL_PERIOD
        return self.start_date or min(usual_start, end), end
