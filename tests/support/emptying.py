"""A database that a module's tests use one after another: a clone takes longer than most tests."""

import psycopg

_TABLES = (
    "events",
    "triggers",
    "schedules",
    "slots",
    "schedule_figures",
    "jobs",
    "jobs_history",
    "attempts",
    "outputs",
    "enqueue_keys",
    "workers",
    "definitions",
    "definition_versions",
    "limits",
    "buckets",
    "approvals",
    "dependencies",
    "flows",
    "installed",
)


def empty(url: str) -> None:
    """Remove what earlier tests left, whoever still holds a connection."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        for table in _TABLES:
            connection.execute(f"delete from mainspring.{table}".encode())
        connection.execute("delete from mainspring.tenants where tenant_id <> 'default'")
        connection.execute("update mainspring.tenants set weight = 1, max_running = null")
        connection.execute("delete from mainspring.audit")
        connection.execute("alter sequence mainspring.job_ids restart")
        connection.execute("alter sequence mainspring.event_ids restart")
