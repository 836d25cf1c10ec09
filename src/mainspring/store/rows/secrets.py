"""Where payloads hold secrets."""

import orjson

from mainspring.domain.secrets.paths import Path


def read_paths(text: str) -> tuple[Path, ...]:
    return tuple(tuple(path) for path in orjson.loads(text))
