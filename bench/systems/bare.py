"""A bare FastAPI route that does one insert: what a request costs before it has done anything."""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import uvicorn
from fastapi import FastAPI
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

from bench.systems.driver import QUEUE


class Job(BaseModel):
    definition: str
    payload: dict[str, Any]


def make(dsn: str) -> FastAPI:
    pool = AsyncConnectionPool(
        dsn, min_size=4, max_size=20, open=False, kwargs={"autocommit": True}
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pool:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/jobs", status_code=201)
    async def enqueue(job: Job) -> dict[str, str]:
        async with pool.connection() as connection:
            cursor = await connection.execute(
                "insert into mainspring.jobs (queue, definition, payload)"
                " values (%s, %s, %s::jsonb) returning job_id",
                (QUEUE, job.definition, orjson.dumps(job.payload).decode()),
            )
            row = await cursor.fetchone()
        return {"id": str(row[0] if row else "")}

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    uvicorn.run(
        make(options.dsn),
        host="127.0.0.1",
        port=options.port,
        log_level="warning",
        access_log=False,
    )
