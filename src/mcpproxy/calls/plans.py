"""What does a call of this tool need to know? Worked out once per definition and settings, not once per call."""

from __future__ import annotations

import logging

from msgspec import Struct

from mcpproxy.catalog.tool import Tool
from mcpproxy.config.models import Config, IntentDeclaration
from mcpproxy.outputs.schema import CompiledSchema, NotCompiled, compile_schema
from mcpproxy.policy.annotations import Hints, effective_hints

log = logging.getLogger(__name__)

MAX_PLANS = 20_000


class Plan(Struct, frozen=True):
    """One tool, ready to be called."""

    tool: Tool
    settings: IntentDeclaration
    hints: Hints
    input_schema: CompiledSchema | NotCompiled
    output_schema: CompiledSchema | NotCompiled | None


class Plans:
    """The plans of the tools called so far."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}

    def get(self, tool: Tool, config: Config) -> Plan:
        """The plan for a tool; made anew when its definition or the settings changed."""
        settings = config.intent_declaration
        plan = self._plans.get(tool.id)
        if plan is not None and plan.tool is tool and plan.settings is settings:
            return plan
        if plan is not None and plan.tool.definition == tool.definition:
            plan = Plan(
                tool, settings, effective_hints(tool.annotations, settings), plan.input_schema, plan.output_schema
            )
        else:
            plan = _make(tool, settings)
        if len(self._plans) >= MAX_PLANS:
            self._plans.pop(next(iter(self._plans)))
        self._plans[tool.id] = plan
        return plan


def _make(tool: Tool, settings: IntentDeclaration) -> Plan:
    output = compile_schema(tool.output_schema) if tool.output_schema is not None else None
    if isinstance(output, NotCompiled):
        log.warning("the output schema of %r is not checked: %s", tool.id, output.reason)
    return Plan(tool, settings, effective_hints(tool.annotations, settings), compile_schema(tool.input_schema), output)
