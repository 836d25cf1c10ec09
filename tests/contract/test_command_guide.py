"""The guide to programs can be followed from top to bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.contract.test_docs import ROOT
from tests.support.commands import clean_environment

GUIDE = (ROOT / "docs" / "guides" / "commands.md").read_text()
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_guide_to_commands_can_be_followed(database_url: str, tmp_path: Path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "mainspring").write_text(f'#!/bin/sh\nexec {sys.executable} -m mainspring "$@"\n')
    (tools / "mainspring").chmod(0o755)
    script = "\n".join(["set -eu", *BLOCK.findall(GUIDE), "kill %1 2>/dev/null || true", "wait"])
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
    environment["PATH"] = f"{tools}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert '{"exit_code":0}' in done.stdout.replace(" ", "")
    assert "resizing the photos of default to 800" in done.stdout
