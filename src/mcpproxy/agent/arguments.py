"""What did the agent ask a built-in tool? Raw arguments read into values, with a clear word on what is wrong."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Raw

from mcpproxy.calls.model import Asked
from mcpproxy.policy.quoting import quoted_value

_members = msgspec.json.Decoder(dict[str, Raw]).decode
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""All that reading untrusted JSON can raise: it is no JSON, no UTF-8, or too deep."""
_CALL_KEYS = frozenset(("name", "args", "args_json", "intent", "intent_data_sensitivity", "intent_reason"))


Shape = TypeVar("Shape", bound=msgspec.Struct)


class BadArguments(ValueError):
    """The arguments of a built-in tool are not what it takes."""


def read_call(arguments: bytes) -> Asked:
    """The arguments of a call_tool variant; `args` stays raw."""
    try:
        members = _members(arguments)
        values = {key: msgspec.json.decode(raw) for key, raw in members.items() if key in _CALL_KEYS and key != "args"}
    except UNREADABLE as error:
        raise BadArguments(f"The arguments cannot be read: {error}") from None
    args = bytes(members["args"]) if "args" in members else None
    return Asked(
        name=values.get("name"),
        args=None if args == b"null" else args,
        args_json=values.get("args_json"),
        intent=values.get("intent"),
        intent_data_sensitivity=values.get("intent_data_sensitivity"),
        intent_reason=values.get("intent_reason"),
        unknown=tuple(key for key in members if key not in _CALL_KEYS),
    )


def read_own(arguments: bytes, shape: type[Shape]) -> Shape:
    """The arguments of one of our own tools, as a struct that forbids what it does not know."""
    try:
        return msgspec.json.decode(arguments, type=shape)
    except UNREADABLE as error:
        raise BadArguments(f"Invalid arguments: {quoted_value(str(error))}") from None
