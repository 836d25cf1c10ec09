"""Log lines of a process, as its settings ask for them."""

import os
import socket

from mainspring import telemetry
from mainspring.settings import Settings
from mainspring.telemetry import LogFormat


def configure(settings: Settings, *, role: str, **process: str) -> None:
    """Once the app is imported: where it has set up logging itself, that stays, unless a setting
    says otherwise. JSON lines have the role and the other facts of the process."""
    given = settings.given
    telemetry.configure(
        LogFormat(settings.log_format) if "log_format" in given else None,
        level=settings.log_level if "log_level" in given else None,
        role=role,
        process=f"{socket.gethostname()}:{os.getpid()}",
        **process,
    )
