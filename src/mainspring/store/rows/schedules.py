"""Schedules."""

from collections.abc import Mapping
from typing import Any

from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import FIELD_NAMES, ScheduleSpec
from mainspring.domain.schedules.slots import CatchUp, Overlap


def read_spec(row: Mapping[str, Any]) -> ScheduleSpec:
    facts = {name: row[name] for name in FIELD_NAMES}
    facts["dst_gap"], facts["dst_fold"] = DstGap(row["dst_gap"]), DstFold(row["dst_fold"])
    facts["catch_up"], facts["overlap"] = CatchUp(row["catch_up"]), Overlap(row["overlap"])
    return ScheduleSpec(**facts)
