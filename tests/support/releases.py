"""The previous release, as a source tree from the history of this repository."""

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.warm import ROOT

# Move this to the tag of a release in the commit that follows the release: what is here must go on
# working beside the schema of today. Until 0.1.0 is tagged, and only then, move it where a change
# breaks with unreleased programs on purpose. It is the oldest commit that knows at most once: its
# migration changes what functions return, and such a one can only be the last of a release.
PREVIOUS = "0a0ee2f5d692ee85f6fb3b7bc325f7495f852454"

# The commit that made the baseline; databases that it made are upgraded with all they hold.
BASELINE = "f1bdaa833eecfb7a4f8bd441aa2e2afad474ce01"

# The last commit before the baseline; databases that it made are adopted.
UNRELEASED = "8087aaad61e608ce8e87eb28c038cf55daa04763"


def export(commit: str, folder: Path) -> Path:
    """The `src` of a commit. Without history the test is skipped, but never in CI."""
    git = shutil.which("git") or "git"
    command = [git, "-C", str(ROOT), "archive", "--format=tar", commit, "src"]
    try:
        done = subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        _give_up(commit, "git is not installed")
    except subprocess.CalledProcessError as error:
        _give_up(commit, error.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _give_up(commit: str, problem: str) -> NoReturn:
    reason = f"needs commit {commit[:12]} of a full git checkout: {problem}"
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; in CI fetch the whole history (fetch-depth: 0)")
    pytest.skip(reason)
