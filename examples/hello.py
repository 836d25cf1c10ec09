"""A first job: greets a name, and fails now and then so that you can see a retry."""

from datetime import timedelta

from mainspring import Backoff, Context, Mainspring

app = Mainspring()


@app.job
async def hello(name: str) -> str:
    """Greet someone."""
    return f"Hello, {name}!"


@app.job(max_attempts=3, backoff=Backoff(base=timedelta(seconds=1)))
def wobbly(times: int, ctx: Context) -> str:
    """Fail a given number of times, then succeed."""
    ctx.log.info("trying", attempt_of=times + 1)
    if ctx.attempt <= times:
        raise RuntimeError(f"attempt {ctx.attempt} of {times} that fail")
    return f"worked at attempt {ctx.attempt}"
