"""Writes the lists of nouns of the client and of the app from the modules that hold them.

python tools/write_nouns.py
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[1] / "src" / "mainspring"
RESOURCES: Final = '''\
"""The resources of a client, written by `tools/write_nouns.py` from their modules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
{imports}


class Resources:
    """What a client has an attribute for; it imports each on first use."""

{lines}
'''
NAMESPACES: Final = '''\
"""The namespaces of an app, written by `tools/write_nouns.py` from their modules."""

from typing import TYPE_CHECKING

from mainspring.app.namespaces import App

if TYPE_CHECKING:
{imports}


class Namespaces(App):
    """The part of `Mainspring` that has an attribute for each noun, imported on first use."""

{lines}
'''


def nouns(folder: Path, base: str) -> Mapping[str, str]:
    """The class derived from the base in each module that has one, by the module's name."""
    pattern = re.compile(rf"^class (\w+)\({base}\):", re.MULTILINE)
    found = {path.stem: pattern.search(path.read_text()) for path in sorted(folder.glob("*.py"))}
    return {noun: match[1] for noun, match in found.items() if match}


def resources(client: Path) -> str:
    known = nouns(client / "_async", "Resource")
    imports = [
        f"    from mainspring.client._async.{noun} import {name}" for noun, name in known.items()
    ]
    lines = [f'    {noun}: "{name}"' for noun, name in known.items()]
    return RESOURCES.format(imports="\n".join(imports), lines="\n".join(lines))


def namespaces(app: Path) -> str:
    known = nouns(app, "Namespace")
    imports = [f"    from mainspring.app.{noun} import {name}" for noun, name in known.items()]
    lines = [f'    {noun}: "{name}"' for noun, name in known.items()]
    return NAMESPACES.format(imports="\n".join(imports), lines="\n".join(lines))


if __name__ == "__main__":
    (SOURCE / "client" / "_async" / "resources.py").write_text(resources(SOURCE / "client"))
    (SOURCE / "app" / "nouns.py").write_text(namespaces(SOURCE / "app"))
