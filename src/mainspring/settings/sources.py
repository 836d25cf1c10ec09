"""Where settings come from: flags, MAINSPRING_* variables, a file and the defaults, in that order.

The rule is in `rules`; docs/guides/configuration.md explains it to people.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mainspring.domain.errors import SettingsError
from mainspring.domain.suggestions import did_you_mean
from mainspring.settings import file as settings_file
from mainspring.settings import rules
from mainspring.settings.file import SettingsFile
from mainspring.settings.model import FIELDS, NAMES, Settings, WrongValuesError
from mainspring.settings.rules import Finding, Found, Origin


@dataclass(frozen=True, slots=True)
class Sources:
    """All that was said about settings, before any of it is believed."""

    flags: Mapping[str, Any] = field(repr=False)
    environment: Mapping[str, Any] = field(repr=False)
    file: SettingsFile

    @property
    def layers(self) -> dict[Origin, Mapping[str, Any]]:
        return {
            Origin.FLAG: self.flags,
            Origin.ENVIRONMENT: self.environment,
            Origin.FILE: self.file.values,
        }

    def winners(self) -> dict[str, Found]:
        return rules.winners(self.layers)

    def problems(self) -> Iterator[Finding]:
        """What is wrong with what wins, and with the file."""
        yield from self._unknown()
        yield from self._wrong(self.winners())
        yield from self._incomplete()

    def all_problems(self) -> Iterator[Finding]:
        """Also those of values that something else overrides."""
        yield from self._unknown()
        for origin, values in self.layers.items():
            yield from self._wrong(rules.winners({origin: values}))
        yield from self._incomplete()

    def usable(self) -> Settings:
        """Without what is wrong, so that the rest can be looked at."""
        known = {name: found for name, found in self.winners().items() if name in NAMES}
        wrong = {finding.key for finding in self._wrong(known)}
        return _validated({name: found for name, found in known.items() if name not in wrong})

    def _unknown(self) -> Iterator[Finding]:
        for name in self.flags:
            if name not in NAMES:
                yield rules.error(no_such_setting(name), name)
        yield from rules.unknown_keys(self.file.values, NAMES, str(self.file.path))

    def _wrong(self, values: Mapping[str, Found]) -> Iterator[Finding]:
        """Values of known settings that are of another kind, or out of range."""
        try:
            _validated({name: found for name, found in values.items() if name in NAMES})
        except WrongValuesError as error:
            for name, complaint in error.complaints.items():
                said = f"{complaint}; it is set {self._where(name, values[name])}"
                yield rules.error(said, name)

    def _incomplete(self) -> Iterator[Finding]:
        """Settings that need another."""
        has = {name for name, found in self.winners().items() if found.value}
        if "oidc_issuer" in has and "oidc_client_id" not in has:
            said = "setting oidc_client_id: is required when oidc_issuer is set"
            yield rules.error(said, "oidc_client_id")

    def _where(self, name: str, found: Found) -> str:
        match found.origin:
            case Origin.ENVIRONMENT:
                return f"by {rules.variable(name)} in the environment"
            case Origin.FILE:
                return f"in {self.file.path}"
            case _:
                return "by a flag or an argument"


def gather(**flags: Any) -> Sources:
    """Read the sources; raises SettingsError for a file that cannot be read."""
    return Sources(given(flags), read_environment(), settings_file.read())


def load(**flags: Any) -> Settings:
    """Settings from flags that are not None, the environment, the file and the defaults."""
    return settle(gather(**flags))


def settle(sources: Sources) -> Settings:
    """What the sources come to; raises SettingsError for the first thing that is wrong."""
    for problem in sources.problems():
        raise SettingsError(problem.message)
    return _validated(sources.winners())


def read_environment() -> dict[str, str]:
    """The settings that the environment has, in capitals or not."""
    variables = {rules.variable(name): name for name in FIELDS}
    found = {
        variables[name.upper()]: value
        for name, value in os.environ.items()
        if name.upper() in variables
    }
    # The name in capitals wins over one that is spelt otherwise.
    exact = {name: os.environ[each] for each, name in variables.items() if each in os.environ}
    return {**found, **exact}


def no_such_setting(name: str) -> str:
    return f"there is no setting {name!r}{did_you_mean(name.lower(), NAMES)}"


def check_value(name: str, value: Any) -> Settings:
    """Settings with this one value; raises SettingsError if it cannot have it."""
    if name not in NAMES:
        raise SettingsError(no_such_setting(name))
    try:
        return _validated({name: Found(value, Origin.FLAG)})
    except WrongValuesError as error:
        raise SettingsError(str(error)) from None


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _validated(values: Mapping[str, Found]) -> Settings:
    return Settings(**{name: found.value for name, found in values.items()})
