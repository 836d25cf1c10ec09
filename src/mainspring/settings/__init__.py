"""Settings: `load` reads them from wherever they are set."""

from mainspring.settings.model import Settings
from mainspring.settings.sources import load

__all__ = ["Settings", "load"]
