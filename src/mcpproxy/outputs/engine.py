"""How is the validator set so that a schema can neither fetch nor stall?"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

Dialect = type[jsonschema_rs.Validator]

DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Compiled size of one pattern, and of the table its matching may build.
PATTERN_BYTES = 1 << 20

_DIALECTS: dict[str, Dialect] = {
    "json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}


def dialect(address: str) -> Dialect | None:
    """Return the validator of the dialect that `$schema` names, or None where it is not known."""
    return _DIALECTS.get(address.removesuffix("#").removeprefix("https://").removeprefix("http://"))


def validator(
    of_dialect: Dialect,
    schema: dict[str, Any] | bool,
    registry: jsonschema_rs.Registry | None = None,
    pattern_bytes: int = PATTERN_BYTES,
) -> jsonschema_rs.Validator:
    """Compile with the network off, formats as notes, and a pattern engine that cannot backtrack."""
    return of_dialect(
        schema,
        registry=registry,
        offline=True,
        validate_formats=False,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=pattern_bytes, dfa_size_limit=PATTERN_BYTES),
    )
