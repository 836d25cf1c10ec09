"""What looks like a secret is hidden, and what does not stays."""

import time

import pytest

from mainspring.domain.secrets.redaction import redact_patterns

KEY = """-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED

MIIEow
-----END RSA PRIVATE KEY-----"""
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


EXAMPLES = [
    ("postgres://app:hunter2@db/x", "postgres://app:[redacted]@db/x"),
    ("redis://:hunter2@cache:6379", "redis://:[redacted]@cache:6379"),
    ("amqp://a:p@ss@host/v and more", "amqp://a:[redacted]@host/v and more"),
    ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
    ("authorization: Basic dXNlcjpw", "authorization: Basic [redacted]"),
    ('{"Authorization": "Bearer abc"}', '{"Authorization": "Bearer [redacted]"}'),
    ("with bearer 0123456789ab now", "with bearer [redacted] now"),
    ("password=hunter2 rest", "password=[redacted] rest"),
    ("DB_PASSWORD = hunter2", "DB_PASSWORD = [redacted]"),
    ("PWD=hunter2;UID=sa", "PWD=[redacted];UID=sa"),
    ("?token=abc&x=1", "?token=[redacted]&x=1"),
    ("api_key='a b c' x", "api_key='[redacted]' x"),
    ('secret="it\'s" x', 'secret="[redacted]" x'),
    (r'password="a\"b" x', 'password="[redacted]" x'),
    ('{"password": "hun ter2", "a": 1}', '{"password": "[redacted]", "a": 1}'),
    (r"{\"token\": \"abc\", \"a\": 1}", r"{\"token\": \"[redacted]\", \"a\": 1}"),
    ("Password: hunter2", "Password: [redacted]"),
    ("tool --api-key hunter2 --x", "tool --api-key [redacted] --x"),
    ("tool --db-password hunter2", "tool --db-password [redacted]"),
    ("key AKIAIOSFODNN7EXAMPLE.", "key [redacted]."),
    (f"ghp_{'a1B2' * 9}", "[redacted]"),
    (f"(glpat-{'a1_-' * 5})", "([redacted])"),
    (f"sk-proj-{'a1B2' * 9}", "[redacted]"),
    (f"sk_live_{'a1B2' * 6}", "[redacted]"),
    (f"xoxb-{'123-' * 5}abc", "[redacted]"),
    (f"AIza{'a' * 35}", "[redacted]"),
    (f"msk_{'a' * 43}", "[redacted]"),
    (f"got {JWT}!", "got [redacted]!"),
    (f"a {KEY} b", "a [redacted] b"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE", "[redacted]"),
]


@pytest.mark.parametrize(("text", "shown"), EXAMPLES)
def test_a_secret_is_hidden_by_its_look(text, shown):
    assert redact_patterns(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "https://example.com:8080/a@b",
        "see http://example.com/a:b@c",
        "PWD=/home/ada",
        "Unexpected token: '}' at 7",
        "token_count=5, tokens: 7",
        "if token == other:",
        "the secretary: Ada",
        "password authentication failed for user ada",
        "KeyError: 'password'",
        "a task-management-system-that-is-long",
        "bearer of news",
        "AKIA and ASIA are words",
        "eyJ is how it begins",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        'password=""',
    ],
)
def test_ordinary_text_stays(text):
    assert redact_patterns(text) == text


@pytest.mark.parametrize("shown", [shown for _, shown in EXAMPLES])
def test_what_is_redacted_already_stays_as_it_is(shown):
    assert redact_patterns(shown) == shown


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            " ",
            "\n",
            '"',
            "\\",
            ":",
            "-",
            "=",
            "eyJ",
            "eyJaaaaaaaa.",
            "://",
            "://a:",
            "://a:b@",
        ),
        *("password", "password=", 'password="', "password='\\", "token\\", "secret:", "--a-"),
        *("authorization:", "authorization: bearer ", "bearer ", "AKIA", "ghp_", "github_pat_"),
        *("sk-", "xoxb-", "glpat-", "AIza", "-----BEGIN PRIVATE KEY-----", "-----BEGIN "),
        *("-----END PRIVATE KEY-----", "--password ", "msk_", "[redacted]", "password=[redacted]"),
    ],
)
def test_hostile_text_takes_no_longer_than_its_length_allows(piece):
    """A pattern that goes back and forth over 100 kB would take minutes."""
    text = (piece * (100_000 // len(piece) + 1))[:100_000]
    began = time.process_time()

    redact_patterns(text)
    redact_patterns(f"password={text}")

    assert time.process_time() - began < 5
