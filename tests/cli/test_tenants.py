"""`mainspring tenants` as a person meets it."""

import json


def test_a_tenant_is_made_changed_shown_and_listed(each_command):
    made, changed, shown, listed = each_command(
        ["tenants", "create", "acme", "--weight", "2"],
        ["tenants", "update", "acme", "--max-running", "5"],
        ["tenants", "show", "acme"],
        ["tenants", "list"],
    )

    assert (made.returncode, made.stdout) == (0, "Tenant acme is created.\n")
    assert changed.stdout == "Tenant acme is updated.\n"
    assert [line.split()[-1] for line in shown.stdout.splitlines()[:3]] == ["acme", "2", "5"]
    assert "MAX RUNNING" in listed.stdout
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["NAME", "acme", "default"]


def test_json_is_for_programs(each_command):
    made, changed, listed = each_command(
        ["tenants", "create", "acme", "--max-running", "0", "--json"],
        ["tenants", "update", "acme", "--max-running", "none", "--json"],
        ["tenants", "list", "--limit", "1", "--json"],
    )

    assert json.loads(made.stdout)["max_running"] == 0
    assert json.loads(changed.stdout)["max_running"] is None
    assert json.loads(listed.stdout) == [json.loads(changed.stdout)]


def test_mistakes_are_answered_with_a_sentence(each_command):
    done = each_command(
        ["tenants", "create", "acme", "--weight", "0"],
        ["tenants", "create", "a b"],
        ["tenants", "create", "acme", "--max-running", "many"],
        ["tenants", "update", "default"],
        ["tenants", "create", "default"],
        ["tenants", "show", "defualt"],
    )

    for said, (text, code) in zip(
        done,
        [
            ("weight must be a whole number from 1 to 1000, not 0", 2),
            ("tenant must start with a letter", 2),
            ("max_running must be a whole number, or none, not 'many'", 2),
            ("update needs an option that changes something", 2),
            ("tenant 'default' already exists", 1),
            ("there is no tenant 'defualt'; did you mean 'default'?", 1),
        ],
        strict=True,
    ):
        assert text in said.stderr
        assert said.returncode == code


def test_one_of_a_thing_is_counted_in_the_singular(each_command):
    *_, counted = each_command(
        ["tenants", "create", "acme"],
        ["enqueue", "hello", '{"name": "Ada"}', "--tenant", "acme"],
        ["people", "create", "ann", "--role", "admin", "--tenant", "acme"],
        ["tenants", "delete", "acme", "--dry-run"],
    )

    assert counted.stdout.startswith("Tenant acme has 1 live job, 0 finished jobs, ")
    assert ", 1 person, 0 tokens; " in counted.stdout


def test_a_tenant_is_disabled_enabled_and_deleted(each_command):
    disabled, shown, enabled, counted, kept, deleted = each_command(
        ["tenants", "create", "acme", "--zone", "Europe/Berlin"],
        ["tenants", "disable", "acme"],
        ["tenants", "show", "acme"],
        ["tenants", "enable", "acme"],
        ["tenants", "delete", "acme", "--dry-run"],
        ["tenants", "show", "acme", "--json"],
        ["tenants", "delete", "acme", "--yes"],
    )[1:]

    assert disabled.stdout == "Tenant acme is disabled.\n"
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert ["zone", "Europe/Berlin"] in lines
    assert ["enabled", "no"] in lines
    assert enabled.stdout == "Tenant acme is enabled.\n"
    assert counted.stdout.startswith("Tenant acme has 0 live jobs, 0 finished jobs, 0 flows")
    assert json.loads(kept.stdout)["is_enabled"] is True
    assert "Tenant acme is disabled, and job " in deleted.stdout, deleted.stderr
