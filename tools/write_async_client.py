"""Writes the async client from the blocking one: the same code, with await in the right places.

python tools/write_async_client.py
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

CLIENT: Final = Path(__file__).parents[1] / "src" / "mainspring" / "client"
FILES: Final = {
    "blocking.py": "awaiting.py",
    "nouns.py": "awaiting_nouns.py",
    "access_nouns.py": "awaiting_access_nouns.py",
}
WORDS: Final = (
    (
        r"^\"\"\"The blocking client;.*\"\"\"$",
        '"""The async client, written by `tools/write_async_client.py` from the blocking one."""',
    ),
    (
        r"^\"\"\"The things that a client has:.*\"\"\"$",
        '"""The nouns of the async client, written by `tools/write_async_client.py`."""',
    ),
    (
        r"^\"\"\"More things that a client has:.*\"\"\"$",
        '"""More nouns of the async client, written by `tools/write_async_client.py`."""',
    ),
    (r"  # noqa: UP028 .*$", ""),
    (r"^import time$", "import asyncio"),
    (r"\btime\.sleep\(", "await asyncio.sleep("),
    (r"\bhttpx\.BaseTransport\b", "httpx.AsyncBaseTransport"),
    (r"\bClient\b", "AsyncClient"),
    (r"\bIterator\b", "AsyncIterator"),
    (r"\bclient\.blocking\b", "client.awaiting"),
    (r"\bclient\.(access_)?nouns\b", r"client.awaiting_\1nouns"),
    (r"\bself\._http\.close\(", "await self._http.aclose("),
    (r"\bself\._http\.request\(", "await self._http.request("),
    (r"\bself\.close\(", "await self.close("),
    (r"\banswer\.read\(", "await answer.aread("),
    (r"\banswer\.iter_lines\(", "answer.aiter_lines("),
    (r"\bwith self\._http\.stream\(", "async with self._http.stream("),
    (r"\b__enter__\b", "__aenter__"),
    (r"\b__exit__\b", "__aexit__"),
    (r"\bfor (line|name, data) in", r"async for \1 in"),
    (r"\bself\.((?:_client\.)?(?:ask|do|send)\()", r"await self.\1"),
    # What is read off an answer comes after the answer.
    (r"await (self\.[\w.]*ask\(.*\))\.(items|payload)$", r"(await \1).\2"),
    # What is not awaited hands an iterator on.
    (r"async for (\w+) in await", r"async for \1 in"),
)
ENTRANCES: Final = ("__aenter__", "__aexit__")


def write(source: str) -> str:
    """The async form of a module of the blocking client."""
    for pattern, word in WORDS:
        source = re.sub(pattern, word, source, flags=re.MULTILINE)
    first, *methods = re.split(r"^(?=    def )", source, flags=re.MULTILINE)
    return first + "".join(map(_method, methods))


def _method(text: str) -> str:
    """Async, if it awaits, yields or is an entrance; one that hands an iterator on stays plain."""
    is_async = re.search(r"\b(await|yield|async)\b", text) or any(
        text.startswith(f"    def {name}(") for name in ENTRANCES
    )
    return re.sub(r"^    def ", "    async def ", text) if is_async else text


def tidy(source: str) -> str:
    """As the formatter and the sorter of imports leave it."""
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "-"]
        done = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True)
        source = done.stdout
    return source


if __name__ == "__main__":
    for name, target in FILES.items():
        (CLIENT / target).write_text(tidy(write((CLIENT / name).read_text())))
