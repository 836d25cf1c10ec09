"""The disk of a folder."""

import shutil
from pathlib import Path

from mainspring.domain.checks.server import Disk


def disk_of(folder: Path) -> Disk | None:
    """None if the folder cannot be seen from here."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return Disk(str(folder), usage.total, usage.free)
