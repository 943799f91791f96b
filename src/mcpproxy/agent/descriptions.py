"""What do agents read about us? Names, descriptions, schemas and annotations of the built-in tools, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mcpproxy.config.models import Config

REMOVED_CALL_TOOL = (
    "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or call_tool_destructive. "
    "See retrieve_tools for annotations and recommendations."
)

INSTRUCTIONS = (
    "mcpproxy stands in front of many MCP servers. Find a tool with retrieve_tools, then call it by its "
    "`server:tool` name with the variant that its `call_with` names: call_tool_read for queries, call_tool_write "
    "for changes, call_tool_destructive for deletions. describe_tool gives full schemas, read_cache the rest of "
    "an answer that was cut."
)

_USAGE = (
    "Use call_tool_read for read-only operations, call_tool_write for modifications, "
    "call_tool_destructive for deletions. Intent must match tool variant."
)

_RETRIEVE = (
    "Search for tools across all upstream servers. Results include annotations (readOnlyHint, destructiveHint) and "
    "recommended call_with variant. Use call_tool_read for read-only operations, call_tool_write for modifications, "
    "call_tool_destructive for deletions. Intent must match tool variant."
)

_CALLS = {
    "read": (
        "Execute a read-only tool discovered via retrieve_tools. Use for operations that query data without modifying "
        "state.{clause} Will be rejected if server marks tool as destructive."
    ),
    "write": (
        "Execute a state-modifying tool discovered via retrieve_tools. Use for operations that create or update "
        "resources.{clause} Will be rejected if server marks tool as destructive."
    ),
    "destructive": (
        "Execute a destructive tool discovered via retrieve_tools. Use for operations that delete or permanently "
        "modify resources.{clause} Most permissive - allowed regardless of server annotations."
    ),
}

_HINTS = {
    "read": {"title": "Call a read-only tool", "readOnlyHint": True, "destructiveHint": False, "openWorldHint": True},
    "write": {
        "title": "Call a tool that changes things",
        "readOnlyHint": False,
        "destructiveHint": False,
        "openWorldHint": True,
    },
    "destructive": {
        "title": "Call a tool that deletes things",
        "readOnlyHint": False,
        "destructiveHint": True,
        "openWorldHint": True,
    },
}
_OWN_READ = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_MAX_NAMED_SERVERS = 40


def usage_instructions() -> str:
    """What every answer of retrieve_tools says about the three variants."""
    return _USAGE


def built_in_tools(config: Config, servers: Iterable[str]) -> list[dict[str, Any]]:
    """The definitions of every built-in tool, as `tools/list` shows them to one caller."""
    return [
        _retrieve_tools(config, servers),
        _describe_tool(),
        *(_call_tool(kind, config) for kind in ("read", "write", "destructive")),
        _read_cache(),
    ]


def management_tools() -> list[dict[str, Any]]:
    """What a caller that holds the API key sees besides."""
    name = _text("The server's name.")
    return [
        {
            "name": "upstream_servers",
            "title": "Manage servers",
            "description": "List, add, remove, enable, disable or restart upstream servers, or read their logs. "
            "A server added here stays in quarantine until a person approves it.",
            "inputSchema": _object(
                {
                    "operation": {
                        "type": "string",
                        "enum": ["list", "add", "remove", "enable", "disable", "restart", "logs"],
                    },
                    "name": name,
                    "server": {"type": "object", "description": "For add: its entry, as in the configuration file."},
                },
                ["operation"],
            ),
            "annotations": {"title": "Manage servers", "readOnlyHint": False, "destructiveHint": True},
        },
        {
            "name": "quarantine_security",
            "title": "Quarantine",
            "description": "List the servers in quarantine, or put one there. Only a person can approve one.",
            "inputSchema": _object(
                {"operation": {"type": "string", "enum": ["list", "quarantine"]}, "name": name}, ["operation"]
            ),
            "annotations": {"title": "Quarantine", "readOnlyHint": False, "destructiveHint": False},
        },
    ]


def _retrieve_tools(config: Config, servers: Iterable[str]) -> dict[str, Any]:
    names = sorted(servers)
    named = ", ".join(names[:_MAX_NAMED_SERVERS])
    more = f" and {len(names) - _MAX_NAMED_SERVERS} more" if len(names) > _MAX_NAMED_SERVERS else ""
    behind = f" Connected servers: {named}{more}." if names else " No server is connected yet."
    return {
        "name": "retrieve_tools",
        "title": "Search tools",
        "description": _RETRIEVE + behind,
        "inputSchema": _object(
            {
                "query": _text("What you want to do, in plain words, or a tool's name."),
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 100,
                    "default": config.tools_limit,
                    "description": "How many tools at the most.",
                },
                "detail": {
                    "type": "string",
                    "enum": ["full", "compact"],
                    "description": "full: with input schemas as far as the budget goes; compact: one-line signatures.",
                },
                "read_only_only": {"type": "boolean", "description": "Only tools that their server marks read-only."},
                "exclude_destructive": {
                    "type": "boolean",
                    "description": "No tools that their server marks destructive.",
                },
            },
            ["query"],
        ),
        "annotations": {"title": "Search tools", **_OWN_READ},
    }


def _describe_tool() -> dict[str, Any]:
    return {
        "name": "describe_tool",
        "title": "Describe tools",
        "description": "Full definition of one tool or several found by retrieve_tools: description, input and output "
        "schema, annotations and the variant to call it with.",
        "inputSchema": _object(
            {
                "name": _text("A tool's `server:tool` name."),
                "names": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": 20,
                    "description": "Several names at once.",
                },
            },
            [],
        ),
        "annotations": {"title": "Describe tools", **_OWN_READ},
    }


def _call_tool(kind: str, config: Config) -> dict[str, Any]:
    two_keys = config.intent_declaration.require_operation_type
    clause = f" Requires intent.operation_type='{kind}'." if two_keys else ""
    properties = {
        "name": _text("The tool's `server:tool` name, as retrieve_tools gives it."),
        "args_json": _text("The tool's arguments as JSON text, such as '{\"id\": 1}'."),
        "args": {"type": "object", "description": "The tool's arguments as an object, instead of args_json."},
        "intent_data_sensitivity": {
            "type": "string",
            "enum": ["public", "internal", "private", "unknown"],
            "description": "What kind of data is touched, for the audit record.",
        },
        "intent_reason": {"type": "string", "maxLength": 1000, "description": "Why, for the audit record."},
        "intent": _intent(kind, two_keys),
    }
    return {
        "name": f"call_tool_{kind}",
        "title": _HINTS[kind]["title"],
        "description": _CALLS[kind].format(clause=clause),
        "inputSchema": _object(properties, ["name", "intent"] if two_keys else ["name"]),
        "annotations": _HINTS[kind],
    }


def _intent(kind: str, two_keys: bool) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "The same two as an object"
        + (f", with operation_type '{kind}'." if two_keys else "; operation_type, where given, must fit the variant."),
        "properties": {
            "operation_type": {"type": "string", "enum": [kind]},
            "data_sensitivity": {"type": "string", "enum": ["public", "internal", "private", "unknown"]},
            "reason": {"type": "string", "maxLength": 1000},
        },
        **({"required": ["operation_type"]} if two_keys else {}),
    }


def _read_cache() -> dict[str, Any]:
    return {
        "name": "read_cache",
        "title": "Read on",
        "description": "Read on in an answer that was cut for its length: the cut text names the key and the offset.",
        "inputSchema": _object(
            {
                "key": _text("The key that the cut answer names."),
                "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to read on."},
                "limit": {"type": "integer", "minimum": 1, "description": "How many characters at the most."},
            },
            ["key"],
        ),
        "annotations": {"title": "Read on", **_OWN_READ},
    }


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}
