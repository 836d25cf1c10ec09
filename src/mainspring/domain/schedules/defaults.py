"""When the definitions that come with Mainspring run by default."""

from mainspring.domain.housekeeping import PRUNE_HISTORY, PRUNE_KEYS, VACUUM_CHECK
from mainspring.domain.schedules.model import ScheduleSpec

SCHEDULES = tuple(
    ScheduleSpec(
        name=definition.key, definition=definition.key, cron=cron, description="Installed once"
    )
    for definition, cron in (
        (PRUNE_HISTORY, "H H * * *"),
        (PRUNE_KEYS, "H * * * *"),
        (VACUUM_CHECK, "H H * * *"),
    )
)
