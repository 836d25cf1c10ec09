"""A known secret survives nowhere, in whatever form it comes and wherever its text is cut."""

import base64
import json
import re
import time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.jobs.tails import Tail
from mainspring.domain.secrets.paths import REDACTED
from mainspring.domain.secrets.redaction import MARGIN, NO_SECRETS, Redactor

SECRETS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=4, max_size=30
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def survives(secret: str, shown: str) -> bool:
    """Whether it stands between what is redacted."""
    return any(secret in part for part in shown.split(REDACTED))


@given(SECRETS, TEXTS, TEXTS)
def test_a_secret_is_hidden_wherever_it_stands(secret, before, after):
    shown = Redactor([secret]).text(f"{before}{secret}{after}")

    assert REDACTED in shown
    assert not survives(secret, shown)


@given(SECRETS, SECRETS)
def test_secrets_that_overlap_are_hidden_both(first, second):
    joined = f"{first}{second[1:]}"

    shown = Redactor([first, second, joined]).text(f"x{joined}x")

    assert not survives(first, shown)
    assert not survives(second, shown)


@pytest.mark.parametrize(
    "form",
    [
        lambda secret: quote(secret, safe=""),
        lambda secret: re.sub("%..", lambda code: code[0].lower(), quote(secret)),
        quote,
        quote_plus,
        lambda secret: json.dumps(secret)[1:-1],
        lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
        lambda secret: json.dumps(json.dumps(secret))[3:-3],
        lambda secret: repr(secret)[1:-1],
        lambda secret: str(secret.encode())[2:-1],
    ],
)
@given(SECRETS)
def test_a_secret_is_hidden_in_its_other_forms(form, secret):
    shown = Redactor([secret]).text(f"<{form(secret)}>")

    assert not survives(form(secret), shown)


@given(st.text("abcdefgh0123", min_size=10, max_size=40), st.text("xyz", max_size=5))
def test_a_secret_is_hidden_in_base64_of_more_than_itself(secret, user):
    whole = base64.b64encode(f"{user}:{secret}".encode()).decode()

    shown = Redactor([secret]).text(f"Basic {whole}")

    visible = shown.removeprefix("Basic ").split(REDACTED)
    assert REDACTED in shown
    # All that is left of it are the few bits it shares with its neighbours.
    assert len(visible[-1].rstrip("=")) <= 3


@pytest.mark.parametrize(
    "form",
    [
        str.upper,
        str.swapcase,
        lambda secret: secret.encode().hex(),
        lambda secret: secret.encode().hex().upper(),
        lambda secret: quote(secret, safe="").upper(),
        lambda secret: json.dumps(secret).upper(),
    ],
    ids=["upper", "swapped", "hex", "upper hex", "upper URL", "upper JSON"],
)
@pytest.mark.parametrize("secret", ["Hunter2!x", "pass wörd/1"])
def test_a_secret_is_hidden_in_other_letters_and_digits(form, secret):
    for shown in (Redactor([secret]).text(f"a {form(secret)} b"), many(secret).text(form(secret))):
        assert REDACTED in shown
        assert form(secret).strip('"')[1:-1] not in shown


def many(secret: str) -> Redactor:
    """One that knows very many secrets."""
    return Redactor([f"another-{number}" for number in range(150)] + [secret])


WRAPS = {"76": (76, "\n"), "64": (64, "\n"), "CRLF": (76, "\r\n"), "indented": (60, "\n    ")}
WRAPS |= {"in JSON": (76, "\\n"), "in the middle": (5, "\n")}


@pytest.mark.parametrize("make", [lambda secret: Redactor([secret]), many], ids=["one", "many"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode, bytes.hex])
@pytest.mark.parametrize("wrap", WRAPS)
def test_a_secret_is_hidden_in_code_that_is_broken_into_lines(make, encode, wrap):
    width, end = WRAPS[wrap]
    secret = "correct horse battery staple >>> ???"
    for before in range(0, 80, 7):
        code = encode(f"{'x' * before}:{secret}:rest".encode())
        text = code if isinstance(code, str) else code.decode()
        lines = end.join(text[at : at + width] for at in range(0, len(text), width))

        shown = make(secret).text(f"the code is\n{lines}\nand that is all")

        left = re.sub(r"\s|\\n", "", shown.split("code is")[1].split("and that")[0])
        whole = encode(secret.encode())
        whole = whole if isinstance(whole, str) else whole.decode()
        assert shown.startswith("the code is\n")
        assert shown.endswith("and that is all")
        assert not any(whole[at : at + 12] in left for at in range(len(whole) - 12)), shown


def test_lines_that_hold_no_secret_stay_as_they_are():
    text = "one 1234\n5678 two\nthree"

    assert Redactor(["12345678"]).text(text) == text
    assert Redactor(["correct horse"]).text(text * 50) == text * 50


@given(st.integers(1, 60))
def test_code_that_grows_line_by_line_never_shows_a_beginning(size):
    secret = "correct horse battery staple"
    code = base64.encodebytes(f"user:{secret}:and so on".encode() * 3).decode()
    redactor, inner = Redactor([secret]), base64.b64encode(secret.encode()).decode()

    shown = redactor.tail(code[:size], is_whole=False)

    assert inner[8:16] not in shown.replace("\n", "")


@pytest.mark.parametrize("name", [7, None, (1, 2)])
def test_names_of_other_kinds_are_left_alone(name):
    assert Redactor(["hunter2"]).value({name: "hunter2"}) == {name: REDACTED}


def test_very_many_secrets_are_looked_for_in_one_go():
    redactor, text = many("hunter2!"), "an ordinary line of output, " * 1000
    redactor.text("warm")

    began = time.perf_counter()
    redactor.text(text)
    took = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(1000):
        text.find(f"another-{number}")
    each = time.perf_counter() - began

    assert took < each * 10


def test_of_two_secrets_the_longer_one_is_hidden_whole():
    assert Redactor(["hunter2", "hunter2000"]).text("a hunter2000 b") == "a [redacted] b"


def test_a_secret_of_many_lines_is_hidden_line_by_line():
    secret = "-----KEY-----\nfirst-line-of-it\nsecond-line-of-it\n"

    shown = Redactor([secret]).text("> first-line-of-it\r\n> second-line-of-it")

    assert shown == "> [redacted]\r\n> [redacted]"


@pytest.mark.parametrize("length", [511, 512, 513, 1024, 1030, 5000])
def test_a_long_secret_is_hidden_to_its_last_character(length):
    secret = "".join(chr(97 + (n * n) % 26) for n in range(length))

    assert Redactor([secret]).text(f"<{secret}>") == "<[redacted]>"


def test_a_secret_is_hidden_in_every_part_of_a_value():
    value = {"a": ["x hunter2 y", {"hunter2": 1}], "n": 123456, "m": 1234567, "t": True, "z": None}

    shown = Redactor(["hunter2", "123456"]).value(value)

    assert shown == {
        "a": ["x [redacted] y", {REDACTED: 1}],
        "n": REDACTED,
        "m": 1234567,
        "t": True,
        "z": None,
    }


def test_without_secrets_a_value_stays_as_it_is():
    assert not NO_SECRETS
    assert NO_SECRETS.text("password=hunter2") == "password=hunter2"


def test_a_value_that_is_too_deep_is_hidden_below():
    value: Any = "hunter2"
    for _ in range(2000):
        value = [value]

    shown = Redactor(["other"]).value(value)

    assert "hunter2" not in str(shown)


def test_with_more_secrets_than_can_be_searched_nothing_is_shown():
    redactor = Redactor([f"secret-{n:04}" for n in range(201)])

    assert redactor.text("anything") == REDACTED
    assert redactor.value({"a": [1, "b"]}) == {REDACTED: [REDACTED, REDACTED]}
    assert redactor.tail("anything") == REDACTED
    assert Redactor([f"secret-{n:04}" for n in range(200)]).text("anything") == "anything"


def test_lines_of_others_are_shown_beside_a_job_with_very_many_secrets():
    redactor = Redactor([f"secret-{n:04}" for n in range(201)])

    assert redactor.line("anything\n") == "anything\n"
    assert redactor.line("it is secret-0007!\n") == f"{REDACTED}\n"


@given(st.text("0123%/\\\"'ü\n", min_size=4, max_size=20), st.data())
def test_a_text_that_grows_never_shows_a_beginning(secret, data):
    begun = data.draw(st.integers(1, len(secret) - 1))

    shown = Redactor([secret]).tail(f"before {secret[:begun]}", is_whole=False)

    assert shown == "before "


def test_a_text_that_ends_within_a_secret_does_not_show_what_there_is():
    redactor = Redactor(["hunter2000"])

    assert redactor.tail("it is hunter20") == "it is [redacted]"
    assert redactor.tail("it is hun") == "it is hun"
    assert redactor.tail("it is hun", is_whole=False) == "it is "


@given(SECRETS, st.integers(0, 40), st.integers(1, 40), st.integers(1, 7))
def test_a_tail_that_begins_within_a_secret_does_not_show_the_rest(secret, gap, limit, size):
    """The stream comes in chunks of any size, and the start of what is kept is cut anywhere."""
    redactor, tail = Redactor([secret]), Tail(limit, margin=MARGIN)
    whole = f"{'.' * 50}{secret}{'.' * gap}"
    for start in range(0, len(whole), size):
        tail.add(whole[start : start + size])

    shown = tail.shown(redactor.tail) or ""

    visible = shown.partition("\n")[2].replace(REDACTED, "")
    assert set(visible) <= {"."}


def test_patterns_are_seen_across_the_cut():
    tail = Tail(10, margin=MARGIN)
    tail.add("see postgres://ada:hunter2-and-more@db ok")

    assert tail.shown(NO_SECRETS.tail) == "... 31 characters omitted ...\n[redacted]@db ok"


@pytest.mark.parametrize("secret", ["aaaa", "a" * 500, "ab" * 250, "[redacted]"])
def test_a_hostile_text_takes_no_longer_than_its_length_allows(secret):
    redactor = Redactor([secret])
    began = time.process_time()

    redactor.tail("a" * 72_000, 8000, is_whole=False)
    redactor.tail("ab" * 36_000, 8000)

    assert time.process_time() - began < 5
