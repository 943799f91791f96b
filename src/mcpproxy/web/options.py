"""Which settings are there? Every key of the configuration, what it is for, and which values it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, inspect

from mcpproxy.config.changes import RESTART
from mcpproxy.config.mask import masked
from mcpproxy.config.models import Config
from mcpproxy.config.walk import bare

Kind = Literal["flag", "choice", "number", "text", "lines"]

GROUPS: Final[dict[str, dict[str, str]]] = {
    "What agents get": {
        "tools_limit": "How many tools one search answers with, unless the agent asks for another number.",
        "retrieve_tools_max_tokens": "The budget of one search answer, in tokens of the agent's context.",
        "tool_response_limit": "Characters of one text before it is cut and the rest kept for read_cache; 0 cuts none.",
        "require_mcp_auth": "Whether /mcp needs the key or a token. Left open: only where other machines can reach it.",
        "max_sessions": "How many idle sessions of agents are kept.",
    },
    "Calls": {
        "call_tool_timeout": "How long a call may take, such as 2m or 30s.",
        "call_tool_max_timeout": "How far progress from the server can extend that.",
        "max_result_bytes": "The largest answer that is taken from a server, in bytes.",
        "max_request_bytes": "The largest request that is taken from an agent, in bytes.",
    },
    "Declared intent": {
        "intent_declaration.strict_server_validation": "Refuse a call whose kind contradicts the tool's hints. "
        "Off: allow it, with a warning on its record.",
        "intent_declaration.require_operation_type": "Refuse a call that does not say its kind a second time, "
        "in intent.operation_type.",
        "intent_declaration.unannotated": "What a tool without hints is taken for.",
        "intent_declaration.refuse_read_on_modifying": "Refuse call_tool_read where the server says that the tool "
        "is not read-only.",
    },
    "Checked results": {
        "output_validation.mode": "What happens to a result that breaks the schema its tool declared.",
        "output_validation.max_bytes": "The largest structured result that is checked; a larger one counts as broken.",
        "output_validation.max_depth": "The deepest structured result that is checked.",
        "output_validation.missing_structured_content": "In strict mode, what happens where a tool declares a schema "
        "and sends no structured result.",
        "output_validation.guard_undeclared": "Hold results of tools without a schema against size and depth too.",
    },
    "Activity log": {
        "activity.retention_days": "Records older than this are removed.",
        "activity.max_records": "More than so many are not kept; the oldest go first.",
        "activity.max_size_mb": "More than so much is not kept; the oldest go first.",
        "activity.max_payload_bytes": "Stored size of arguments and of the response, each; longer ones are cut.",
        "activity.on_failure": "What happens to calls when a record cannot be written.",
        "activity.durability": "What a record survives: the death of the process, or of the machine too.",
    },
    "This proxy": {
        "listen": "Where it listens.",
        "storage": "sqlite in the data directory, or the address of a PostgreSQL database.",
        "trusted_hosts": "Further names under which it is reached, one per line.",
        "log_level": "How much it logs.",
        "otel_endpoint": "Where traces are sent to, over OTLP.",
    },
}
ELSEWHERE: Final = frozenset({"api_key", "mcpServers"})
"""The key is kept out of pages, and servers have pages of their own."""

_INTEGER: Final = re.compile(r"-?\d{1,18}")


class Option(Struct, frozen=True, kw_only=True):
    """One setting."""

    key: str
    kind: Kind
    help: str
    text: str
    """What is in force, as the form shows it."""
    default: str
    choices: tuple[str, ...]
    place: int
    """Its place on the form."""
    restart: bool
    """Whether a change takes effect at the next start only."""


def options(config: Config) -> dict[str, list[Option]]:
    """Every setting, in groups."""
    kinds = dict(_kinds(inspect.type_info(Config), ""))
    places = [key for members in GROUPS.values() for key in members]
    now, default = _flat(masked(config)), _flat(masked(Config()))
    return {
        group: [
            Option(
                key=key,
                kind=kinds[key][0],
                help=text,
                text=_text(now[key]),
                default=_text(default[key]),
                choices=kinds[key][1],
                place=places.index(key),
                restart=key in RESTART,
            )
            for key, text in members.items()
        ]
        for group, members in GROUPS.items()
    }


def changed(given: Mapping[str, str], config: Config) -> dict[str, Any]:
    """What a filled-in form changes, as a patch: nested, with null for what goes back to its default."""
    patch: dict[str, Any] = {}
    for option in (option for members in options(config).values() for option in members):
        text = "\n".join(line.strip() for line in given.get(option.key, option.text).strip().splitlines())
        if text != option.text:
            *blocks, name = option.key.split(".")
            place = patch
            for block in blocks:
                place = place.setdefault(block, {})
            place[name] = _value(option, text)
    return patch


def _value(option: Option, text: str) -> Any:
    """The value that a text means; what means none goes on as it is, to be refused with a reason."""
    if not text:
        return None
    match option.kind:
        case "flag" if text in ("true", "false"):
            return text == "true"
        case "number" if _INTEGER.fullmatch(text):
            return int(text)
        case "lines":
            return text.splitlines()
        case _:
            return text


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list():
            return "\n".join(value)
        case _:
            return str(value)


def _flat(block: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in block.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _kinds(kind: inspect.Type, prefix: str) -> Iterator[tuple[str, tuple[Kind, tuple[str, ...]]]]:
    assert isinstance(kind, inspect.StructType)
    for item in kind.fields:
        inner = bare(item.type)
        key = prefix + item.encode_name
        match inner:
            case inspect.StructType():
                yield from _kinds(inner, f"{key}.")
            case inspect.BoolType():
                yield key, ("flag", ())
            case inspect.LiteralType():
                yield key, ("choice", tuple(map(str, inner.values)))
            case inspect.IntType():
                yield key, ("number", ())
            case inspect.VarTupleType():
                yield key, ("lines", ())
            case _:
                yield key, ("text", ())
