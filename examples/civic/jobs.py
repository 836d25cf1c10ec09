"""Runs scheduled SQL functions. This is all the Python there is; the jobs are in tables.sql.

A function is in the schema `scheduled`, takes nothing and returns jsonb, with at least `success`
and `message`. What it does commits together with the job's success; if it raises, or says that
it had none, it is rolled back and tried again.
"""

from typing import Any

import psycopg
from psycopg import sql

from mainspring import Context, Fail, Mainspring

app = Mainspring()


@app.job(key="sql_function")
async def run_function(ctx: Context, function: str) -> object:
    """Run a function of the schema `scheduled` and keep its answer."""
    call = sql.SQL("select scheduled.{}()").format(sql.Identifier(function))
    try:
        async with ctx.transaction() as connection:
            row = await (await connection.execute(call)).fetchone()
    except psycopg.errors.UndefinedFunction as error:
        return Fail(f"{function}: {error.diag.message_primary}")
    return checked(function, row[0] if row else None)


def checked(function: str, answer: Any) -> dict[str, Any]:
    """The answer if it is one of success; raises what is wrong otherwise."""
    if not (isinstance(answer, dict) and isinstance(answer.get("success"), bool)):
        raise TypeError(f"{function} must return {{success, message}}, not {answer!r}")
    if not answer["success"]:
        raise RuntimeError(f"{function}: {answer.get('message')}")
    return answer
