"""Settings that are secret are in no error and in no repr."""

import traceback

import pytest

from mainspring.domain.errors import SettingsError
from mainspring.services.secrets import generate_key
from mainspring.settings import load


def test_keys_are_not_shown():
    key = generate_key()
    settings = load(encryption_keys=key, database_url="postgres://ada:hunter2@db/app")

    assert settings.encryption_keys.get_secret_value() == key
    assert key not in f"{settings!r} {settings} {settings.model_dump()}"
    assert "hunter2" not in f"{settings!r} {settings}"


def test_keys_come_from_the_environment(monkeypatch):
    key = generate_key()
    monkeypatch.setenv("MAINSPRING_ENCRYPTION_KEYS", key)

    assert load().encryption_keys.get_secret_value() == key


def test_a_wrong_key_is_refused_without_being_shown():
    wrong = "-".join(["hunter2", "is", "no", "key"])
    with pytest.raises(SettingsError, match=r"encryption_keys: .*key number 1 is none") as caught:
        load(encryption_keys=wrong)

    assert wrong not in "".join(traceback.format_exception(caught.value))
