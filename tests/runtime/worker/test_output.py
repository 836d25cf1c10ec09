"""What an attempt prints, as it is stored while it runs and at its end."""

from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.domain.types import Fence, JobId
from mainspring.runtime.worker.output import Printed
from mainspring.store.attempts import Report
from mainspring.store.outputs import Output

REPORT = Report(JobId(1), Fence(1))


def taken(printed: Printed) -> Output:
    output = printed.take(REPORT)
    assert output is not None
    return output


def test_nothing_printed_is_nothing_to_store():
    printed = Printed(Redactor(["hunter2"]))
    printed.close()

    assert printed.take(REPORT) is None


def test_the_beginning_of_a_secret_is_held_back_until_more_has_come():
    printed = Printed(Redactor(["hunter2"]))
    printed.print("it is hun")
    early = taken(printed).stdout
    printed.print("gry")

    assert (early, taken(printed).stdout) == ("it is ", "it is hungry")


def test_a_secret_in_two_pieces_is_hidden():
    printed = Printed(Redactor(["hunter2"]))
    printed.complain("it is hun")
    taken(printed)
    printed.complain("ter2!")

    assert taken(printed).stderr == "it is [redacted]!"


def test_what_was_held_back_is_stored_at_the_end():
    printed = Printed(Redactor(["hunter2"]))
    printed.print("it is hun")
    taken(printed)
    printed.close()

    assert taken(printed).stdout == "it is hun"


def test_what_looks_like_a_secret_is_hidden_without_marks():
    printed = Printed(NO_SECRETS)
    printed.print("token=abc\n")

    assert taken(printed).stdout == "token=[redacted]\n"
