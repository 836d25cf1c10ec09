"""The page at /docs: every operation with what it takes and answers, and nothing from elsewhere."""

import itertools
import re
import shlex
from html import unescape
from typing import Any

import httpx
import orjson
import pytest
from fastapi import FastAPI

from mainspring.api.reference.operations import curl, operations_of
from mainspring.api.reference.schemas import block, prose
from tests.support.api import BASE, Api


@pytest.fixture
async def page(api: Api) -> str:
    answer = await api.client.get("/docs")
    assert answer.status_code == 200
    return answer.text


async def test_the_page_shows_every_operation_and_schema(api: Api, page: str):
    document = api.app.openapi()

    for operation in operations_of(document):
        assert f'id="{operation.id}"' in page
        assert f'href="#{operation.id}"' in page
    for name in document["components"]["schemas"]:
        assert f'id="schema-{name}"' in page
    for linked in set(re.findall(r'href="#([^"]+)"', page)):
        assert f'id="{linked}"' in page, linked


async def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(api: Api, page: str):
    answer = await api.client.get("/docs")
    policy = answer.headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert re.findall(r'(?:src|<link[^>]* href)="([^"]+)"', page) == [
        "/docs/reference.css",
        "/docs/reference.js",
    ]
    assert re.findall(r"<script(?![^>]*src)| on\w+=| style=|<style", page) == []
    for path in ("/docs/reference.css", "/docs/reference.js"):
        asset = await api.client.get(path)
        assert asset.status_code == 200
        assert "http" not in asset.text.replace("https://www.w3.org", "")


async def test_an_unknown_asset_is_a_plain_refusal(api: Api):
    answer = await api.client.get("/docs/..%2Fauth.py")

    assert answer.status_code == 404
    assert answer.json()["code"] == "no_such_path"


async def test_the_commands_that_it_shows_are_answered(api: Api, page: str):
    """Each is parsed as a shell would, and sent."""
    document = api.app.openapi()
    refused: list[Any] = []
    for operation in operations_of(document):
        command = curl(operation, BASE)
        assert command in unescape(page)
        if "stream" in operation.path or operation.id == "log_out":
            continue
        words = shlex.split(command.replace("\\\n", " "))
        url, headers = next(each for each in words if each.startswith("http")), {}
        for flag, value in itertools.pairwise(words):
            if flag == "-H":
                name, _, said = value.partition(": ")
                headers[name] = said
        body = words[words.index("-d") + 1] if "-d" in words else None
        assert (headers.pop("Authorization", None) is None) is (operation.id == "check_health")
        if operation.id == "check_health":
            continue
        path = url.removeprefix(f"{BASE}/api/v1")
        answer = await api.ask(operation.method.upper(), path, headers=headers, content=body)
        # What it names need not be there, but the request itself is right.
        said = answer.json() if answer.content else {}
        if said.get("code") in ("invalid_request", "no_such_path"):
            refused.append((operation.id, said["detail"]))
    assert refused == []


async def test_the_page_is_found_where_the_api_is_mounted(api: Api):
    outer = FastAPI()
    outer.mount("/jobs-api", api.app)
    transport = httpx.ASGITransport(app=outer)
    async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
        answer = await client.get("/jobs-api/docs")

    assert answer.status_code == 200
    assert 'href="/jobs-api/docs/reference.css"' in answer.text
    assert 'src="/jobs-api/docs/reference.js"' in answer.text


async def test_the_front_page_leads_to_it(api: Api):
    assert 'href="/docs"' in (await api.client.get("/")).text


def test_a_description_is_text_and_no_markup():
    assert prose("<b>`a<b`") == "&lt;b&gt;<code>a&lt;b</code>"
    assert "<script>" not in block("<script>", "x")
    assert orjson.loads(unescape(block('{"a": 1}', "x")).split("<code>")[1].split("</code>")[0])


async def test_the_document_is_there_for_programs(api: Api):
    answer = await api.client.get("/api/v1/openapi.json")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json()["paths"].keys() >= {"/api/v1/jobs", "/api/v1/jobs/{job_id}"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/jobs/abc", 422), ("PUT", "/jobs/7", 405)],
)
async def test_a_wrong_path_is_answered_without_the_document(api: Api, method, path, status):
    answer = await api.ask(method, path)

    assert answer.status_code == status
    assert api.app.openapi_schema is None
