"""Queues in responses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mainspring.api.models.base import Answer


class QueueModel(Answer):
    """The live jobs of a queue: ready, waiting, running, or held for approval or parents."""

    name: str
    tenant: str
    ready: int
    waiting: int
    running: int
    held: int
    oldest_ready_at: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "QueueModel":
        own = {name: row[name] for name in cls.model_fields if name in row}
        return cls.model_construct(**own, name=row["queue"], tenant=row["tenant_id"])
