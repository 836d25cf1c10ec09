"""The previous release, as a source tree from the history of this repository."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.warm import ROOT

# Move this to the tag of a release in the commit that follows it, and at no other time: what is
# here is what must go on working beside the schema of today. Until 0.1.0 is tagged it is the commit
# that made the baseline.
PREVIOUS = "4d642dc48113a2b85d8afe55e41bb03fd8e4e511"

# The last commit before the baseline; databases that it made are adopted.
UNRELEASED = "8087aaad61e608ce8e87eb28c038cf55daa04763"


def export(commit: str, folder: Path) -> Path:
    """The `src` of a commit. Without history the test is skipped, but never in CI."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "src"],
        check=False,
        capture_output=True,
    )
    if done.returncode != 0:
        said = done.stderr.decode().strip()
        reason = f"needs commit {commit[:12]} of a full git checkout: {said}"
        if os.environ.get("CI"):
            pytest.fail(f"{reason}; in CI fetch the whole history (fetch-depth: 0)")
        pytest.skip(reason)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"
