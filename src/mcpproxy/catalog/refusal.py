"""What does an agent hear about a tool that waits for approval? That it waits, and who can change that."""

from __future__ import annotations

from typing import Final, Literal

from mcpproxy.catalog.approval import State
from mcpproxy.policy.quoting import quoted_name
from mcpproxy.policy.verdict import Refusal

_REASONS: Final = {
    "pending": "is new and waits for approval",
    "changed": "changed since it was approved and waits for approval",
    "rejected": "was refused by an operator",
    "quarantined": "belongs to a server that is quarantined",
}


def not_approved(tool_id: str, state: State | Literal["quarantined"]) -> Refusal:
    """The answer to a call of such a tool. It holds nothing of the server's text but the name that the caller gave."""
    name = quoted_name(tool_id)
    server = name.partition(":")[0]
    command = f"mcpproxy upstream approve {server}" if state == "quarantined" else f"mcpproxy tools approve {name}"
    message = (
        f"Tool '{name}' {_REASONS[state]}. You cannot approve it; ask the operator of mcpproxy, "
        f"who can look at it in the dashboard or with: {command}"
    )
    return Refusal("NOT_APPROVED", message, {"tool": name, "state": state})
