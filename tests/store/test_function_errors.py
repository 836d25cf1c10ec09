"""The SQL door refuses: an SQLSTATE of class MS, a sentence, and the facts as JSON."""

from datetime import UTC, datetime, timedelta

import pytest
from psycopg.types.json import Jsonb

from mainspring.db.sql_errors import translate
from mainspring.domain import errors
from mainspring.domain.types import JobState
from tests.support.calls import call, enqueue
from tests.support.rows import count, insert_job, refused

HOUR = timedelta(hours=1)
LATER = datetime(2099, 1, 1, tzinfo=UTC)
EARLIER = datetime(2001, 1, 1, tzinfo=UTC)

BAD_OPTIONS = [
    pytest.param({"tenant": "nobody"}, "tenant does not exist: 'nobody'", "tenant", id="tenant"),
    pytest.param({"tenant": None}, "tenant does not exist: null", "tenant", id="no tenant"),
    pytest.param({"priority": -1}, "from 0 .first. to 1000 .last., not -1", "priority", id="-1"),
    pytest.param({"priority": 1001}, "not 1001", "priority", id="1001"),
    pytest.param({"max_attempts": 0}, "from 1 to 1000, not 0", "max_attempts", id="attempts 0"),
    pytest.param({"max_attempts": 1001}, "not 1001", "max_attempts", id="attempts 1001"),
    pytest.param({"delay": -HOUR}, "delay must not be negative", "delay", id="negative delay"),
    pytest.param(
        {"delay": HOUR, "scheduled_for": LATER},
        "cannot be used together",
        "delay",
        id="two instants",
    ),
    pytest.param({"deadline": EARLIER}, "deadline .* has passed", "deadline", id="past deadline"),
    pytest.param(
        {"scheduled_for": LATER, "deadline": LATER},
        "scheduled_for is not before the deadline",
        "scheduled_for",
        id="due at the deadline",
    ),
    pytest.param(
        {"delay": timedelta(days=365 * 100), "deadline": LATER},
        "is not before the deadline",
        "scheduled_for",
        id="delay past the deadline",
    ),
    pytest.param({"queue": ""}, "queue must not be empty", "queue", id="empty queue"),
    pytest.param({"delay": "36501 days"}, "at most 36500 days", "delay", id="delay of ages"),
    pytest.param({"delay": "200000 years"}, "at most 36500 days", "delay", id="delay of aeons"),
    pytest.param({"scheduled_for": "-infinity"}, "scheduled_for", "scheduled_for", id="ever"),
    pytest.param({"scheduled_for": "infinity"}, "scheduled_for", "scheduled_for", id="never"),
    pytest.param({"scheduled_for": "20000-01-01"}, "scheduled_for", "scheduled_for", id="year 20k"),
    pytest.param({"deadline": "infinity"}, "deadline", "deadline", id="infinite deadline"),
    pytest.param({"queue": "q" * 501}, "500 characters", "queue", id="long queue"),
]
BAD_DEDUPES = [
    pytest.param({"dedupe_by": "name"}, "dedupe_by must be 'content'", "dedupe_by", id="by name"),
    pytest.param(
        {"dedupe_by": "content", "dedupe_key": "k"},
        "cannot be used with dedupe_key",
        "dedupe_by",
        id="both",
    ),
    pytest.param(
        {"dedupe_key": "k", "dedupe_window": timedelta(0)},
        "dedupe_window must be more than zero",
        "dedupe_window",
        id="no window",
    ),
    pytest.param({"dedupe_window": HOUR}, "needs dedupe_key", "dedupe_window", id="window of what"),
    pytest.param(
        {"dedupe_key": "k", "on_duplicate": "ignore"}, "on_duplicate", "on_duplicate", id="ignore"
    ),
    pytest.param({"on_duplicate": "ignore"}, "on_duplicate", "on_duplicate", id="ignore nothing"),
    pytest.param({"on_duplicate": None}, "on_duplicate", "on_duplicate", id="null on duplicate"),
    pytest.param({"dedupe_key": ""}, "dedupe_key must not be empty", "dedupe_key", id="empty key"),
    pytest.param({"dedupe_key": "k" * 501}, "500 characters", "dedupe_key", id="long key"),
    pytest.param(
        {"idempotency_key": "k" * 501}, "500 characters", "idempotency_key", id="long idempotency"
    ),
]
BAD_PAYLOADS = [
    pytest.param("[1]", "not array", id="array"),
    pytest.param('"text"', "not string", id="text"),
    pytest.param("7", "not number", id="number"),
    pytest.param("null", "not null", id="json null"),
    pytest.param(None, "not null", id="sql null"),
]


@pytest.mark.parametrize(("options", "message", "option"), BAD_OPTIONS + BAD_DEDUPES)
def test_enqueue_refuses_an_option_out_of_its_range(tx, options, message, option):
    with refused(tx, "MS003", message, option=option):
        enqueue(tx, **options)

    assert (count(tx, "jobs"), count(tx, "enqueue_keys")) == (0, 0)


@pytest.mark.parametrize(("options", "message", "option"), BAD_OPTIONS)
def test_enqueue_many_refuses_an_option_out_of_its_range(tx, options, message, option):
    with refused(tx, "MS003", message, option=option):
        call(tx, "enqueue_many", "work", payloads=[Jsonb({})] * 2, **options)

    assert count(tx, "jobs") == 0


@pytest.mark.parametrize("function", ["enqueue", "enqueue_many"])
@pytest.mark.parametrize(("payload", "message"), BAD_PAYLOADS)
def test_a_payload_must_be_an_object(tx, function, payload, message):
    options = {"payload": payload} if function == "enqueue" else {"payloads": ["{}", payload]}

    with refused(tx, "MS001", f"must be a JSON object, {message}"):
        call(tx, function, "work", **options)

    assert count(tx, "jobs") == 0


@pytest.mark.parametrize("function", ["enqueue", "enqueue_many"])
@pytest.mark.parametrize("key", ["nothing", None])
def test_an_unknown_definition_is_named(tx, function, key):
    options = {"payload": "{}"} if function == "enqueue" else {"payloads": ["{}"]}

    with refused(tx, "MS010", f"unknown definition {repr(key) if key else 'null'}", key=key):
        call(tx, function, key, **options)


def test_an_inactive_definition_takes_no_jobs(tx):
    tx.execute("update mainspring.definitions set is_active = false where key = 'work'")

    problem = "definition 'work' is deactivated; activate it first"
    with refused(tx, "MS010", problem, key="work", is_deactivated=True):
        enqueue(tx)


# Sizes

LIMIT = 1024 * 1024


def payload_of(size: int) -> str:
    """An object whose text in PostgreSQL has this many bytes."""
    return '{"a": "' + "x" * (size - len('{"a": ""}')) + '"}'


@pytest.mark.parametrize("function", ["enqueue", "enqueue_many"])
def test_a_payload_may_have_a_mebibyte_and_not_a_byte_more(tx, function):
    name = "payload" if function == "enqueue" else "payloads"

    def give(size):
        text = payload_of(size)
        return call(tx, function, "work", **{name: text if name == "payload" else [text]})

    assert give(LIMIT)
    with refused(tx, "MS002", "too large", size=LIMIT + 1, limit=LIMIT):
        give(LIMIT + 1)


@pytest.mark.parametrize(
    "function",
    ["enqueue('work', payload)", "enqueue_job('work', payload)", "retry(%s, payload)"],
)
def test_a_payload_that_comes_compressed_from_a_table_counts_in_full(tx, function):
    job_id = insert_job(tx, JobState.FAILED)
    tx.execute("create temp table outbox (payload jsonb)")
    tx.execute("insert into outbox values (%s)", (payload_of(LIMIT + 1),))
    # A plan for this one value would unpack it on the way.
    tx.execute("set local plan_cache_mode = force_generic_plan")

    with refused(tx, "MS002", "too large", size=LIMIT + 1, limit=LIMIT):
        tx.execute(f"select mainspring.{function.replace('%s', str(job_id))} from outbox")


def test_the_limit_is_a_setting(tx):
    tx.execute("set local mainspring.max_payload_bytes = 100000")

    assert enqueue(tx, payload=payload_of(100_000))
    with refused(tx, "MS002", "too large", size=100_001, limit=100_000):
        enqueue(tx, payload=payload_of(100_001))


# Conflicts


def test_a_taken_key_is_named_with_its_holder(tx):
    first = enqueue(tx, dedupe_key="k")

    message = f"job {first} already has the dedupe key 'k'"
    with refused(tx, "MS020", message, key="k", job_id=first):
        enqueue(tx, dedupe_key="k")


def test_a_key_in_its_window_is_named_with_its_last_holder(tx):
    first = enqueue(tx, dedupe_key="k", dedupe_window=HOUR)
    call(tx, "cancel", first)

    with refused(tx, "MS020", "already has", key="k", job_id=first):
        enqueue(tx, dedupe_key="k", dedupe_window=HOUR)


@pytest.mark.parametrize(
    ("key", "payload"), [("work", '{"n": 2}'), ("other", '{"n": 1}')], ids=["payload", "definition"]
)
def test_an_idempotency_key_does_not_serve_another_request(tx, key, payload):
    first = enqueue(tx, payload='{"n": 1}', idempotency_key="i")

    message = f"'i' belongs to job {first}, which has a different definition or payload"
    with refused(tx, "MS021", message, key="i", job_id=first):
        enqueue(tx, key, payload=payload, idempotency_key="i")


def test_a_refused_enqueue_reserves_no_key(tx):
    enqueue(tx, dedupe_key="k")
    with refused(tx, "MS020", "already has", key="k", job_id=enqueue_existing(tx)):
        enqueue(tx, dedupe_key="k", idempotency_key="i", dedupe_window=HOUR)

    assert count(tx, "enqueue_keys") == 0


def enqueue_existing(tx) -> int:
    return enqueue(tx, dedupe_key="k", on_duplicate="existing")


def test_dedupe_keys_must_be_as_many_as_payloads(tx):
    with refused(tx, "MS003", "one entry per payload", option="dedupe_keys"):
        call(tx, "enqueue_many", "work", payloads=["{}", "{}"], dedupe_keys=["a"])


@pytest.mark.parametrize("keys", [["a", ""], ["a", "k" * 501]], ids=["empty", "long"])
def test_every_key_of_a_bulk_enqueue_is_checked(tx, keys):
    with refused(tx, "MS003", "dedupe_key", option="dedupe_keys"):
        call(tx, "enqueue_many", "work", payloads=["{}", "{}"], dedupe_keys=keys)


# Jobs that are not there


@pytest.mark.parametrize("action", ["cancel", "retry", "delete_job"])
@pytest.mark.parametrize("job_id", [10**12, 0, -1])
def test_a_job_that_does_not_exist_is_not_found(tx, action, job_id):
    with refused(tx, "MS030", f"there is no job {job_id}", job_id=job_id):
        call(tx, action, job_id)


@pytest.mark.parametrize("action", ["cancel", "retry", "delete_job"])
def test_no_job_at_all_is_not_found(tx, action):
    with refused(tx, "MS030", "there is no job null", job_id=None):
        tx.execute(f"select mainspring.{action}(null)")


@pytest.mark.parametrize("action", ["cancel", "retry", "delete_job"])
@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.FAILED])
def test_a_job_of_another_tenant_is_not_found(tx, action, state):
    job_id = insert_job(tx, state, tenant_id="acme")

    with refused(tx, "MS030", f"there is no job {job_id}", job_id=job_id):
        call(tx, action, job_id)


@pytest.mark.parametrize("payload", ["[]", '{"a": "' + "x" * LIMIT + '"}'], ids=["list", "large"])
def test_a_retry_checks_its_payload(tx, payload):
    job_id = insert_job(tx, JobState.FAILED)

    with pytest.raises(Exception, match="payload") as caught, tx.transaction():
        call(tx, "retry", job_id, payload=payload)

    assert isinstance(translate(caught.value), errors.InvalidPayload | errors.PayloadTooLarge)
    assert count(tx, "jobs_history") == 1
