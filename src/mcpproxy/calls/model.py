"""What is one call? Who makes it, what it asks for, and what becomes of it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from mcpproxy.activity.record import Source, new_id, now
from mcpproxy.policy.access import Scope
from mcpproxy.policy.intent import Intent
from mcpproxy.policy.operations import VARIANT_OF, OperationType
from mcpproxy.policy.verdict import Refusal

if TYPE_CHECKING:
    from opentelemetry.context import Context

    from mcpproxy.calls.plans import Plan
    from mcpproxy.calls.result import ResultView
    from mcpproxy.catalog.tool import Tool
    from mcpproxy.config.models import Config


Outcome = Refusal | Awaitable[Refusal | None] | None
"""What a stage comes to: nothing to say, a reason to stop, or either of them once something has been waited for."""


async def settled(outcome: Outcome) -> Refusal | None:
    """What it comes to in the end."""
    return outcome if outcome is None or isinstance(outcome, Refusal) else await outcome


class Caller(Struct, frozen=True, kw_only=True):
    """Who makes a call, and by which face."""

    source: Source
    key: str
    """What the caller proved to be: nobody else may read what is kept for it."""
    scope: Scope = field(default_factory=Scope.everything)
    admin: bool = False
    session_id: str | None = None
    client_name: str | None = None
    modern: bool = True
    """Whether the caller's protocol takes any JSON as structuredContent (2026-07-28), or objects only."""


class Asked(Struct, frozen=True):
    """The arguments of a call_tool variant as they came, nothing checked yet."""

    name: object = None
    args: bytes | None = None
    """The raw JSON of `args`, where it was given."""
    args_json: object = None
    intent: object = None
    intent_data_sensitivity: object = None
    intent_reason: object = None
    unknown: tuple[str, ...] = ()


class Call:
    """One call on its way through the stages; each fills in what it found."""

    __slots__ = (
        "arguments",
        "asked",
        "began",
        "caller",
        "config",
        "findings",
        "id",
        "intent",
        "on_progress",
        "opened",
        "operation",
        "parent",
        "plan",
        "recorded_result",
        "request_id",
        "result",
        "server",
        "started",
        "tool",
        "tool_name",
        "trace",
        "view",
        "warnings",
    )

    def __init__(
        self,
        operation: OperationType,
        asked: Asked,
        caller: Caller,
        *,
        request_id: str,
        config: Config,
        on_progress: Callable[[bytes], None] | None = None,
    ) -> None:
        self.operation: OperationType = operation
        self.asked = asked
        self.caller = caller
        self.request_id = request_id
        self.config = config
        self.on_progress = on_progress
        self.parent: Context | None = None
        """The caller's own span, where calls are traced."""
        self.trace: Callable[[], dict[str, str]] | None = None
        """What tells a server of our span, where calls are traced."""
        self.id = new_id()
        self.began = now()
        self.started = time.perf_counter()
        self.server = ""
        self.tool_name = ""
        self.tool: Tool | None = None
        self.plan: Plan | None = None
        self.intent = Intent(operation)
        self.arguments = b"{}"
        self.warnings: list[str] = []
        self.findings: dict[str, Any] = {}
        """More for the record's metadata, such as what output validation found."""
        self.opened = False
        """Whether it stands on record already that this call is about to be made."""
        self.result = b""
        self.view: ResultView | None = None
        self.recorded_result: bytes | None = None
        """What goes on record as the response, where it is not what the agent got."""

    @property
    def variant(self) -> str:
        """The name of the call_tool variant."""
        return VARIANT_OF[self.operation]


class Reply(Struct, frozen=True):
    """What a call comes to: the raw result of the tool, or a refusal."""

    result: bytes
    """As an agent gets it: of a refusal, the result that says so."""
    refusal: Refusal | None = None
