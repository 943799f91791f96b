"""By which way does the call go? Through the daemon, else through the same pipeline in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, structs

from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import value_of

if TYPE_CHECKING:
    from mcpproxy.app import App
    from mcpproxy.cli.daemon import Daemon
    from mcpproxy.cli.session import Session
    from mcpproxy.policy.operations import OperationType

OnProgress = Callable[[bytes], None] | None
"""Takes the server's reports; None where nobody would see them."""
_STREAM: Final = "text/event-stream"


class Wanted(Struct, frozen=True):
    """One call that a user wants to make."""

    operation: OperationType
    name: str
    arguments: Callable[[Mapping[str, Any]], bytes]
    """The arguments, from the tool's input schema."""
    needs_schema: bool
    intent: dict[str, str]


def make_call(session: Session, wanted: Wanted, on_progress: OnProgress) -> bytes:
    """The tool's raw result; a refusal is a Failure with its code."""
    if session.daemon is not None:
        return _through(session.daemon, wanted, on_progress)
    return asyncio.run(_alone(session, wanted, on_progress))


# Through the daemon.


def _through(daemon: Daemon, wanted: Wanted, on_progress: OnProgress) -> bytes:
    from mcpproxy.cli.activity.watch import events
    from mcpproxy.cli.daemon import Refused, data_of, refusal_in

    schema = _schema_from(daemon, wanted.name) if wanted.needs_schema else {}
    body = {
        "name": wanted.name,
        "variant": wanted.operation,
        "arguments": msgspec.Raw(wanted.arguments(schema)),
        "intent": wanted.intent,
    }
    # A stream only for whoever watches: a plain answer is exact to the last byte.
    headers = {"Accept": f"{_STREAM}, application/json" if on_progress is not None else "application/json"}
    try:
        # No deadline of ours: the daemon has one for each call. Leaving early, as by Ctrl-C, cancels it there.
        with daemon.open("POST", "/tools/call", body=body, headers=headers, timeout=None) as response:
            if not (response.getheader("Content-Type") or "").startswith(_STREAM):
                return bytes(data_of(response.read()))
            for event in events(response):
                if event.kind == "progress" and on_progress is not None:
                    on_progress(event.data.encode())
                elif event.kind == "result":
                    return bytes(data_of(event.data.encode()))
                elif event.kind == "error":
                    raise refusal_in(event.data.encode())
    except Refused as error:
        raise Failure(FAILED, error.message, code=error.code) from None
    raise Failure(FAILED, "the daemon ended the call without a result.", "See: mcpproxy activity list -n 5")


def _schema_from(daemon: Daemon, name: str) -> dict[str, Any]:
    tools = value_of(daemon.get("/tools", {"server": name.partition(":")[0]}))["tools"]
    return next((tool["inputSchema"] for tool in tools if tool["name"] == name), {})


# In this process.


async def _alone(session: Session, wanted: Wanted, on_progress: OnProgress) -> bytes:
    import mcpproxy
    from mcpproxy.activity.record import new_id
    from mcpproxy.calls.model import Asked, Call, Caller
    from mcpproxy.cli.alone import app_with

    server = wanted.name.partition(":")[0]
    async with app_with(session, [server]).running() as app:
        schema = await _schema_in(app, wanted.name) if wanted.needs_schema else {}
        call = Call(
            wanted.operation,
            Asked(name=wanted.name, args=wanted.arguments(schema), intent=wanted.intent),
            Caller(source="cli", key="cli", admin=True, client_name=f"mcpproxy/{mcpproxy.__version__}"),
            request_id=new_id(),
            # Texts are cut to spare a model's context; a person wants all of it.
            config=structs.replace(app.config, tool_response_limit=0),
            on_progress=on_progress,
        )
        reply = await app.pipeline.run(call)
    if reply.refusal is not None:
        raise Failure(FAILED, reply.refusal.message, code=reply.refusal.code)
    return reply.result


async def _schema_in(app: App, name: str) -> dict[str, Any]:
    """The tool's input schema once its server has listed it; nothing where that fails, which the call will explain."""
    from mcpproxy.upstream.server import NotReady

    upstream = app.pool.get(name.partition(":")[0])
    if upstream is None:
        return {}
    try:
        await upstream.ready(upstream.server.call_tool_timeout or app.config.call_tool_timeout)
    except NotReady:
        return {}
    tool = app.catalog.snapshot.find(name)
    found = value_of(tool.input_schema) if tool is not None else {}
    return found if isinstance(found, dict) else {}
