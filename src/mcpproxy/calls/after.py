"""May this result pass? The stages from the upstream back to the caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mcpproxy.calls import before, result
from mcpproxy.calls.before import not_ready
from mcpproxy.calls.model import settled
from mcpproxy.outputs.apart import is_heavy
from mcpproxy.outputs.check import OutputVerdict, block_message, check
from mcpproxy.outputs.cut import cut
from mcpproxy.outputs.schema import CompiledSchema
from mcpproxy.policy.quoting import quoted_name
from mcpproxy.policy.verdict import Refusal
from mcpproxy.upstream.server import NotReady, State
from mcpproxy.wire.errors import (
    AnswerTooLarge,
    CallTimeout,
    InvalidAnswer,
    RpcError,
    TooManyCalls,
    Unauthorized,
    WireError,
)

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Call, Caller, Outcome

log = logging.getLogger(__name__)


class _Relisted(Exception):
    """The server came back, and the tool is not the one that was judged."""


async def ask_upstream(call: Call, house: House) -> Refusal | None:
    """Make the call. Whatever goes wrong is the upstream's fault, and said so."""
    try:
        return await _ask(call, house)
    except _Relisted:
        call.warnings.clear()
    for stage in (before.resolve, before.access, before.hints, before.arguments):
        refusal = await settled(stage(call, house))
        if refusal is not None:
            return refusal
    try:
        return await _ask(call, house)
    except _Relisted:
        return not_ready(call.server, NotReady(State.CONNECTING, "it lists other tools each time it is asked"))


async def _ask(call: Call, house: House) -> Refusal | None:
    upstream = house.pool.get(call.server)
    if upstream is None:
        return not_ready(call.server, NotReady(State.DISCONNECTED, "it was just removed from the configuration"))
    judged = call.tool
    assert judged is not None

    def compare() -> None:
        found = house.catalog.snapshot.find(judged.id)
        if found is not judged and found != judged:
            raise _Relisted

    compare()
    try:
        call.result = await upstream.call_tool(
            judged,
            call.arguments,
            timeout=upstream.server.call_tool_timeout or call.config.call_tool_timeout,
            max_timeout=call.config.call_tool_max_timeout,
            on_progress=call.on_progress,
            on_connected=compare,
            trace=call.trace() if call.trace is not None else None,
        )
    except NotReady as error:
        return not_ready(call.server, error)
    except WireError as error:
        return _fault(call.server, error)
    return None


def _fault(server: str, error: WireError) -> Refusal:
    name = quoted_name(server)
    details: dict[str, object] = {"server": name}
    match error:
        case CallTimeout():
            message = f"Server '{name}' did not answer within {error.seconds:g} s; the call was cancelled there."
            return Refusal("TIMEOUT", message, details)
        case AnswerTooLarge():
            message = f"Server '{name}' sent a result larger than max_result_bytes ({error.limit} bytes)."
            return Refusal("RESULT_TOO_LARGE", message, details)
        case RpcError():
            message = f"Server '{name}' answered with an error: {error.message[:1000]} ({error.code})"
            return Refusal("UPSTREAM_INVALID", message, {**details, "rpc_code": error.code})
        case InvalidAnswer():
            return Refusal("UPSTREAM_INVALID", f"Server '{name}' sent an answer that cannot be used: {error}", details)
        case Unauthorized():
            return not_ready(server, NotReady(State.NEEDS_LOGIN, str(error)))
        case TooManyCalls():
            message = f"Server '{name}' is overloaded: {error}. Try again in a moment."
            return Refusal("UPSTREAM_UNAVAILABLE", message, {**details, "shed": True})
        case _:
            message = f"Server '{name}' failed during the call: {str(error)[:500]}. It may or may not have been done."
            return Refusal("UPSTREAM_UNAVAILABLE", message, details)


def read_result(call: Call, house: House) -> Outcome:
    """See that it is a result at all, and not a question back."""
    try:
        call.view = result.view(call.result)
    except result.NotAResult as error:
        return _fault(call.server, InvalidAnswer(str(error)))
    if call.view.result_type == "input_required":
        name = quoted_name(call.server)
        message = f"Server '{name}' asked for more input to finish this call, which is not relayed yet."
        return Refusal("INPUT_REQUIRED", message, {"server": name})
    return None


def check_output(call: Call, house: House) -> Outcome:
    """Hold structuredContent against the guards and the schema that the tool declared."""
    assert call.plan is not None and call.view is not None and call.tool is not None
    settings = call.config.output_validation
    schema = call.plan.output_schema
    if settings.mode == "off" or (schema is None and not settings.guard_undeclared) or call.view.is_error:
        return None
    structured = result.structured(call.view)
    judge = partial(check, structured, call.view.is_error, schema, settings, mask=house.mask)
    compiled = schema if isinstance(schema, CompiledSchema) else None
    if structured is not None and is_heavy(compiled, structured):
        return _check_apart(call, partial(judge, look=house.apart.look))
    return _judged(call, judge())


async def _check_apart(call: Call, judge: Callable[[], OutputVerdict]) -> Refusal | None:
    return _judged(call, await asyncio.to_thread(judge))


def _judged(call: Call, verdict: OutputVerdict) -> Refusal | None:
    if verdict.action == "pass":
        return None
    assert call.tool is not None
    call.findings["output_validation"] = verdict.details()
    name = quoted_name(call.tool.id)
    if verdict.action == "block":
        return Refusal("OUTPUT_INVALID", block_message(name, verdict), {"tool": name})
    warning = f"Output validation failed for '{name}': {verdict.for_record}"
    call.warnings.append(warning)
    log.warning("%s", warning)
    return None


def cut_long_text(call: Call, house: House) -> Outcome:
    """Cut text blocks over the limit at a sensible place, and keep the whole for read_cache."""
    assert call.view is not None and call.tool is not None
    limit = call.config.tool_response_limit
    if not result.has_long_text(call.view, limit):
        return None
    changed = False
    try:
        content = result.blocks(call.view)
        for place, block in enumerate(content):
            text = result.text_of(block) if len(block) > limit else None  # nearly all are shorter than that
            piece = cut(text, limit) if text is not None else None
            if text is None or piece is None:
                continue
            key = house.cache.put(text, owner=owner_of(call.caller), tool=call.tool.id)
            content[place] = result.with_text(block, piece.head + _note(key, piece.offset, piece.total))
            changed = True
        if changed:
            call.recorded_result = call.result
            call.result = result.with_content(call.result, content)
    except ValueError as error:
        return _unreadable(call, error)
    return None


def _unreadable(call: Call, error: ValueError) -> Refusal:
    """It passed a first look, but not the closer one that a change in it takes."""
    return _fault(call.server, InvalidAnswer(f"the result cannot be read: {error}"))


def owner_of(caller: Caller) -> str:
    """For whom something is kept: this caller, in this session where it has one."""
    return f"{caller.key}/{caller.session_id or ''}"


def _note(key: str | None, offset: int, total: int) -> str:
    rest = f"\n\n[mcpproxy: cut at character {offset} of {total}."
    if key is None:
        return f"{rest} The whole is too large to keep; ask the tool for less.]"
    return f'{rest} Read on with read_cache {{"key": "{key}", "offset": {offset}}}.]'


def fit_to_caller(call: Call, house: House) -> Outcome:
    """The two things that one protocol era has and the other has not."""
    assert call.view is not None
    if not call.caller.modern:
        if bytes(memoryview(call.view.structured_content)[:1]) not in (b"", b"{"):
            call.recorded_result = call.recorded_result or call.result
            try:
                call.result = result.without_structured(call.result)
            except ValueError as error:
                return _unreadable(call, error)
    elif b'"resultType"' not in call.result:
        call.result = result.complete(call.result)
    return None
