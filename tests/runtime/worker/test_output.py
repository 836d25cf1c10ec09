"""What an attempt prints, as it is stored while it runs and at its end."""

from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.domain.types import Fence, JobId
from mainspring.runtime.worker.output import AttemptOutput
from mainspring.store.attempts import Report
from mainspring.store.outputs import Output

REPORT = Report(JobId(1), Fence(1))


def taken(attempt: AttemptOutput) -> Output:
    output = attempt.take(REPORT)
    assert output is not None
    return output


def test_no_output_is_nothing_to_store():
    output = AttemptOutput(Redactor(["hunter2"]))
    output.close()

    assert output.take(REPORT) is None


def test_the_beginning_of_a_secret_is_held_back_until_more_has_come():
    output = AttemptOutput(Redactor(["hunter2"]))
    output.add_stdout("it is hun")
    early = taken(output).stdout
    output.add_stdout("gry")

    assert (early, taken(output).stdout) == ("it is ", "it is hungry")


def test_a_secret_in_two_pieces_is_hidden():
    output = AttemptOutput(Redactor(["hunter2"]))
    output.add_stderr("it is hun")
    taken(output)
    output.add_stderr("ter2!")

    assert taken(output).stderr == "it is [redacted]!"


def test_what_was_held_back_is_stored_at_the_end():
    output = AttemptOutput(Redactor(["hunter2"]))
    output.add_stdout("it is hun")
    taken(output)
    output.close()

    assert taken(output).stdout == "it is hun"


def test_what_looks_like_a_secret_is_hidden_without_marks():
    output = AttemptOutput(NO_SECRETS)
    output.add_stdout("token=abc\n")

    assert taken(output).stdout == "token=[redacted]\n"
