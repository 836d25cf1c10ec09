"""What each field means, with an example: by its name, since a name means the same everywhere, or
as `Schema.field` where one schema means something narrower. What a model says itself comes first.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from mainspring.api.openapi.access_fields import ACCESS_FIELDS
from mainspring.api.openapi.error_fields import ERROR_FIELDS
from mainspring.api.openapi.figure_fields import FIGURE_FIELDS
from mainspring.api.openapi.job_fields import JOB_FIELDS
from mainspring.api.openapi.process_fields import PROCESS_FIELDS
from mainspring.api.openapi.rule_fields import RULE_FIELDS

PARTS = (ACCESS_FIELDS, ERROR_FIELDS, FIGURE_FIELDS, JOB_FIELDS, PROCESS_FIELDS, RULE_FIELDS)
FIELDS: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {name: field for part in PARTS for name, field in part.items()}
)


def describe_fields(schemas: Mapping[str, dict[str, Any]]) -> None:
    """Give every property of the schemas its description and its example; an example of `...` is
    left to whoever makes whole examples."""
    for name, schema in schemas.items():
        for field, described in schema.get("properties", {}).items():
            described.pop("title", None)
            known = FIELDS.get(f"{name}.{field}") or FIELDS.get(field)
            if known is None:
                continue
            description, example = known
            described.setdefault("description", description)
            if example is not ...:
                described.setdefault("examples", [example])
