"""The settings file: found, read, and changed without losing what a person wrote around it."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mainspring.domain.errors import SettingsError
from mainspring.settings.rules import DEFAULT_FILE, PREFIX, read_toml

MOST_BYTES = 64 * 1024
_BOM = "\ufeff"
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file says, with the permissions it has; None of those where there is no file."""

    path: Path
    values: dict[str, Any] = field(repr=False)
    mode: int | None


def find() -> tuple[Path, bool]:
    """Which file is meant, and whether somebody named it."""
    named = os.environ.get(f"{PREFIX}CONFIG")
    return (Path(named), True) if named else (Path(DEFAULT_FILE), False)


def read() -> SettingsFile:
    """The file that is named, or the one in the working directory, which may be missing."""
    path, is_named = find()
    if path == Path(os.devnull) or (not is_named and _is_out_of_sight(path)):
        return SettingsFile(path, {}, None)
    text, mode = _read_text(path)
    if mode is None and is_named:
        raise SettingsError(
            f"the settings file {path}, named by --config or {PREFIX}CONFIG, does not exist"
        )
    return SettingsFile(path, read_toml(text, str(path)), mode)


def change(path: Path, key: str, value: str | float | None) -> bool:
    """Write one value, or remove it if None; whether the file is another now. All or nothing."""
    text, mode = _read_text(path)
    before = read_toml(text, str(path))
    if value is None and key not in before:
        return False
    after = _changed(path, text, {key: value})
    expected = {name: said for name, said in before.items() if name != key}
    if value is not None:
        expected[key] = value
    if read_toml(after, str(path)) != expected:
        raise SettingsError(f"{path} cannot be edited safely; change {key} by hand")
    _replace(path, after, mode)
    return True


def _is_out_of_sight(path: Path) -> bool:
    """Whether it is in a directory that may not be entered, as under `sudo -u`."""
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _read_text(path: Path) -> tuple[str, int | None]:
    """Its text and mode; empty and None if there is no such file."""
    try:
        # Opening a pipe would wait for whoever writes to it.
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind):
            raise SettingsError(f"{path} is not a file, so no settings can be read from it")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return "", None
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise SettingsError(f"{path} cannot be read: {reason}") from None
    if len(data) > MOST_BYTES:
        raise SettingsError(f"{path} is larger than {MOST_BYTES:,} bytes, the largest allowed")
    return _decode(data, path), stat.S_IMODE(kind)


def _decode(data: bytes, path: Path) -> str:
    try:
        # Editors on Windows put a mark at the front, and TOML knows none.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise SettingsError(f"{path}, line {line}: this is not UTF-8 text") from None


def _changed(path: Path, text: str, changes: Mapping[str, str | float | None]) -> str:
    import tomlkit  # noqa: PLC0415 - only one command needs it
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    ends = "\r\n" if "\r\n" in text else "\n"
    try:
        document = tomlkit.parse(text.replace("\r\n", "\n"))
        for key, value in changes.items():
            if value is None:
                document.remove(key)
            else:
                document[key] = value
        return tomlkit.dumps(document).replace("\n", ends)
    except (TOMLKitError, RecursionError, ValueError) as problem:
        raise SettingsError(f"{path} cannot be changed: {problem}") from None


def _replace(path: Path, text: str, mode: int | None) -> None:
    """Readers see the old file or the new one; what the path leads to is replaced, not the link."""
    try:
        target = path.resolve()
        with _draft(target.parent) as draft:
            with draft.open("wb") as file:
                file.write((text if not _has_mark(target) else _BOM + text).encode())
                file.flush()
                os.fsync(file.fileno())
            _keep_owner(draft, target)
            draft.chmod(_PRIVATE if mode is None else mode)
            draft.replace(target)
    except OSError as problem:
        raise SettingsError(f"{path} cannot be written: {problem.strerror}") from None


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    import tempfile  # noqa: PLC0415 - slow to import, and most only read

    descriptor, name = tempfile.mkstemp(prefix=f".{DEFAULT_FILE}-", dir=folder)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _has_mark(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(3) == _BOM.encode()
    except FileNotFoundError:
        return False


def _keep_owner(draft: Path, target: Path) -> None:
    """Where root changes somebody's file, it stays theirs to read."""
    if target.exists() and hasattr(os, "chown"):
        was, now = target.stat(), draft.stat()
        if (was.st_uid, was.st_gid) != (now.st_uid, now.st_gid):
            os.chown(draft, was.st_uid, was.st_gid)
