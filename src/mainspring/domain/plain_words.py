"""What is wrong with a value, as pydantic says it and as a person would."""

import re

_WORDS = {
    r"^Value error, ": "",
    r"^\w+ should ": "must ",
    r"a valid dictionary( or object to extract fields from)?": "a JSON object",
    r"a valid list": "a JSON list",
    r"a valid integer, unable to parse string as an integer": "a whole number",
    r"a valid integer, got a number with a fractional part": "a whole number",
    r"a valid integer": "a whole number",
    r"a valid number, unable to parse string as a number": "a number",
    r"a valid boolean, unable to interpret input": "true or false",
    r"a valid boolean": "true or false",
    r"a valid ": "a ",
    r"greater than or equal to (\S+)": r"\1 or more",
    r"less than or equal to (\S+)": r"\1 or less",
    r"^Field required": "is missing",
}


def plain(problem: str) -> str:
    for technical, words in _WORDS.items():
        problem = re.sub(technical, words, problem)
    return problem
