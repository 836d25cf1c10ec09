"""A client of the REST API, typed, blocking or async.

with Client("http://127.0.0.1:8080", token) as client:
    made = client.jobs.enqueue("send_welcome", {"user_id": 7})
    for told in client.jobs.follow(made.id):
        print(told.job.state)

`AsyncClient` has the same methods, to be awaited; its lists and streams are for `async for`.
"""

from mainspring.client.awaiting import AsyncClient
from mainspring.client.blocking import Client
from mainspring.domain.errors.client import ApiError, ServerUnreachable

__all__ = ["ApiError", "AsyncClient", "Client", "ServerUnreachable"]
