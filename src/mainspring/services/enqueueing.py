"""Every interface enqueues here: check, schema, encrypt, send, suggest.

    payload ─▶ encode, check ─▶ rules of the definition ─▶ encrypt ─▶ send
                                (asked for if not known)              └─▶ unknown? did you mean

Each way to enqueue is a plan, which blocking and async callers run alike; see db/plans.py.
The event dispatcher and the scheduler, which send many jobs with one statement of their own, use
`payloads.prepare`, the part before the sending.

Sending has two fast paths beside the SQL function `enqueue`: a plain insert for one job without
options, and COPY for many.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import orjson

from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.db.plans import Plan, Statement, Statements, Step
from mainspring.db.sessions import ServiceSession, Session, run_call
from mainspring.db.sql_errors import translated
from mainspring.domain.definitions import Handler
from mainspring.domain.errors import InvalidOption, InvalidPayload, UnknownDefinition
from mainspring.domain.errors.definitions import InactiveDefinition
from mainspring.domain.flows import Step as FlowStep
from mainspring.domain.flows import as_facts, ensure_size, in_order
from mainspring.domain.jobs.model import Job
from mainspring.domain.jobs.options import MAX_JOBS, EnqueueOptions, ensure_text
from mainspring.domain.schema_costs import QUICK_STEPS
from mainspring.domain.types import JobId, TenantId
from mainspring.services import definitions
from mainspring.services.definitions import DeclaredDefinitions
from mainspring.services.payloads import (
    Checking,
    PayloadRules,
    Prepared,
    encode_payload,
    encode_payloads,
    encrypt,
    ensure_affordable,
)
from mainspring.services.redaction import shown_options
from mainspring.services.schemas import SchemaCache
from mainspring.services.secrets import Owner
from mainspring.settings import Settings
from mainspring.store import bulk_enqueue as bulk_store
from mainspring.store import flows as flow_store
from mainspring.store import jobs as store
from mainspring.store.rows.jobs import read_job_text

DEFAULT_OPTIONS = store.DEFAULT_OPTIONS
T = TypeVar("T")

_CHUNK = 5000
_WORTH_A_COPY = 200


class Enqueued(NamedTuple):
    """A job, and whether this enqueue made it. The bearer of a token gets the whole job, unless it
    may not see it."""

    job_id: JobId
    is_new: bool
    job: Job | None = None


class EnqueuedFlow(NamedTuple):
    """A flow, and the job of each of its steps."""

    flow_id: int
    job_ids: dict[FlowStep, JobId]


class Bearer(NamedTuple):
    """Who enqueues through the API: the digest of a token, and a session that may look it up."""

    session: Session
    digest: bytes


class Enqueuer:
    """The one way in. Handlers are those of the caller's own code, whose definitions are stored
    before they are first used."""

    def __init__(self, settings: Settings, handlers: Mapping[str, Handler] | None = None) -> None:
        self._settings = settings
        self._handlers = {} if handlers is None else handlers
        self._schemas = SchemaCache(self._handlers)
        self.declared = DeclaredDefinitions(self._handlers)

    def enqueue(
        self,
        key: str,
        payload: object,
        options: EnqueueOptions = DEFAULT_OPTIONS,
        *,
        connection: object = None,
        bearer: Bearer | None = None,
    ) -> Plan[Enqueued]:
        """One job: in the transaction of the caller's connection, or for the bearer of a token."""
        encoded = encode_payload(payload, self._settings.max_payload_bytes)
        rules = self._known_rules(key) or (yield from self._find_rules(key))
        if rules.schema is not None or rules.secret_paths:
            fit = partial(self._fitted, key, payload, encoded, options=options)
            fitted, rules = yield from self._fit(key, fit, rules, texts=[encoded])
            encoded, options = fitted.text, _shown(options, [payload], rules)
        text, rows = encoded.decode(), []
        if bearer is not None:
            rows = yield from _send(_Entering(key, text, options, bearer))
        elif connection is None and options is DEFAULT_OPTIONS:
            # Gives no row where there is more to decide than this statement can.
            rows = yield from _send(Statement(store.enqueue_plainly(key, text)))
        if not rows:
            rows = yield from _send(Statement(store.enqueue(key, text, options), connection))
        job_id, is_new, *rest = rows[0]
        return Enqueued(job_id, is_new, read_job_text(rest[0]) if bearer and any(rest) else None)

    def _known_rules(self, key: str) -> PayloadRules | None:
        return self._schemas.known(key) if self.declared.are_registered else None

    def _find_rules(self, key: str) -> Plan[PayloadRules]:
        yield from self.declared.register()
        return (yield from self._schemas.find(key))

    def _fit(
        self,
        key: str,
        fit: Callable[..., T],
        rules: PayloadRules,
        *,
        texts: Sequence[bytes],
        is_quick: bool = True,
    ) -> Plan[tuple[T, PayloadRules]]:
        """What the work gives by the rules, or by the wider ones that it needs, and by which."""
        try:
            checking = Checking(partial(fit, rules=rules), rules, texts, is_quick=is_quick)
            return (checking.run(None) if checking.is_quick else (yield checking)), rules
        except InvalidPayload:
            wider = yield from self._schemas.find_wider(key)
            if wider == rules:
                raise
        return (yield Checking(partial(fit, rules=wider), wider, texts)), wider

    def _fitted(
        self,
        key: str,
        payload: Any,
        encoded: bytes,
        *,
        rules: PayloadRules,
        options: EnqueueOptions,
    ) -> Prepared:
        """The payload held to its rules, and encrypted."""
        rules.ensure(payload)
        if not rules.secret_paths:
            return Prepared(payload, encoded)
        return encrypt(
            Prepared(payload, encoded),
            rules,
            Owner(options.tenant_id, key),
            settings=self._settings,
            is_compared=options.dedupe_by is not None or options.idempotency_key is not None,
        )

    def _fitted_all(
        self,
        key: str,
        payloads: Sequence[Any],
        texts: Sequence[bytes],
        *,
        rules: PayloadRules,
        options: EnqueueOptions,
    ) -> list[bytes]:
        if rules.schema is not None and not rules.secret_paths and rules.schema.fit(payloads):
            return list(texts)
        return [
            self._fitted(key, payload, text, rules=rules, options=options).text
            for payload, text in zip(payloads, texts, strict=True)
        ]

    def enqueue_many(
        self,
        key: str,
        payloads: Sequence[Any],
        options: EnqueueOptions = DEFAULT_OPTIONS,
        *,
        dedupe_keys: Sequence[str | None] | None = None,
        connection: object = None,
    ) -> Plan[list[JobId]]:
        """One job a payload, in one transaction; one whose dedupe key is taken is left out."""
        _ensure_for_many(options, len(payloads), dedupe_keys)
        texts = encode_payloads(payloads, self._settings.max_payload_bytes)
        rules = yield from self._find_rules(key)
        if rules.schema is not None or rules.secret_paths:
            fit = partial(self._fitted_all, key, payloads, texts, options=options)
            texts, rules = yield from self._fit(key, fit, rules, texts=texts)
            options = _shown(options, payloads, rules, dedupe_keys=dedupe_keys)
        if connection is None and dedupe_keys is None and len(texts) >= _WORTH_A_COPY:
            ids: list[JobId] = yield from _send(_Copy(key, texts, options))
            return ids
        calls = _bulk_calls(key, texts, options, dedupe_keys=dedupe_keys)
        return [JobId(row[0]) for row in (yield from _send(Statements(calls, connection)))]

    def enqueue_flow(
        self,
        name: str,
        steps: Sequence[FlowStep],
        tenant_id: TenantId,
        *,
        connection: object = None,
    ) -> Plan[EnqueuedFlow]:
        """All jobs of a flow, in one transaction."""
        ensure_text("name", name)
        ordered = in_order(steps)
        limit = self._settings.max_payload_bytes
        texts = [encode_payload(step.payload, limit) for step in ordered]
        ensure_size(sum(map(len, texts)))
        rules = yield from self._rules_of_flow(
            {step.definition: None for step in ordered}, connection
        )
        options = replace(DEFAULT_OPTIONS, tenant_id=tenant_id)
        is_quick = _ensure_flow_affordable(ordered, texts, rules) <= QUICK_STEPS
        payloads = []
        for step, text in zip(ordered, texts, strict=True):
            key = step.definition
            fit = partial(self._fitted, key, step.payload, text, options=options)
            fitted, rules[key] = yield from self._fit(
                key, fit, rules[key], texts=[text], is_quick=is_quick
            )
            payloads.append(fitted.value)
        shown = [_shown(step.options, [step.payload], rules[step.definition]) for step in ordered]
        facts = orjson.dumps(as_facts(ordered, payloads, shown)).decode()
        sent = Statement(flow_store.enqueue(tenant_id, name, facts), connection)
        rows = (yield sent) if connection is None else (yield from _send(sent))
        flow_id, job_ids = rows[0]
        return EnqueuedFlow(flow_id, dict(zip(ordered, map(JobId, job_ids), strict=True)))

    def _rules_of_flow(
        self, keys: Iterable[str], connection: object
    ) -> Plan[dict[str, PayloadRules]]:
        # Before the sending, since nothing can be asked in a transaction that has failed; on the
        # caller's connection there may be definitions that only its transaction sees.
        elsewhere = [key for key in keys if key not in self._handlers]
        if elsewhere and connection is None:
            yield from definitions.find_all(elsewhere)
        rules = {}
        for key in keys:
            rules[key] = yield from self._find_rules(key)
        return rules


def _ensure_flow_affordable(
    steps: Sequence[FlowStep], texts: Sequence[bytes], rules: Mapping[str, PayloadRules]
) -> int:
    """How many steps it takes at most to check the payloads of a flow; raises for too many."""
    pairs = zip(steps, texts, strict=True)
    taken = sum(rules[step.definition].count_steps([text]) for step, text in pairs)
    ensure_affordable(taken, len(steps))
    return taken


def _shown(
    options: EnqueueOptions,
    payloads: Sequence[Any],
    rules: PayloadRules,
    *,
    dedupe_keys: Sequence[str | None] | None = None,
) -> EnqueueOptions:
    """The options without the secrets of the payloads."""
    if not rules.secret_paths or (options is DEFAULT_OPTIONS and dedupe_keys is None):
        return options
    return shown_options(payloads, rules.secret_paths, options, dedupe_keys=dedupe_keys)


# Sending


def _send(step: Step) -> Plan[Any]:
    """What the step gives; the error for an unknown definition says which may have been meant."""
    try:
        return (yield step)
    except InactiveDefinition:
        raise
    except UnknownDefinition as error:
        key = error.key
    raise (yield from definitions.suggest(key))


class _Entering(NamedTuple):
    """A statement that authenticates the bearer by itself, which saves a round trip."""

    key: str
    payload: str
    options: EnqueueOptions
    bearer: Bearer

    @property
    def call(self) -> Call:
        return store.enqueue_as(self.bearer.digest, self.key, self.payload, options=self.options)

    def run(self, database: Database) -> list[tuple[Any, ...]]:
        return database.run(self.call)

    async def arun(self, _: ServiceSession) -> list[tuple[Any, ...]]:
        return await run_call(self.bearer.session, self.call)


class _Copy(NamedTuple):
    """Gives the ids of the jobs. COPY has a few round trips more than a statement, and cannot
    leave out duplicates."""

    key: str
    payloads: list[bytes]
    options: EnqueueOptions

    def run(self, database: Database) -> list[JobId]:
        with translated(), database.sync_pool.connection() as ours:
            return list(bulk_store.enqueue(ours, self.key, self.payloads, options=self.options))

    async def arun(self, session: ServiceSession) -> list[JobId]:
        async with session.transaction() as ours:
            return list(
                await bulk_store.aenqueue(ours, self.key, self.payloads, options=self.options)
            )


def _ensure_for_many(
    options: EnqueueOptions, count: int, dedupe_keys: Sequence[str | None] | None
) -> None:
    if options.dedupe_key or options.idempotency_key or options.dedupe_by:
        raise InvalidOption("dedupe_key", "applies to a single job; enqueue_many takes dedupe_keys")
    if options.after:
        raise InvalidOption(
            "after", "applies to a single job; build a flow or enqueue the jobs one by one"
        )
    if count > MAX_JOBS:
        raise InvalidOption(
            "payloads",
            f"must have at most {MAX_JOBS:,} entries, not {count:,}; enqueue them in several calls",
        )
    if dedupe_keys is not None and len(dedupe_keys) != count:
        raise InvalidOption("dedupe_keys", f"has {len(dedupe_keys)} entries for {count} payloads")


def _bulk_calls(
    key: str,
    payloads: Sequence[bytes],
    options: EnqueueOptions,
    *,
    dedupe_keys: Sequence[str | None] | None,
) -> list[Call]:
    """In chunks, as a statement can only be so large."""
    chunks = [slice(start, start + _CHUNK) for start in range(0, len(payloads), _CHUNK)]
    return [
        store.enqueue_many(
            key, payloads[chunk], options, dedupe_keys=dedupe_keys and dedupe_keys[chunk]
        )
        for chunk in chunks
    ]
