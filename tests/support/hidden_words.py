"""What a test of secrets hides, and how it looks for it wherever people can read."""

import base64
import json
from urllib.parse import quote

import psycopg

WORD = 'S3cret/wörd "qu\'ote" x7'
VIEWS = """
select relname from pg_class
 where relnamespace = 'mainspring'::regnamespace and relkind = 'v' or relname = 'audit'
"""


def forms(word: str) -> list[str]:
    inner = base64.b64encode(f"user:{word}".encode()).decode()[8:-8]
    escaped = [quote(word), quote(word, safe=""), json.dumps(word)[1:-1], repr(word)[1:-1]]
    return [word, *escaped, inner]


def ensure_hidden(text: str) -> None:
    found = [form for form in forms(WORD) if form in text]
    assert found == [], text[max(text.find(found[0]) - 500, 0) :][:1000]
    # What was cut or came in pieces.
    assert WORD[:12] not in text
    assert WORD[-12:] not in text


def read_all(connection: psycopg.Connection) -> str:
    """Everything that readers of the SQL interface can see."""
    texts = []
    for (name,) in connection.execute(VIEWS).fetchall():
        rows = connection.execute(f"select * from mainspring.{name} as row".encode()).fetchall()
        texts += [f"{row} {json.dumps(row, default=str, ensure_ascii=False)}" for row in rows]
    return "\n".join(texts)
