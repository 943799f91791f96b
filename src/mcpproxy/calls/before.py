"""May this call be made? The stages before an upstream hears of it, each with one reason to say no."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from mcpproxy.catalog.refusal import not_approved
from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs.apart import is_heavy
from mcpproxy.outputs.findings import Findings
from mcpproxy.outputs.schema import CompiledSchema
from mcpproxy.policy.access import check_access, unknown_server, unknown_tool
from mcpproxy.policy.annotations import check_annotations
from mcpproxy.policy.intent import read_intent
from mcpproxy.policy.quoting import json_type, quoted_name, quoted_value
from mcpproxy.policy.verdict import Refusal
from mcpproxy.upstream.server import NotReady, State, Upstream

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Call, Outcome
    from mcpproxy.catalog.tool import Tool

log = logging.getLogger(__name__)

_MAX_SHOWN_SCHEMA = 16_384
_LIMITS = OutputValidation(max_depth=500)
"""Arguments are bounded by the request; only their depth is left to say."""


def resolve(call: Call, house: House) -> Outcome:
    """Find the tool; what a caller may not see does not exist for it."""
    asked = call.asked
    if asked.unknown:
        known = "name, args_json, args, intent, intent_data_sensitivity, intent_reason"
        return _invalid(f"Unknown parameter '{quoted_value(asked.unknown[0])}': {call.variant} takes {known}.")
    if not isinstance(asked.name, str) or not asked.name:
        return _invalid("name is required: give the tool's `server:tool` name as retrieve_tools shows it.")
    call.server, colon, call.tool_name = asked.name.partition(":")
    if not colon or not call.server or not call.tool_name:
        call.server, call.tool_name = "", asked.name
        name = quoted_name(asked.name)
        return _invalid(f"'{name}' is not a tool's full name: write it as server:tool, as retrieve_tools shows it.")
    upstream = house.pool.get(call.server) if call.caller.scope.sees_server(call.server) else None
    if upstream is None:
        return unknown_server(call.server)
    tool = house.catalog.snapshot.find(asked.name)
    waiting = house.catalog.snapshot.waiting.get(asked.name)
    if waiting is not None and call.caller.scope.sees_tool(call.server, call.tool_name):
        return not_approved(asked.name, waiting.state)
    if tool is None and upstream.state is not State.READY:
        return _resolve_later(call, house, upstream, asked.name)
    if tool is None:
        return unknown_tool(call.server, call.tool_name)
    _adopt(call, house, tool)
    return None


async def _resolve_later(call: Call, house: House, upstream: Upstream, name: str) -> Refusal | None:
    """A server that is still connecting may yet list the tool."""
    try:
        await upstream.ready(upstream.server.call_tool_timeout or call.config.call_tool_timeout)
    except NotReady as error:
        return not_ready(call.server, error)
    tool = house.catalog.snapshot.find(name)
    if tool is None:
        return unknown_tool(call.server, call.tool_name)
    _adopt(call, house, tool)
    return None


def _adopt(call: Call, house: House, tool: Tool) -> None:
    call.tool = tool
    call.plan = house.plans.get(tool, call.config)


def not_ready(server: str, error: NotReady) -> Refusal:
    """Why a server cannot take a call now, and who can change that."""
    name = quoted_name(server)
    details = {"server": name, "state": str(error.state)}
    if error.state is State.QUARANTINED:
        message = f"Server '{name}' is quarantined. An operator can approve it with: mcpproxy upstream approve {name}"
        return Refusal("NOT_APPROVED", message, details)
    if error.state is State.NEEDS_LOGIN:
        message = f"Server '{name}' needs a login. An operator can log in with: mcpproxy upstream login {name}"
        return Refusal("LOGIN_REQUIRED", message, details)
    if error.state is State.DISABLED:
        message = f"Server '{name}' is disabled. An operator can enable it with: mcpproxy upstream enable {name}"
        return Refusal("UPSTREAM_UNAVAILABLE", message, details)
    message = f"Server '{name}' is not available ({error.state}): {error.reason[:500]}. It is tried again by itself."
    return Refusal("UPSTREAM_UNAVAILABLE", message, details)


def access(call: Call, house: House) -> Outcome:
    """Hold the call against the caller's scope."""
    verdict = check_access(call.caller.scope, call.server, call.tool_name, call.operation)
    return verdict if isinstance(verdict, Refusal) else None


def intent(call: Call, house: House) -> Outcome:
    """Hold what the caller declares against itself and against the variant."""
    asked = call.asked
    declaration = read_intent(
        call.operation,
        call.config.intent_declaration,
        intent=asked.intent,
        intent_data_sensitivity=asked.intent_data_sensitivity,
        intent_reason=asked.intent_reason,
    )
    call.intent = declaration.intent
    return declaration.refusal


def hints(call: Call, house: House) -> Outcome:
    """Hold the variant against what the server says about the tool."""
    assert call.plan is not None
    verdict = check_annotations(call.plan.tool.id, call.operation, call.plan.hints, call.config.intent_declaration)
    if isinstance(verdict, Refusal):
        return verdict
    call.warnings.extend(verdict.warnings)
    for warning in verdict.warnings:
        log.warning("%s", warning)
    return None


def arguments(call: Call, house: House) -> Outcome:
    """Read the arguments and check them, so that the upstream is bothered only with calls that can work."""
    assert call.plan is not None and call.tool is not None
    asked = call.asked
    if asked.args is not None and asked.args_json is not None:
        return _invalid("Give args or args_json, not both.")
    if asked.args_json is not None:
        if not isinstance(asked.args_json, str):
            return _invalid(f"args_json must be JSON text, not {json_type(asked.args_json)}; use args for an object.")
        call.arguments = asked.args_json.encode(errors="surrogatepass") if asked.args_json.strip() else b"{}"
    elif asked.args is not None:
        call.arguments = asked.args
    return _check(call, house)


def _check(call: Call, house: House) -> Outcome:
    assert call.plan is not None
    try:
        value = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _invalid(f"The arguments are not valid JSON: {_position(call.arguments)}.")
    if not isinstance(value, dict):
        return _invalid(f"The arguments must be a JSON object, not {json_type(value)}.")
    schema = call.plan.input_schema
    if not isinstance(schema, CompiledSchema):
        return None
    if is_heavy(schema, call.arguments):
        return _check_apart(call, house, schema)
    return _judge(call, schema.violations(value))


async def _check_apart(call: Call, house: House, schema: CompiledSchema) -> Refusal | None:
    return _judge(call, await asyncio.to_thread(house.apart.look, call.arguments, schema, _LIMITS))


def _judge(call: Call, findings: Findings) -> Refusal | None:
    if not findings:
        return None
    assert call.tool is not None
    details: dict[str, Any] = {
        "tool": call.tool.id,
        "violations": [{"path": found.path, "expected": found.expected} for found in findings.shown],
    }
    if len(call.tool.input_schema) <= _MAX_SHOWN_SCHEMA:
        details["inputSchema"] = msgspec.Raw(call.tool.input_schema)
    # What was found is the caller's own: it may read it back.
    message = f"Invalid arguments for '{quoted_name(call.tool.id)}': {findings.for_record()}"
    return Refusal("INVALID_ARGUMENTS", message, details)


def _position(data: bytes) -> str:
    """Where the text stops being JSON, in words that a model can act on."""
    try:
        json.loads(data)
    except json.JSONDecodeError as error:
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start}"
    except (ValueError, RecursionError):
        return "it is nested too deeply or holds a number that is too long"
    return "it holds half of a surrogate pair"


def _invalid(message: str) -> Refusal:
    return Refusal("INVALID_ARGUMENTS", message)
