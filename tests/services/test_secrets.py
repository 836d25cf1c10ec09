"""Encrypted payloads: only at secret paths, only with keys, and of use in one place alone."""

import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import (
    DuplicateJob,
    IdempotencyConflict,
    InvalidPayload,
    SettingsError,
)
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.secrets.keys import read_keys
from mainspring.domain.types import TenantId
from mainspring.services.secrets import KeyRing, Owner, generate_key
from mainspring.settings import load
from tests.support.secret_schemas import MARKED, of

SCHEMA = of(user={"type": "string"}, word=MARKED, all={"items": of(word={"writeOnly": True})})
PATHS = (("all", "*", "word"), ("word",))
ADA = Owner(TenantId("default"), "login")
SECRET = {"user": "ada", "word": "hunter2", "all": [{"word": "hunter3"}, {"word": None}]}
FIRST, SECOND = generate_key(), generate_key()
MINUTE = timedelta(minutes=1)


def ring(*keys: str) -> KeyRing:
    return KeyRing(read_keys(",".join(keys)))


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    """An app with keys, whose job `login` has secrets."""
    settings = load(database_url=database_url, encryption_keys=FIRST)
    async with Mainspring(settings=settings) as app:

        @app.job(key="login", arg_schema=SCHEMA)
        async def login(**payload: object) -> None: ...

        @app.job(key="enter", arg_schema=SCHEMA)
        async def enter(**payload: object) -> None: ...

        yield app


def stored(url: str, table: str = "jobs") -> list[Any]:
    with psycopg.connect(url) as connection:
        rows = connection.execute(f"select payload from mainspring.{table}".encode()).fetchall()
    return [payload for (payload,) in rows]


# The ring


def test_what_is_encrypted_can_be_decrypted_again():
    encrypted = ring(FIRST).encrypt(SECRET, PATHS, ADA)
    decrypted = ring(FIRST).decrypt(encrypted, ADA)

    assert (decrypted.payload, decrypted.secrets) == (SECRET, {"hunter2", "hunter3"})
    assert "hunter" not in str(encrypted)
    assert (encrypted["user"], encrypted["all"][1]) == ("ada", {"word": None})


@pytest.mark.parametrize("value", ["", "ü", 0, 1.5, True, [1, {"a": None}], {"b": "c"}])
def test_any_value_keeps_its_type(value):
    encrypted = ring(FIRST).encrypt({"word": value}, (("word",),), ADA)

    assert ring(FIRST).decrypt(encrypted, ADA).payload == {"word": value}


def test_equal_values_look_different_and_have_equal_fingerprints():
    keys = ring(FIRST)
    one, other = (keys.encrypt(SECRET, PATHS, ADA, is_compared=True)["word"] for _ in range(2))

    assert one["value"] != other["value"]
    assert one["fingerprint"] == other["fingerprint"]
    assert "fingerprint" not in keys.encrypt(SECRET, PATHS, ADA)["word"]


@pytest.mark.parametrize(
    ("payload", "owner", "key"),
    [
        ({"word": "hunter3"}, ADA, FIRST),
        ({"word": "hunter2"}, Owner(TenantId("acme"), "login"), FIRST),
        ({"word": "hunter2"}, Owner(TenantId("default"), "x"), FIRST),
        ({"word": "hunter2"}, ADA, SECOND),
    ],
    ids=["value", "tenant", "definition", "key"],
)
def test_a_fingerprint_is_of_one_value_of_one_owner_under_one_key(payload, owner, key):
    def fingerprint(payload: Any, owner: Owner, key: str) -> str:
        encrypted = ring(key).encrypt(payload, (("word",),), owner, is_compared=True)
        return str(encrypted["word"]["fingerprint"])

    assert fingerprint({"word": "hunter2"}, ADA, FIRST) != fingerprint(payload, owner, key)


def test_every_key_decrypts_and_the_first_one_encrypts():
    old = ring(FIRST).encrypt(SECRET, PATHS, ADA)
    both = ring(SECOND, FIRST)

    assert both.decrypt(old, ADA).payload == SECRET
    assert ring(SECOND).decrypt(both.encrypt(SECRET, PATHS, ADA), ADA).payload == SECRET


def test_without_the_key_the_error_names_it_and_the_field():
    encrypted = ring(FIRST).encrypt(SECRET, PATHS, ADA)

    with pytest.raises(
        UnreadableSecret, match=r"payload\.word is encrypted with the key"
    ) as caught:
        ring(SECOND).decrypt({"word": encrypted["word"]}, ADA)

    assert caught.value.key_id == read_keys(FIRST)[0].id


def _moved(encrypted: dict[str, Any]) -> dict[str, Any]:
    return {"user": encrypted["word"]}


def _broken(encrypted: dict[str, Any]) -> dict[str, Any]:
    value = encrypted["word"]["value"]
    return {"word": {**encrypted["word"], "value": ("B" if value[0] == "A" else "A") + value[1:]}}


def _without_nonce(encrypted: dict[str, Any]) -> dict[str, Any]:
    word = {name: part for name, part in encrypted["word"].items() if name != "nonce"}
    return {"word": word}


def _without_value(encrypted: dict[str, Any]) -> dict[str, Any]:
    return {"word": {**encrypted["word"], "value": None}}


@pytest.mark.parametrize("change", [_moved, _broken, _without_nonce, _without_value])
def test_a_value_that_was_changed_or_moved_is_refused(change):
    encrypted = ring(FIRST).encrypt(SECRET, PATHS, ADA)

    with pytest.raises(UnreadableSecret, match="was changed, or moved") as caught:
        ring(FIRST).decrypt(change(encrypted), ADA)

    assert caught.value.key_id is None


@pytest.mark.parametrize(
    "owner", [Owner(TenantId("acme"), "login"), Owner(TenantId("default"), "x")]
)
def test_a_value_is_worth_nothing_to_another_tenant_or_definition(owner):
    encrypted = ring(FIRST).encrypt(SECRET, PATHS, ADA)

    with pytest.raises(UnreadableSecret, match="was changed, or moved"):
        ring(FIRST).decrypt(encrypted, owner)


def test_a_renewed_payload_is_under_the_first_key():
    keys = ring(SECOND, FIRST)
    renewed = keys.renew(ring(FIRST).encrypt(SECRET, PATHS, ADA), ADA)

    assert ring(SECOND).decrypt(renewed, ADA).payload == SECRET
    assert keys.renew(renewed, ADA) == renewed


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)

    with pytest.raises(SettingsError, match=r"pip install 'mainspring\[encryption\]'"):
        ring(FIRST)


# The doors


async def test_an_enqueued_secret_is_encrypted_at_rest(app, database_url):
    await app.aenqueue("login", SECRET)

    (payload,) = stored(database_url)
    assert "hunter" not in str(payload)
    assert ring(FIRST).decrypt(payload, ADA).payload == SECRET


async def test_many_are_encrypted_too(app, database_url):
    await app.aenqueue_many("login", [SECRET] * 3)

    payloads = stored(database_url)
    assert [ring(FIRST).decrypt(each, ADA).payload for each in payloads] == [SECRET] * 3


async def test_a_payload_is_checked_before_it_is_encrypted(app):
    with pytest.raises(InvalidPayload, match="payload/word"):
        await app.aenqueue("login", {"word": 7})


async def test_without_keys_a_secret_is_stored_as_it_is(app, database_url):
    app.use(load(database_url=database_url))

    await app.aenqueue("login", SECRET)

    assert stored(database_url) == [SECRET]


async def test_people_see_neither_the_secret_nor_what_became_of_it(app):
    handle = await app.aenqueue("login", SECRET)

    assert (await handle.ajob()).payload == {
        "user": "ada",
        "word": "[redacted]",
        "all": [{"word": "[redacted]"}, {"word": None}],
    }


async def test_a_payload_that_was_copied_from_a_screen_is_refused(app, database_url):
    for keys in (FIRST, ""):
        app.use(load(database_url=database_url, encryption_keys=keys))
        with pytest.raises(
            InvalidPayload, match=r"the payload's word is \[redacted\], the placeholder"
        ):
            await app.aenqueue("login", {"word": "[redacted]"})
        with pytest.raises(
            InvalidPayload, match=r"the payload's all\.0\.word is \[redacted\], the placeholder"
        ):
            await app.aenqueue_many("login", [{"all": [{"word": "[redacted]"}]}])


async def test_equal_contents_are_recognised(app):
    handle = await app.aenqueue("login", SECRET, dedupe_by="content")

    with pytest.raises(DuplicateJob) as caught:
        await app.aenqueue("login", SECRET, dedupe_by="content")
    other = await app.aenqueue("login", {**SECRET, "word": "hunter9"}, dedupe_by="content")

    assert caught.value.job_id == handle.id
    assert other.is_new


async def test_a_repeated_request_is_recognised(app):
    first = await app.aenqueue("login", SECRET, idempotency_key="k")
    again = await app.aenqueue("login", SECRET, idempotency_key="k")

    assert (again.id, again.is_new) == (first.id, False)
    with pytest.raises(IdempotencyConflict):
        await app.aenqueue("login", {**SECRET, "word": "hunter9"}, idempotency_key="k")


@pytest.mark.parametrize(
    "options", [{"idempotency_key": "{}"}, {"dedupe_by": "content"}], ids=["repeat", "content"]
)
async def test_equal_secrets_are_stored_differently(app, database_url, connection, options):
    for number in range(2):
        given = {name: value.format(number) for name, value in options.items()}
        user = "ada" if "idempotency_key" in given else str(number)
        await app.aenqueue("login", {**SECRET, "user": user}, **given)

    first, second = stored(database_url)
    assert first["word"]["value"] != second["word"]["value"]
    assert first["word"].keys() == {"$mainspring", "key", "nonce", "value"}
    kept = connection.execute("select fingerprint from mainspring.enqueue_keys").fetchall()
    assert "hunter" not in str(kept)
    assert len(set(kept)) == len(kept)


async def test_the_window_of_a_trigger_knows_an_equal_secret(app, database_url):
    await app.triggers.acreate(
        "t", event="e", definition="login", payload={"word": "{{event.w}}"}, dedupe_window=MINUTE
    )
    for word in ("hunter2", "hunter2", "hunter3"):
        await app.aemit("e", {"w": word})
    await app.events.adispatch()

    payloads = [ring(FIRST).decrypt(each, ADA).payload for each in stored(database_url)]
    assert payloads == [{"word": "hunter2"}, {"word": "hunter3"}]
    assert "fingerprint" not in str(stored(database_url))


async def test_an_edit_encrypts_what_is_new_and_keeps_the_rest(app, database_url):
    handle = await app.aenqueue("login", {**SECRET, "all": [{"word": "hunter3"}]})
    await app.jobs.acancel(handle.id)
    edited = {"user": "bob", "word": "another", "all": [{"word": "[redacted]"}]}

    await app.jobs.aretry(handle.id, edited)

    (payload,) = stored(database_url)
    assert "another" not in str(payload)
    assert ring(FIRST).decrypt(payload, ADA).payload == {**edited, "all": [{"word": "hunter3"}]}


# Schedules


async def test_the_payload_of_a_schedule_is_encrypted(app, database_url):
    state = await app.schedules.acreate("daily", "login", cron="@daily", payload=SECRET)

    (payload,) = stored(database_url, "schedules")
    assert ring(FIRST).decrypt(payload, ADA).payload == SECRET
    assert state.spec.payload["word"] == "[redacted]"
    (listed,) = await app.schedules.alist()
    assert listed.spec.payload == state.spec.payload


async def test_a_schedule_keeps_the_secrets_its_editor_could_not_see(app, database_url):
    state = await app.schedules.acreate("daily", "login", cron="@daily", payload=SECRET)

    await app.schedules.aupdate("daily", payload={**state.spec.payload, "user": "bob"})

    (payload,) = stored(database_url, "schedules")
    assert ring(FIRST).decrypt(payload, ADA).payload == {**SECRET, "user": "bob"}


async def test_a_schedule_of_another_definition_is_encrypted_for_that(app, database_url):
    await app.schedules.acreate("daily", "login", cron="@daily", payload=SECRET)

    await app.schedules.aupdate("daily", definition="enter")

    (payload,) = stored(database_url, "schedules")
    assert ring(FIRST).decrypt(payload, Owner(ADA.tenant_id, "enter")).payload == SECRET


async def test_a_template_in_a_secret_field_can_still_be_rendered(app, database_url):
    template = {"word": "{{slot_at}}"}
    await app.schedules.acreate("daily", "login", cron="@daily", payload=template)

    assert stored(database_url, "schedules") == [template]


async def test_the_same_declaration_changes_nothing(app, database_url):
    app.schedules.declare("@daily", payload=SECRET)(app.functions["login"])

    await app.schedules.aprepare()
    before = stored(database_url, "schedules")
    await app.schedules.aprepare()

    assert stored(database_url, "schedules") == before
    assert ring(FIRST).decrypt(before[0], ADA).payload == SECRET


async def test_schedules_with_equal_secrets_are_stored_differently(app, database_url):
    for name in ("one", "two"):
        await app.schedules.acreate(name, "login", cron="@daily", payload=SECRET)

    first, second = stored(database_url, "schedules")
    assert first["word"]["value"] != second["word"]["value"]


async def test_a_schedule_with_the_word_for_a_secret_is_refused(app):
    with pytest.raises(
        InvalidPayload, match=r"the payload's word is \[redacted\], the placeholder"
    ):
        await app.schedules.acreate("daily", "login", cron="@daily", payload={"word": "[redacted]"})
