"""`mainspring tokens`, `people` and `login-link` as a person meets them."""

import json
import re

import yaml

from tests.support.commands import sentence, table

LINK = r"http://127\.0\.0\.1:8080/login\?code=msk_[\w-]+\n"


def test_a_token_is_made_listed_and_revoked(each_command):
    made, listed, revoked, none, ended = each_command(
        ["tokens", "create", "ci", "--role", "member", "--scope", "jobs:read", "--days", "30"],
        ["tokens", "list"],
        ["tokens", "revoke", "ci"],
        ["tokens", "list"],
        ["tokens", "list", "--all", "--output", "yaml"],
    )

    assert re.fullmatch(r"msk_\S+\n", made.stdout)
    assert made.stderr.endswith("it is not shown again. ci is member in default.\n")
    (row,) = table(listed)
    assert list(row.values())[:4] == ["ci", "member", "default", "active"]
    assert row["EXPIRES"].endswith("Z")
    assert made.stdout.strip() not in listed.stdout
    assert revoked.stdout == "Token ci is revoked.\n"
    assert none.stderr == "No tokens; create one with `mainspring tokens create`.\n"
    assert [(each["name"], each["state"]) for each in yaml.safe_load(ended.stdout)] == [
        ("ci", "revoked")
    ]


def test_a_worker_serves_the_tenants_that_its_token_names(each_command):
    _, _, several, everyone, wrong, listed, unknown = each_command(
        ["tenants", "create", "acme"],
        ["tenants", "create", "bell"],
        ["tokens", "create", "two", "--role", "worker", "--tenants", "acme, bell"],
        ["tokens", "create", "node", "--role", "worker", "--all-tenants"],
        ["tokens", "create", "ci", "--role", "member", "--all-tenants"],
        ["tokens", "list"],
        ["tokens", "create", "x", "--role", "worker", "--tenants", "acme,cell"],
    )

    assert several.stderr.endswith("two is worker in acme, bell.\n")
    assert everyone.stderr.endswith("node is worker in all tenants.\n")
    assert "tenants is for the role worker; the role member has one tenant" in wrong.stderr
    assert [row["TENANT"] for row in table(listed)] == ["*", "acme, bell"]
    assert "no tenant 'cell'" in unknown.stderr


def test_a_person_is_added_given_a_link_kept_out_and_removed(each_command, command):
    none, made, link, elsewhere, changed, listed = each_command(
        ["people", "list"],
        ["people", "create", "ann lee", "--role", "operator"],
        ["login-link", "ann lee"],
        ["login-link", "ann lee", "--url", "https://jobs.example.com/", "--json"],
        ["people", "change", "ann lee", "--disable"],
        ["people", "list"],
    )
    kept = command("people", "delete", "ann lee", stdin="n\n")
    gone, left = each_command(["people", "delete", "ann lee", "--yes"], ["people", "list"])

    assert none.stderr == left.stderr
    assert none.stderr == "No people; the first start of a server creates an operator.\n"
    assert made.stdout == "ann lee may log in: operator in all tenants.\n"
    assert re.fullmatch(LINK, link.stdout)
    assert json.loads(elsewhere.stdout)["url"].startswith("https://jobs.example.com/login?code=")
    assert changed.stdout == "ann lee is changed: operator in all tenants.\n"
    assert [list(row.values()) for row in table(listed)] == [
        ["ann lee", "operator", "*", "disabled", "never"]
    ]
    assert kept.returncode == 1
    assert gone.stdout == "ann lee is deleted.\n"


def test_a_login_link_leads_to_where_people_reach_the_server(command):
    command("people", "create", "ann", "--role", "admin")

    behind = command("login-link", "ann", MAINSPRING_PUBLIC_URL="https://jobs.example.com/ms/")

    assert behind.stdout.startswith("https://jobs.example.com/ms/login?code=msk_")


def test_mistakes_are_answered_with_a_sentence(each_command):
    each_command(["tokens", "create", "graphs", "--role", "viewer"])
    mistakes = [
        ("tokens create x --role memer", 2, "did you mean member?"),
        ("tokens create x --role viewer --days 0", 2, "--days must be more than 0"),
        ("tokens create x --role viewer --scope job:read", 2, "did you mean jobs:read?"),
        ("tokens create x --role viewer --tenant acme", 1, "there is no tenant 'acme'"),
        ("tokens revoke graph", 1, "there is no token 'graph'; did you mean 'graphs'?"),
        ("people create x --role worker", 2, "cannot be worker for a person"),
        ("login-link --url jobs.example.com", 2, "--url must be like https://jobs"),
    ]

    done = each_command(*(words.split() for words, _, _ in mistakes))

    for said, (words, code, message) in zip(done, mistakes, strict=True):
        assert message in sentence(said), words
        assert said.returncode == code, words


def test_an_admin_of_a_server_makes_people_of_its_tenant_alone(server_command):
    made = server_command("people", "create", "ann", "--role", "viewer", role="admin")
    link = server_command("login-link", "ann", role="admin")
    refused = server_command("people", "create", "eve", "--role", "operator", role="admin")
    member = server_command("tokens", "list", role="member")

    assert made.stdout == "ann may log in: viewer in default.\n"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login\?code=msk_[\w-]+\n", link.stdout)
    assert ":8080" not in link.stdout
    assert sentence(refused) == "error: only an operator can create another operator"
    assert "the role member may not read tokens; it requires the role admin" in sentence(member)
