"""What do the pages call things? States, intents, outcomes and results in words that say what to do."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from mcpproxy.upstream.server import State


class Look(Struct, frozen=True):
    """A word and the tone in which it is shown: good, wait, bad, off or plain."""

    word: str
    tone: str = "plain"
    next_step: str = ""
    """What an operator can do about it."""


STATES: Final[dict[str, Look]] = {
    State.READY: Look("Connected", "good"),
    State.CONNECTING: Look("Connecting", "wait", "It is being started; this takes a moment."),
    State.DISCONNECTED: Look("Not connected", "off", "It has not been started yet."),
    State.BACKING_OFF: Look("Trying again", "bad", "It is tried again by itself. Its log says what went wrong."),
    State.NEEDS_LOGIN: Look("Needs a login", "wait", "Log in, and it connects by itself."),
    State.QUARANTINED: Look("Quarantined", "wait", "Read what it would run, then approve it or remove it."),
    State.FAILED: Look("Failed", "bad", "It is not tried again as it is: change its entry, or restart it."),
    State.DISABLED: Look("Disabled", "off", "Enable it to use its tools."),
}

STATUSES: Final[dict[str, Look]] = {
    "success": Look("success", "good"),
    "error": Look("error", "bad"),
    "blocked": Look("blocked", "bad"),
    "rejected": Look("rejected", "wait"),
    "warning": Look("warning", "wait"),
    "interrupted": Look("interrupted", "wait"),
}

TYPES: Final = {
    "tool_call": "tool call",
    "internal_tool_call": "built-in tool",
    "policy_decision": "policy decision",
    "server_change": "server",
    "tool_change": "tools",
    "config_change": "configuration",
    "system_start": "start",
    "system_stop": "stop",
}

KINDS: Final[dict[str, Look]] = {
    "read_only": Look("read-only", "read"),
    "modifying": Look("modifies", "write"),
    "destructive": Look("destructive", "destructive"),
    "open": Look("no hints", "off"),
}

WAITING: Final[dict[str, Look]] = {
    "changed": Look("changed", "bad"),
    "pending": Look("new", "wait"),
    "rejected": Look("refused", "off"),
}

SEVERITIES: Final[dict[str, Look]] = {
    "high": Look("high", "bad"),
    "medium": Look("medium", "wait"),
    "low": Look("low", "off"),
}

DONE: Final = {
    "added": "The server is added and is being started.",
    "saved": "Saved, and in force.",
    "restart": "Saved. Some of it takes effect at the next start.",
    "enabled": "The server is enabled.",
    "disabled": "The server is disabled; its tools are gone until it is enabled again.",
    "restarted": "The server is started anew.",
    "approved": "The server is approved.",
    "quarantined": "The server is quarantined.",
    "removed": "The server is removed.",
    "imported": "The servers are added and are being started.",
    "revoked": "The token is revoked, and its sessions are ended.",
    "tool_approved": "Approved: agents may use it as it was shown.",
    "tool_refused": "Refused: agents do not see it.",
    "logged_out": "You are logged out.",
}
"""What a page says after something was done; the address names it, so a reload says it again and nothing else."""
