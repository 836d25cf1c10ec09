"""`/doctor`: for operators."""

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from tests.support.api import Api


async def test_a_report_has_findings_with_advice(api: Api, connection: psycopg.Connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")

    answer = await api.get("/doctor", params={"only": ["D15", "D28"]})

    assert answer.status_code == 200
    body = answer.json()
    assert body["checked"] == ["D15", "D28"]
    assert [(each["id"], each["severity"]) for each in body["findings"]] == [("D15", "warning")]
    assert body["findings"][0]["advice"].startswith("alter table mainspring.jobs set (fillfactor")


async def test_all_checks_run_as_the_owner(api: Api):
    body = (await api.get("/doctor")).json()

    assert len(body["checked"]) == 42
    # The timeouts of requests are not those of the login.
    assert not {"D19", "D25", "D27"} & {each["id"] for each in body["findings"]}
    assert not any("may not look" in each["fact"] for each in body["findings"])


async def test_fixing_is_a_post_and_says_what_was_done(api: Api, connection: psycopg.Connection):
    connection.execute("alter table mainspring.jobs reset (fillfactor)")

    body = (await api.post("/doctor/fix", params={"only": "D15"})).json()

    action = "set the storage parameters of mainspring.jobs"
    assert body["fixes"] == [{"id": "D15", "action": action, "is_done": True}]
    assert body["findings"] == []
    (entry,) = (await api.get("/audit", params={"noun": "doctor"})).json()["items"]
    said = [entry[name] for name in ("actor", "action", "subject", "reason")]
    assert said == ["ops", "fix", "D15", action]


async def test_a_check_that_does_not_exist_is_refused(api: Api):
    answer = await api.get("/doctor", params={"only": "D99"})

    assert answer.status_code == 422
    assert "must be the id of a check, such as D13" in answer.text


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.OPERATOR])
async def test_nobody_else_may_look_or_fix(api: Api, role: Role):
    assert (await api.get("/doctor", role=role)).status_code == 403
    assert (await api.post("/doctor/fix", role=role)).status_code == 403
