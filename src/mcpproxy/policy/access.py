"""Whose tools may this caller see and use? A token's scope, compiled once, asked on every list and call.

Outside its scope a caller learns nothing, not even that something is there: the refusal is the one for a name
that does not exist. Globs are those of `fnmatch`, case-sensitive, over whole names. A tool glob with a colon is
`server-glob:tool-glob`; one without matches the bare tool name on every server in scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import translate

from mcpproxy.policy.operations import OPERATIONS, OperationType
from mcpproxy.policy.quoting import quoted_name, quoted_value
from mcpproxy.policy.verdict import ALLOWED, Refusal, Verdict

_ANY = ("*",)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one caller may see and do. Empty globs see nothing; no operations means no calls."""

    servers: tuple[str, ...] = _ANY
    tools: tuple[str, ...] = _ANY
    operations: frozenset[OperationType] = frozenset(OPERATIONS)
    _unbounded: bool = field(init=False, repr=False, compare=False)
    _servers: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _tools: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unknown = sorted(map(quoted_value, self.operations - set(OPERATIONS)))
        if unknown:
            raise ValueError(f"Unknown operation '{unknown[0]}': must be read, write, or destructive")
        object.__setattr__(self, "_unbounded", self.servers == _ANY and self.tools == _ANY)
        object.__setattr__(self, "_servers", _compile(self.servers))
        object.__setattr__(self, "_tools", tuple(_compile_tool(glob) for glob in self.tools))

    @classmethod
    def everything(cls) -> Scope:
        """The scope of a caller that nothing is kept from."""
        return _EVERYTHING

    def sees_server(self, server: str) -> bool:
        """Whether any tool of this server can be in scope."""
        return self._unbounded or (
            self._servers.match(server) is not None and any(on.match(server) for on, _ in self._tools)
        )

    def sees_tool(self, server: str, tool: str) -> bool:
        """Whether this tool is in scope: the filter for every list and search."""
        return self._unbounded or (
            self._servers.match(server) is not None
            and any(on.match(server) and named.match(tool) for on, named in self._tools)
        )

    def allows(self, operation: OperationType) -> bool:
        """Whether calls of this kind may be made at all."""
        return operation in self.operations


def check_access(scope: Scope, server: str, tool: str, operation: OperationType) -> Verdict:
    """Hold one call against the caller's scope."""
    if not scope.sees_tool(server, tool):
        return unknown_tool(server, tool) if scope.sees_server(server) else unknown_server(server)
    if not scope.allows(operation):
        return _denied(scope, operation)
    return ALLOWED


def unknown_server(server: str) -> Refusal:
    """The refusal for a server that is not there, or not for this caller: one text for both."""
    name = quoted_name(server)
    message = f"Server '{name}' not found. Use retrieve_tools to see which tools there are."
    return Refusal("UNKNOWN_SERVER", message, {"server": name})


def unknown_tool(server: str, tool: str) -> Refusal:
    """The refusal for a tool that is not there, or not for this caller: one text for both."""
    name = quoted_name(f"{server}:{tool}")
    message = f"Tool '{name}' not found. Use retrieve_tools to find its exact name."
    return Refusal("UNKNOWN_TOOL", message, {"tool": name})


def _denied(scope: Scope, operation: OperationType) -> Refusal:
    allowed = [kind for kind in OPERATIONS if kind in scope.operations]
    message = (
        f"This token may not make {operation} calls (allowed: {', '.join(allowed) or 'none'}). "
        "Ask the operator for a token that may."
    )
    return Refusal("ACCESS_DENIED", message, {"operation_type": operation, "allowed": allowed})


def _compile(globs: Iterable[str]) -> re.Pattern[str]:
    # With no globs at all, a pattern that matches nothing.
    return re.compile("|".join(translate(glob) for glob in globs) or r"(?!)")


def _compile_tool(glob: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    # A server name holds no colon, so the first one parts the two.
    server, colon, tool = glob.partition(":")
    return (_compile([server]), _compile([tool])) if colon else (_compile(_ANY), _compile([glob]))


_EVERYTHING = Scope()
