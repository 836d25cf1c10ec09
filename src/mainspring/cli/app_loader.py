"""Finding the `Mainspring` a person names as `module:app`."""

import importlib
import sys
import traceback
from pathlib import Path

from mainspring.app import Mainspring
from mainspring.domain.errors import InputError, SettingsError
from mainspring.domain.suggestions import closest

_OUR_CODE = str(Path(__file__).parents[1])


def load_app(reference: str) -> Mainspring:
    """Import `module:attribute`; the current directory is on the path, as users expect."""
    module_name, colon, attribute = reference.partition(":")
    if not colon or not module_name or not attribute:
        raise InputError(f"--app must be module:name, e.g. jobs:app, not {reference!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except SettingsError:
        raise
    except ModuleNotFoundError as error:
        raise InputError(_not_found(module_name, error)) from error
    except Exception as error:
        raise InputError(f"importing {module_name!r} failed: {_where(error)}") from error
    return _find(module, module_name, attribute)


def _find(module: object, module_name: str, attribute: str) -> Mainspring:
    found = getattr(module, attribute, None)
    if isinstance(found, Mainspring):
        return found
    apps = [name for name, value in vars(module).items() if isinstance(value, Mainspring)]
    if found is not None:
        problem = f"{module_name}:{attribute} is a {type(found).__name__}, not a Mainspring"
    else:
        problem = f"the module {module_name!r} has no {attribute!r}"
    if apps:
        problem += f"; did you mean {module_name}:{closest(attribute, apps) or apps[0]}?"
    raise InputError(problem)


def _not_found(module_name: str, error: ModuleNotFoundError) -> str:
    if error.name and module_name.split(".", maxsplit=1)[0] == error.name.split(".")[0]:
        return (
            f"there is no module {error.name!r} here; --app names a Python file in the current "
            "directory or an installed package, such as jobs:app for jobs.py"
        )
    return f"importing {module_name!r} failed: {_where(error)}"


def _where(error: Exception) -> str:
    """The error and the line of yours that raised it; a syntax error names its own."""
    frames = traceback.extract_tb(error.__traceback__)
    others = ("<frozen ", _OUR_CODE)
    yours = [frame for frame in frames if not frame.filename.startswith(others)]
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) or not yours:
        return said
    return f"{said} ({yours[-1].filename}, line {yours[-1].lineno})"
