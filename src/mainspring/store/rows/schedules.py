"""Schedules."""

from collections.abc import Mapping
from typing import Any

from mainspring.domain.schedules.conditions import Gauge, GaugeBounds, GaugeSide
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import FIELD_NAMES, ScheduleSpec
from mainspring.domain.schedules.slots import CatchUp, Overlap
from mainspring.domain.types import Delivery


def read_spec(row: Mapping[str, Any]) -> ScheduleSpec:
    facts = {name: row[name] for name in FIELD_NAMES}
    facts["dst_gap"], facts["dst_fold"] = DstGap(row["dst_gap"]), DstFold(row["dst_fold"])
    facts["catch_up"], facts["overlap"] = CatchUp(row["catch_up"]), Overlap(row["overlap"])
    if (bounds := row["gauge_bounds"]) is not None:
        facts["gauge_bounds"] = GaugeBounds(bounds)
    if (delivery := row["delivery"]) is not None:
        facts["delivery"] = Delivery(delivery)
    return ScheduleSpec(**facts)


def read_gauge(spec: ScheduleSpec, row: Mapping[str, Any]) -> Gauge | None:
    """The gauge of a schedule; None if it has none."""
    if spec.gauge_lower is None or spec.gauge_upper is None:
        return None
    value = row["gauge_value"]
    return Gauge(
        # JSON has no infinity, so PostgreSQL writes it as text.
        value=None if value is None else float(value),
        side=GaugeSide.HIGH if row["gauge_is_high"] else GaugeSide.LOW,
        lower=spec.gauge_lower,
        upper=spec.gauge_upper,
        bounds=spec.gauge_bounds or GaugeBounds.INCLUSIVE,
        read_at=row["gauge_read_at"],
    )
