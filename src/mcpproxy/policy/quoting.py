"""How is a value that nobody vouches for repeated in a message? Short, on one line, and without tricks."""

from __future__ import annotations

_VALUE = 64
_NAME = 200  # a server name of 64, a colon, a tool name of 128, and some room


def quoted_value(value: object) -> str:
    """A caller's value for a message: text as it is where it is harmless, anything else by its JSON type."""
    return _clean(value, _VALUE) if isinstance(value, str) else f"[{json_type(value)}]"


def quoted_name(name: str) -> str:
    """A tool or server name for a message."""
    return _clean(name, _NAME)


def json_type(value: object) -> str:
    """What JSON calls this kind of value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def _clean(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    # Control and format characters (bidi overrides too), line separators, lone surrogates: seen, not obeyed.
    return "".join(char if char.isprintable() else "\ufffd" for char in cut)
