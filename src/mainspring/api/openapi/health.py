"""`/health` in the OpenAPI document: it is beside the API, and needs no token."""

from typing import Any

PATH = "/health"


def operation() -> dict[str, Any]:
    """As FastAPI would describe it."""
    ok = {"type": "string", "const": "ok", "description": "Always `ok`."}
    schema = {"type": "object", "properties": {"status": ok}, "required": ["status"]}
    return {
        "tags": ["health"],
        "summary": "Check Health",
        "description": "Check whether the server can reach its database; needs no token.",
        "operationId": "check_health",
        "security": [],
        "responses": {
            "200": {
                "description": "The database answers.",
                "content": {"application/json": {"schema": schema, "example": {"status": "ok"}}},
            }
        },
    }
