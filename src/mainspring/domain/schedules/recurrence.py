"""The slots of a cron expression, an interval or a date, before any calendar.

They are known in two ways: as instants, and as local times (see `zones`). An interval and a date
are instants first, and their local times are what the clock shows then. A cron expression names
local times first, also some that the clock skips, and the clock makes instants of them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from mainspring.domain.schedules import cron, zones
from mainspring.domain.schedules.cron import Cron, DstFold, DstGap

_TICK = timedelta(microseconds=1)
_LOCAL_TIMES = ZoneInfo("UTC")


@dataclass(frozen=True, slots=True)
class Recurrence:
    """Either an expression or a date; intervals count from `anchor_at`."""

    zone: ZoneInfo
    expression: Cron | None = None
    at: datetime | None = None
    gap: DstGap = DstGap.RUN_AFTER
    fold: DstFold = DstFold.ONCE
    anchor_at: datetime | None = None

    @property
    def runs_after_gaps(self) -> bool:
        """Whether a local time that the clock skips still counts, right after the gap."""
        names_local_times = self.expression is not None and self.expression.fields is not None
        is_fixed = self.expression is not None and self.expression.is_fixed_time
        return self.gap is DstGap.RUN_AFTER and (is_fixed or not names_local_times)

    def next_after(self, after: datetime) -> datetime | None:
        if self.expression is None:
            return self.at if self.at is not None and self.at > after else None
        return cron.next_after(
            self.expression,
            self.zone,
            after,
            gap=self.gap,
            fold=self.fold,
            anchor=self.anchor_at,
        )

    def first_local_time(self, start: datetime, end: datetime) -> datetime | None:
        """The earliest local time from `start` up to, without, `end`."""
        if self.expression is not None and self.expression.fields is not None:
            named = cron.next_after(
                self.expression, _LOCAL_TIMES, start.replace(tzinfo=UTC) - _TICK
            )
            local_time = named and named.replace(tzinfo=None)
            return local_time if local_time is not None and local_time < end else None
        # Around a change of the clock these local times are shown under either offset.
        offsets = {*zones.offsets(self.zone, start), *zones.offsets(self.zone, end)}
        shown = (self._first_shown(start, end, offset) for offset in offsets)
        return min((local_time for local_time in shown if local_time is not None), default=None)

    def _first_shown(self, start: datetime, end: datetime, offset: timedelta) -> datetime | None:
        slot = self.next_after(zones.to_utc(start, offset) - _TICK)
        while slot is not None and slot < zones.to_utc(end, offset):
            local_time = zones.local_time_of(self.zone, slot)
            if start <= local_time < end:
                return local_time
            slot = self.next_after(slot)
        return None
