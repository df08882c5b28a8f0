"""The admissions of this process: its share of each limit without Valkey, and what it reports to Valkey afterwards."""

import math
from collections import Counter, deque
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from api.keys.limits.verdicts import MINUTE_S, GoodKey, QuotaLeft, Verdict
from api.sources import clock


def share(limit: int, processes: int) -> int:
    """What one of several processes may admit of a limit while it knows nothing of the others."""
    return max(limit // processes, 1)


class LocalLimits:
    """The sliding minutes of this process, with and without Valkey. Times are seconds on its monotonic clock."""

    def __init__(self) -> None:
        self._admissions: dict[UUID, deque[float]] = {}
        self._views: dict[UUID, _View] = {}
        self.unreported: list[tuple[UUID, float]] = []
        self._of_quotas: Counter[tuple[UUID, datetime]] = Counter()  # admitted without Valkey, by period
        self._swept_at = 0.0

    def take(self, good: GoodKey, processes: int, now_s: float) -> Verdict:
        """Count one request without Valkey, against this process' share of the limit and of the rest of the quota,
        according to the usage tables.
        """
        own_share = self._share_left(good, processes, now_s)
        admissions = self._minute_of(good.credential_id, now_s)
        left = self._left_of(good, processes)
        quota_exceeded = left is not None and not left.remaining
        admitted = len(admissions) < own_share and not quota_exceeded
        if admitted:
            admissions.append(now_s)
            self.unreported.append((good.credential_id, now_s))
            if good.quota is not None:
                self._of_quotas[good.credential_id, good.quota.since] += 1
                left = self._left_of(good, processes)
        first_to_leave = admissions[max(len(admissions) - max(own_share, 1), 0)] if admissions else now_s
        return Verdict(
            credential_id=good.credential_id,
            network_id=good.network_id,
            admitted=admitted,
            limit=good.limit,
            remaining=max(own_share - len(admissions), 0),
            reset_s=math.ceil(first_to_leave + MINUTE_S - now_s),
            quota_exceeded=quota_exceeded,
            quota=left,
        )

    def record(self, credential_id: UUID, admitted: bool, left: int, now_s: float) -> None:
        """Remember a request that Valkey has counted, in case Valkey loses its data, and what Valkey has `left` of the
        key's minute for all processes.
        """
        admissions = self._minute_of(credential_id, now_s)
        if admitted:
            admissions.append(now_s)
        self._views[credential_id] = _View(now_s, left, len(admissions))

    def count(self, credential_id: UUID, now_s: float) -> int:
        """How many requests of the last minute this process has admitted."""
        return len(self._minute_of(credential_id, now_s))

    def all(self) -> list[tuple[UUID, float]]:
        """All admissions of the last minute, and some older ones: the credential and the time."""
        return [(credential_id, moment) for credential_id, moments in self._admissions.items() for moment in moments]

    def take_unreported(self) -> list[tuple[UUID, float]]:
        """The admissions without Valkey since the last call. Their use of quotas reaches Valkey via the usage table."""
        unreported, self.unreported = self.unreported, []
        self._of_quotas.clear()
        return unreported

    def _share_left(self, good: GoodKey, processes: int, now_s: float) -> int:
        """This process' share of a limit. In the first minute of an outage, others may have taken more than theirs."""
        own_share, view = share(good.limit, processes), self._views.get(good.credential_id)
        if view is None or now_s - view.at_s >= MINUTE_S:
            return own_share
        return min(own_share, view.own + -(-view.left // processes))

    def _left_of(self, good: GoodKey, processes: int) -> QuotaLeft | None:
        """The rest of a quota that this process may admit without Valkey."""
        if good.quota is None:
            return None
        together = max(good.quota.requests - good.quota.used, 0)
        own = self._of_quotas[good.credential_id, good.quota.since]
        reset_s = max(math.ceil((good.quota.until - clock.now()).total_seconds()), 1)
        if own < together:  # what others leave of their shares may be admitted here once Valkey is back
            reset_s = min(reset_s, MINUTE_S)
        return QuotaLeft(max(together // processes - own, 0), reset_s)

    def _minute_of(self, credential_id: UUID, now_s: float) -> deque[float]:
        self._sweep(now_s)
        admissions = self._admissions.get(credential_id)
        if admissions is None:
            admissions = self._admissions[credential_id] = deque()
        while admissions and now_s - admissions[0] >= MINUTE_S:
            admissions.popleft()
        return admissions

    def _sweep(self, now_s: float) -> None:
        """Once a minute, forget older admissions."""
        if now_s - self._swept_at > MINUTE_S:
            self._swept_at = now_s
            self._admissions = {
                credential_id: admissions
                for credential_id, admissions in self._admissions.items()
                if admissions and now_s - admissions[-1] <= MINUTE_S
            }
            self._views = {
                credential_id: view for credential_id, view in self._views.items() if now_s - view.at_s < MINUTE_S
            }
            self.unreported = [
                (credential_id, moment) for credential_id, moment in self.unreported if now_s - moment <= MINUTE_S
            ]


class _View(NamedTuple):
    """What Valkey said last of a key's minute: how many admissions were left, and how many were this process' own."""

    at_s: float
    left: int
    own: int
