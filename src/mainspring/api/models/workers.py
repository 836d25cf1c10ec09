"""Workers in responses."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mainspring.api.models.base import Answer, IdOut


class WorkerModel(Answer):
    """A worker process, whether it is alive, and how many of the jobs visible to you it runs. Of
    workers that all tenants share, only operators see the name, the host, the pid and every
    queue."""

    id: IdOut
    name: str
    host: str | None
    pid: int | None
    queues: list[str]
    concurrency: int
    version: str
    started_at: datetime
    renewed_at: datetime
    expires_at: datetime
    is_stopping: bool
    is_alive: bool
    running: int

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "WorkerModel":
        own = {name: row[name] for name in cls.model_fields if name in row}
        return cls.model_construct(**own, id=row["worker_id"])
