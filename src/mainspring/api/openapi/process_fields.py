"""Fields of processes, for the description of the API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_AT = "2026-01-31T12:00:00Z"

PROCESS_FIELDS: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "Process.checked_at": ("When a scheduler last looked for due slots.", _AT),
        "Process.concurrency": ("Most jobs that a worker runs at once.", 100),
        "Process.expires_at": ("When it is silent unless there is another sign of life.", _AT),
        "Process.host": ("Machine that it runs on.", "worker-1.example.com"),
        "Process.is_alive": ("Whether its last sign of life is young enough.", True),
        "Process.is_stopping": ("Whether it is stopping.", False),
        "Process.kind": ("The role that it plays.", "scheduler"),
        "Process.leads": ("Whether a scheduler is the one that looks for due slots first.", True),
        "Process.name": ("Host and process id, unless they are hidden.", "box:4711"),
        "Process.pid": ("Process id on its machine; 0 for a worker over the API.", 4711),
        "Process.queues": ("Queues that a worker claims from.", ["default"]),
        "Process.running": ("Number of jobs that a worker runs.", 3),
        "Process.started_at": ("When it started.", _AT),
        "Process.version": ("Version of its program.", "1.0.0"),
        "QueueAge.name": ("Name of the queue.", "default"),
        "QueueAge.oldest_ready_at": ("Since when its first ready job has been ready.", _AT),
        "Status.leader": ("The scheduler that leads; null if none does.", ...),
        "Status.queues": ("Queues with ready jobs.", ...),
        "address": ("Where a server listens that is not mounted elsewhere.", "127.0.0.1:8080"),
        "clock_offset_ms": ("Its local time less that of the database, in milliseconds.", -3),
        "database_version": ("Version of PostgreSQL.", "18.0"),
        "oldest_event_at": ("When the event that has waited for longest was emitted.", _AT),
        "round_trip_ms": ("How long the database took to answer, in milliseconds.", 0.8),
        "schema_number": ("Newest migration that it knows.", 20),
        "Status.schema_number": ("Newest migration of the database.", 20),
        "seen_at": ("When it gave its last sign of life.", _AT),
    }
)
