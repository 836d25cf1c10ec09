"""The OpenAPI document is the truth: what it says is answered, to every role, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("openapi_cases.py")
COMMAND = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES))


def test_every_answer_to_every_role_is_one_that_the_document_names():
    send()


@pytest.mark.soak
def test_the_same_is_true_of_every_value():
    send(MAINSPRING_TEST_EVERY_VALUE="1")


def send(**environment: str) -> None:
    done = subprocess.run(
        COMMAND,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
