"""Profiles: the servers that this person logged in to, each with its token, in a file of theirs."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from mainspring.db import processes
from mainspring.domain.errors import SettingsError

LOCAL = "local"
"""Left by `mainspring up` for as long as it runs."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Where a server is, and what it lets us in by. `pid` is of the program that left it and
    takes it away again."""

    name: str
    server: str
    token: str
    tenant: str | None = None
    pid: int | None = None

    @property
    def is_live(self) -> bool:
        return self.pid is None or processes.exists(self.pid)


@dataclass(slots=True)
class Profiles:
    """All of them; `current` is the one that was logged in to last."""

    current: str | None
    known: dict[str, Profile]

    def chosen(self, name: str | None) -> Profile | None:
        """The one of this name; else the one logged in to, else what `mainspring up` left."""
        if name is not None:
            return self._named(name)
        for each in (self.current, LOCAL):
            profile = self.known.get(each) if each is not None else None
            if profile is not None and profile.is_live:
                return profile
        return None

    def put(self, profile: Profile, *, is_current: bool) -> None:
        self.known[profile.name] = profile
        if is_current:
            self.current = profile.name
        self._save()

    def use(self, name: str) -> Profile:
        profile = self._named(name)
        self.current = name
        self._save()
        return profile

    def remove(self, name: str) -> Profile:
        profile = self._named(name)
        del self.known[name]
        if self.current == name:
            self.current = None
        self._save()
        return profile

    def _named(self, name: str) -> Profile:
        if name not in self.known:
            known = ", ".join(sorted(self.known)) or "none yet"
            raise SettingsError(
                f"there is no profile {name!r} (known: {known}); create one with `mainspring login`"
            )
        return self.known[name]

    def _save(self) -> None:
        from tempfile import NamedTemporaryFile

        path = profiles_path()
        profiles = [asdict(profile) for profile in self.known.values()]
        content = orjson.dumps(
            {"current": self.current, "profiles": profiles}, option=orjson.OPT_INDENT_2
        )
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made for nobody else to read, as temporary files are.
            with NamedTemporaryFile(dir=path.parent, delete=False) as stream:
                stream.write(content)
            Path(stream.name).replace(path)
        except OSError as error:
            raise SettingsError(f"cannot write {path}: {error.strerror}") from error


def profiles_path() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(folder) / "mainspring" / "profiles.json"


def load_profiles() -> Profiles:
    path = profiles_path()
    try:
        facts = orjson.loads(path.read_bytes())
        found = [Profile(**each) for each in facts["profiles"]]
        return Profiles(facts["current"], {profile.name: profile for profile in found})
    except FileNotFoundError:
        return Profiles(None, {})
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"{path} is damaged; delete it and log in again") from None
