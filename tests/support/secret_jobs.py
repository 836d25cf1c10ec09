"""Jobs that tell a secret in every way they can; what they were given is read back as a hash."""

import base64
import hashlib
import logging
import os
import sys
from urllib.parse import quote

import psycopg

from mainspring import Context, Fail, Mainspring
from tests.support.apps import AT_ONCE
from tests.support.secret_schemas import MARKED, of

TABLES = "create table heard (job text, hash text)"
SCHEMA = of(word=MARKED, way={"type": "string"})
WAYS = ("return", "raise", "fail", "refuse", "transaction")

app = Mainspring()


def hear(job: str, word: str) -> None:
    """Say which secret the handler got, without saying it."""
    with psycopg.connect(os.environ["MAINSPRING_DATABASE_URL"], autocommit=True) as connection:
        digest = hashlib.sha256(word.encode()).hexdigest()
        connection.execute("insert into heard values (%s, %s)", (job, digest))


def tell(word: str) -> None:
    """On every stream of the process."""
    sys.stdout.write(f"it is {word}\n")
    sys.stderr.write(f"in a URL {quote(word, safe='')}, in code {_code(word)}\n")
    sys.stdout.flush()
    logging.getLogger("handler").warning("logged %s and %r", word, {"word": word})


def report(ctx: Context, word: str) -> None:
    ctx.progress(1, 2, f"at {word}", data={"word": [word], word: 1})
    ctx.log.warning("in the log of the job", word=word, line=f"has {word}")


def answer(ctx: Context, word: str, way: str) -> object:
    local = {"word": word}
    match way:
        case "raise":
            raise ValueError(f"cannot use {local!r} or {_code(word)}")
        case "fail":
            return Fail(f"would not use {word} ({quote(word, safe='')})")
        case "refuse":
            raise KeyError(word)
    return {"word": word, "words": [f"<{word}>", _code(word)], word: True}


def _code(word: str) -> str:
    return base64.b64encode(f"user:{word}".encode()).decode()


@app.job(arg_schema=SCHEMA, max_attempts=2, backoff=AT_ONCE)
async def tell_in_loop(ctx: Context, word: str, way: str) -> object:
    hear("loop", word)
    tell(word)
    report(ctx, word)
    if ctx.attempt == 1:
        await ctx.acheckpoint({"word": word})
    else:
        hear("checkpoint", ctx.saved["word"])
    if way == "transaction":
        async with ctx.transaction():
            return answer(ctx, word, way)
    return answer(ctx, word, way)


@app.job(arg_schema=SCHEMA, max_attempts=1)
def tell_in_thread(ctx: Context, word: str, way: str) -> object:
    hear("thread", word)
    tell(word)
    report(ctx, word)
    if way == "transaction":
        with ctx.transaction():
            return answer(ctx, word, way)
    return answer(ctx, word, way)


@app.job(arg_schema=SCHEMA, max_attempts=1, mode="process")
def tell_in_process(ctx: Context, word: str, way: str) -> object:
    hear("process", word)
    tell(word)
    report(ctx, word)
    if way == "transaction":
        with ctx.transaction():
            return answer(ctx, word, way)
    return answer(ctx, word, way)
