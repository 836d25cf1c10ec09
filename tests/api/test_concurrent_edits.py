"""Edits of what belongs to no tenant wait for each other, whichever tenant the editor names."""

import asyncio

import psycopg
import pytest

from tests.support.api import Api


@pytest.mark.parametrize(
    ("path", "field"), [("/definitions/report", "timeout"), ("/tenants/acme", "weight")]
)
async def test_of_editors_with_the_same_etag_one_wins(
    api: Api, connection: psycopg.Connection, path: str, field: str
):
    connection.execute(
        "create function public.report(payload jsonb) returns jsonb language sql return payload;"
        "insert into mainspring.definitions (key, kind, spec)"
        """ values ('report', 'sql', '{"function": "public.report"}')"""
    )
    seen = await api.get(path)
    mine = {"If-Match": seen.headers["etag"]}

    answers = await asyncio.gather(
        *(
            api.ask(
                "PATCH",
                path,
                json={field: 10 + number},
                headers=mine,
                params={"tenant": "acme" if number % 2 else "default"},
            )
            for number in range(10)
        )
    )

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] + [412] * 9
