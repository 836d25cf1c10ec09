"""Secrets in SQL: found as the program finds them, hidden from readers, and put back on edits."""

import json
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from mainspring.db import migrate
from mainspring.domain.secrets.paths import redact, secret_paths
from mainspring.domain.types import JobState
from tests.support.calls import call
from tests.support.rows import insert, insert_definition, insert_job, job, refused
from tests.support.secret_schemas import CORPUS, MARKED, of

LOGIN = of(user={"type": "string"}, word=MARKED, all={"items": of(word=MARKED)})
MARKS = st.sampled_from([{}, {}, {"writeOnly": True}, {"format": "password"}])
TARGETS = st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/$defs/c", "#/properties/x", "#anchor"])
SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    MARKS | TARGETS.map(lambda target: {"$ref": target}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("xyz"), inner, max_size=2),
            "items": inner | st.lists(inner, max_size=2),
            "additionalProperties": inner | st.booleans(),
            "patternProperties": st.dictionaries(st.just("^a"), inner, max_size=1),
            "allOf": st.lists(inner, max_size=2),
            "if": inner,
            "dependentSchemas": st.dictionaries(st.just("x"), inner, max_size=1),
            "$ref": TARGETS,
            "writeOnly": st.booleans(),
        },
    ),
    max_leaves=10,
)
DOCUMENTS = st.tuples(SCHEMAS, st.dictionaries(st.sampled_from("abc"), SCHEMAS, max_size=3)).map(
    lambda parts: dict(parts[0]) | {"$defs": parts[1]}
)


def found_by_sql(connection: psycopg.Connection, schema: Any) -> set[tuple[str, ...]]:
    (paths,) = call(connection, "secret_paths", json.dumps(schema))
    return {tuple(path) for path in paths or ()}


@pytest.fixture
def login(tx):
    """A definition with secrets."""
    insert_definition(tx, "login", arg_schema=Jsonb(LOGIN))
    return "login"


def insert_login(connection: psycopg.Connection, state: JobState, payload: Any, **columns: Any):
    return insert_job(connection, state, definition="login", payload=Jsonb(payload), **columns)


@pytest.mark.parametrize("name", CORPUS)
def test_sql_finds_the_marked_fields(tx, name):
    schema, paths = CORPUS[name]

    assert found_by_sql(tx, schema) == paths


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(DOCUMENTS)
def test_sql_and_the_program_find_the_same(tx, schema):
    assert found_by_sql(tx, schema) == set(secret_paths(schema))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        ),
        max_leaves=10,
    ),
    st.lists(st.lists(st.sampled_from("abc*"), min_size=1, max_size=3), max_size=3),
)
def test_sql_and_the_program_redact_the_same(tx, value, paths):
    (shown,) = call(tx, "redacted", json.dumps(value), json.dumps(paths))

    assert shown == redact(value, tuple(map(tuple, paths)))


def test_a_definition_knows_its_secrets_whoever_writes_it(tx, login):
    stored = "select secret_paths from mainspring.definitions where key = %s"

    assert tx.execute(stored, (login,)).fetchall() == [([["word"], ["all", "*", "word"]],)]
    assert tx.execute(stored, ("work",)).fetchall() == [(None,)]


def test_a_change_of_the_schema_changes_what_is_secret(tx, login):
    tx.execute("update mainspring.definitions set arg_schema = '{}' where key = 'login'")

    kept = tx.execute(
        "select version, secret_paths from mainspring.definition_versions where key = 'login'"
        " order by version"
    )
    assert kept.fetchall() == [(1, [["word"], ["all", "*", "word"]]), (2, None)]


def test_definitions_from_before_are_looked_through_by_a_migration(tx, login):
    tx.execute("alter table mainspring.definitions disable trigger user")
    tx.execute("update mainspring.definitions set secret_paths = null")
    tx.execute("update mainspring.definition_versions set secret_paths = null")
    tx.execute("alter table mainspring.definitions enable trigger user")

    for script in migrate.functions():
        tx.execute(script.encode())

    both = tx.execute(
        "select d.secret_paths = v.secret_paths from mainspring.definitions as d"
        " join mainspring.definition_versions as v using (key, version) where key = 'login'"
    )
    assert both.fetchall() == [(True,)]


def test_what_is_secret_is_not_audited(tx, login):
    (after,) = tx.execute("select after from mainspring.audit where subject = 'login'").fetchone()

    assert "secret_paths" not in after


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.SUCCEEDED])
def test_readers_see_no_secret_of_a_payload(tx, login, state):
    payload = {"user": "ada", "word": "hunter2", "all": [{"word": "hunter3", "n": 1}]}
    job_id = insert_login(tx, state, payload)

    assert job(tx, job_id)["payload"] == {
        "user": "ada",
        "word": "[redacted]",
        "all": [{"word": "[redacted]", "n": 1}],
    }


def test_readers_see_no_checkpoint_where_there_are_secrets(tx, login):
    secret = insert_login(tx, JobState.QUEUED, {}, checkpoint=Jsonb({"word": "hunter2"}))
    empty = insert_login(tx, JobState.QUEUED, {})
    plain = insert_job(tx, JobState.QUEUED, checkpoint=Jsonb({"page": 7}))

    shown = [job(tx, job_id)["checkpoint"] for job_id in (secret, empty, plain)]
    assert shown == ["[redacted]", None, {"page": 7}]


def test_a_job_of_another_definition_is_shown_as_it_is(tx, login):
    job_id = insert_job(tx, JobState.QUEUED, payload=Jsonb({"word": "plain"}))

    assert job(tx, job_id)["payload"] == {"word": "plain"}


def test_a_mark_that_is_set_later_hides_what_is_there(tx):
    job_id = insert_job(tx, JobState.QUEUED, payload=Jsonb({"word": "hunter2"}))
    tx.execute(
        "update mainspring.definitions set arg_schema = %s where key = 'work'", (Jsonb(LOGIN),)
    )

    assert job(tx, job_id)["payload"] == {"word": "[redacted]"}


def test_a_mark_that_is_taken_away_still_holds_for_the_jobs_it_was_there_for(tx, login):
    before = insert_login(tx, JobState.QUEUED, {"word": "hunter2"})
    tx.execute("update mainspring.definitions set arg_schema = null where key = 'login'")
    after = insert_login(tx, JobState.QUEUED, {"word": "public"}, definition_version=2)

    assert job(tx, before)["payload"] == {"word": "[redacted]"}
    assert job(tx, after)["payload"] == {"word": "public"}


def real_payload(connection: psycopg.Connection, job_id: int) -> Any:
    ((payload,),) = connection.execute(
        "select payload from mainspring.jobs where job_id = %s", (job_id,)
    ).fetchall()
    return payload


def test_an_edited_payload_keeps_the_secrets_that_its_editor_could_not_see(tx, login):
    payload = {"user": "ada", "word": "hunter2", "all": [{"word": "hunter3"}]}
    job_id = insert_login(tx, JobState.FAILED, payload)
    shown = job(tx, job_id)["payload"]

    call(tx, "retry", job_id, json.dumps({**shown, "user": "bob"}))

    assert real_payload(tx, job_id) == {**payload, "user": "bob"}


def test_an_edited_payload_may_have_another_secret(tx, login):
    job_id = insert_login(tx, JobState.FAILED, {"word": "hunter2"})

    call(tx, "retry", job_id, '{"word": "another"}')

    assert real_payload(tx, job_id) == {"word": "another"}


@pytest.mark.parametrize(
    "edited", [{"word": "[redacted]"}, {"all": [{"word": "[redacted]"}, {"word": "[redacted]"}]}]
)
def test_the_word_for_a_secret_is_refused_where_none_is_stored(tx, login, edited):
    job_id = insert_login(tx, JobState.FAILED, {"all": [{"word": "hunter3"}]})

    with refused(tx, "MS001", "where nothing is stored"):
        call(tx, "retry", job_id, json.dumps(edited))


def test_the_word_stays_where_nothing_is_secret(tx, login):
    job_id = insert_login(tx, JobState.FAILED, {"user": "ada"})

    call(tx, "retry", job_id, '{"user": "[redacted]"}')

    assert real_payload(tx, job_id) == {"user": "[redacted]"}


def test_a_retry_without_an_edit_keeps_the_payload(tx, login):
    job_id = insert_login(tx, JobState.FAILED, {"word": "hunter2"})

    call(tx, "retry", job_id)

    assert real_payload(tx, job_id) == {"word": "hunter2"}


def insert_schedule(connection: psycopg.Connection, definition: str, payload: Any) -> None:
    insert(
        connection,
        "schedules",
        name="daily",
        cron="@daily",
        definition=definition,
        payload=Jsonb(payload),
    )


def audited(connection: psycopg.Connection) -> str:
    rows = connection.execute(
        "select before, after from mainspring.audit where noun = 'schedule' order by audit_id"
    )
    return json.dumps(rows.fetchall())


def test_the_audit_of_a_schedule_has_no_secret(tx, login):
    insert_schedule(tx, login, {"user": "ada", "word": "hunter2"})
    tx.execute("""update mainspring.schedules set payload = '{"word": "hunter3"}'""")
    tx.execute("delete from mainspring.schedules")

    told = audited(tx)
    assert "hunter" not in told
    assert told.count("[redacted]") == 4
    assert "ada" in told


def test_a_change_of_nothing_but_a_secret_is_audited(tx, login):
    insert_schedule(tx, login, {"word": "hunter2"})
    tx.execute("""update mainspring.schedules set payload = '{"word": "hunter3"}'""")

    assert audited(tx).count("payload") == 3


def test_an_edited_schedule_keeps_the_secrets_that_its_editor_could_not_see(tx, login):
    insert_schedule(tx, login, {"user": "ada", "word": "hunter2"})
    changes = {"payload": {"user": "bob", "word": "[redacted]"}}

    call(tx, "update_schedule", "default", "daily", json.dumps(changes))

    ((payload,),) = tx.execute("select payload from mainspring.schedules").fetchall()
    assert payload == {"user": "bob", "word": "hunter2"}
