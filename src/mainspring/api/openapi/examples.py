"""Whole examples: bodies made from the examples of their fields."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_PREFIX = "#/components/schemas/"

# Requests whose fields exclude each other, or of which one seldom needs all.
BODIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Bulk": ("action", "filter", "dry_run"),
        "Claim": ("definitions", "limit", "wait"),
        "DefinitionFields": ("max_attempts", "timeout"),
        "FailureReport": ("fence", "error"),
        "LimitIn": ("concurrency", "rate", "burst"),
        "NewDefinition": ("key", "kind", "function", "timeout"),
        "NewEvent": ("name", "context"),
        "NewFlow": ("name", "steps"),
        "NewJob": ("definition", "payload", "queue", "dedupe_key"),
        "NewJobs": ("definition", "payloads"),
        "NewSchedule": ("name", "definition", "cron", "zone"),
        "NewStep": ("step", "definition", "payload", "after"),
        "NewTenant": ("name", "zone"),
        "NewToken": ("name", "role", "expires_in"),
        "NewTrigger": ("name", "event", "definition", "payload"),
        "PersonChanges": ("role",),
        "ScheduleChanges": ("cron", "zone"),
        "TenantChanges": ("weight", "is_enabled"),
        "TriggerFields": ("event", "payload"),
    }
)


class Examples:
    """Makes examples of the schemas of one document."""

    def __init__(self, schemas: Mapping[str, dict[str, Any]]) -> None:
        self._schemas = schemas

    def fill(self) -> None:
        """Give every property an example that has none of its own."""
        for schema in self._schemas.values():
            for described in schema.get("properties", {}).values():
                if "examples" not in described:
                    described["examples"] = [self.of(described)]

    def description_of(self, reference: str) -> str:
        return str(self._schemas[reference.removeprefix(_PREFIX)]["description"])

    def of(self, schema: Mapping[str, Any]) -> Any:
        """An example that fits the schema."""
        if "examples" in schema:
            return schema["examples"][0]
        if "const" in schema or "enum" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        if "$ref" in schema:
            return self._of_model(schema["$ref"].removeprefix(_PREFIX))
        if "anyOf" in schema:
            return self.of(schema["anyOf"][0])
        return self._of_type(schema)

    def _of_model(self, name: str) -> Any:
        schema = self._schemas[name]
        properties = schema.get("properties")
        if properties is None:
            return self.of(schema)
        chosen = BODIES.get(name, properties)
        return {field: self.of(properties[field]) for field in chosen if field in properties}

    def _of_type(self, schema: Mapping[str, Any]) -> Any:
        match schema.get("type"):
            case "array":
                return [self.of(schema.get("items", {}))]
            case "object":
                return {}
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
            case "string":
                return "2026-01-31T12:00:00Z" if schema.get("format") == "date-time" else "text"
        return None
