"""Writes the blocking client from the async one, without its async and await.

python tools/write_sync_client.py
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import unasync

CLIENT: Final = Path(__file__).parents[1] / "src" / "mainspring" / "client"
NOTE: Final = (
    '"""The blocking client, written by `tools/write_sync_client.py`: change `_async`."""\n'
)
WORDS: Final = {
    "AsyncClient": "Client",
    "AsyncHttpTransport": "HttpTransport",
    "AsyncTransport": "Transport",
    "_async": "_sync",
    "async_transport": "transport",
    # Only for its sleep.
    "asyncio": "time",
}


def write(client: Path) -> None:
    """Write `_sync` anew beside `_async`, as the formatter and the sorter of imports leave it."""
    sources, target = sorted((client / "_async").glob("*.py")), client / "_sync"
    for old in target.glob("*.py"):
        old.unlink()
    rule = unasync.Rule(f"{client}/_async/", f"{target}/", additional_replacements=WORDS)
    unasync.unasync_files([str(path) for path in sources], [rule])
    (target / "__init__.py").write_text(NOTE)
    for command in (["check", "--select", "I", "--fix"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "-q", str(target)], check=True)


if __name__ == "__main__":
    write(CLIENT)
