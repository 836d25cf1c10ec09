"""When the definitions that come with Mainspring run by default."""

from types import MappingProxyType

from mainspring.domain.housekeeping import DOCTOR, PRUNE_HISTORY, PRUNE_KEYS, VACUUM_CHECK
from mainspring.domain.schedules.model import ScheduleSpec

SCHEDULES = tuple(
    ScheduleSpec(
        name=definition.key, definition=definition.key, cron=cron, description="Installed once"
    )
    for definition, cron in (
        (DOCTOR, "H H * * *"),
        (PRUNE_HISTORY, "H H * * *"),
        (PRUNE_KEYS, "H * * * *"),
    )
)

# A database that was given the old one keeps it, as it is by now, and is not given the new one.
REPLACED = MappingProxyType({DOCTOR.key: VACUUM_CHECK.key})
