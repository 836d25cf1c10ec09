"""Query plans as the worker gets them: prepared, generic, under the session's settings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from mainspring.db.calls import with_numbers
from mainspring.db.statements import load


@dataclass(frozen=True)
class Plan:
    """The tree that EXPLAIN gives, and what it touched if it was executed."""

    root: Mapping[str, Any]

    def nodes(self) -> Iterator[Mapping[str, Any]]:
        return _walk(self.root)

    def scans(self) -> set[tuple[str, str]]:
        """Each way a table is read: (node type, table or index)."""
        return {
            (node["Node Type"], node.get("Index Name") or node["Relation Name"])
            for node in self.nodes()
            if "Scan" in node["Node Type"] and ("Index Name" in node or "Relation Name" in node)
        }

    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes() if "Index Name" in node}

    def sequential(self) -> set[str]:
        """The tables that are read from end to end, but for the small ones of workers and of paused
        queues."""
        small = {"workers", "queues"}
        return {name for kind, name in self.scans() if kind == "Seq Scan"} - small

    def sorts(self) -> list[str]:
        kinds = [str(node["Node Type"]) for node in self.nodes()]
        return [kind for kind in kinds if kind in {"Sort", "Incremental Sort"}]

    @property
    def pages(self) -> int:
        """Pages of tables and indexes that were looked at."""
        return int(self.root["Shared Hit Blocks"]) + int(self.root["Shared Read Blocks"])

    @property
    def rows(self) -> int:
        return int(self.root["Actual Rows"])


def _walk(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)


def measure(connection: psycopg.Connection, noun: str, name: str, **params: Any) -> Plan:
    """The plan of a statement of the catalogue after an execution, which is rolled back."""
    numbered, names = with_numbers(load(noun)[name].sql)
    prepared = sql.Identifier(f"{noun}.{name}")
    values = sql.SQL(", ").join(sql.Literal(params[each]) for each in names)
    arguments = sql.SQL("({})").format(values) if names else sql.SQL("")
    explain = sql.SQL("explain (analyze, buffers, format json) execute {} {}")
    statements = (
        sql.SQL("deallocate all"),
        sql.SQL("prepare {} as ").format(prepared) + sql.SQL(numbered),
        explain.format(prepared, arguments),
    )
    # The first call of a function reads the catalogue too, as does any statement after others have
    # changed so much of theirs that the server has every session forget what it knew.
    return min((_explained(connection, *statements) for _ in range(2)), key=lambda plan: plan.pages)


def _explained(
    connection: psycopg.Connection, forget: sql.SQL, prepare: sql.Composed, explain: sql.Composed
) -> Plan:
    connection.execute(forget)
    connection.execute(prepare)
    with connection.transaction(force_rollback=True):
        ((explained,),) = connection.execute(explain).fetchall()
    return Plan(explained[0]["Plan"])
