"""Do the keys of one block fit each other? Rules over several keys, and the words for breaking them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from mcpproxy.config.errors import Report, member, shown
from mcpproxy.config.models import Config, Server

Check = Callable[[Any, str, Report], None]

# `${HOME}`, `${input:token}`: what Claude Code and VS Code fill in, and we do not.
_FOREIGN = re.compile(r"\$\{(?!env:|keyring:)[^}]*\}")


def _command_or_url(server: Server, path: str, report: Report) -> None:
    if server.command and server.url:
        report.problem(path, "it has both command and url", "keep the one that starts or reaches the server")
    elif not server.command and not server.url:
        report.problem(path, "it has neither command nor url", "give the command to run or the url to reach")


def _protocol_fits(server: Server, path: str, report: Report) -> None:
    if server.protocol == "stdio" and server.url:
        report.problem(member(path, "protocol"), '"stdio" does not fit a url', 'use "http" or "sse", or leave it out')
    elif server.protocol in {"http", "sse"} and server.command:
        report.problem(
            member(path, "protocol"),
            f'"{server.protocol}" does not fit a command',
            'use "stdio", or leave it out',
        )


def _without_effect(server: Server, path: str, report: Report) -> None:
    kind, idle = ("url", ("args", "env", "working_dir")) if server.url else ("command", ("headers", "oauth"))
    for name in idle:
        if getattr(server, name):
            report.warn(member(path, name), f"has no effect on a server with a {kind}")


def _foreign_references(server: Server, path: str, report: Report) -> None:
    texts = {"command": server.command, "working_dir": server.working_dir, "url": server.url}
    texts |= {"args": " ".join(server.args)}
    texts |= {"env": " ".join(server.env.values()), "headers": " ".join(server.headers.values())}
    for name, text in texts.items():
        for found in dict.fromkeys(_FOREIGN.findall(text or "")):
            report.warn(
                member(path, name),
                f"{shown(found)} is passed on as it stands; only ${{env:NAME}} and ${{keyring:NAME}} are filled in",
            )


def _loopback_meant(config: Config, path: str, report: Report) -> None:
    if config.listen.startswith(":"):
        report.warn(
            member(path, "listen"),
            f'"{config.listen}" is taken as "127.0.0.1{config.listen}", this machine only; '
            f'write "0.0.0.0{config.listen}" to be reached from others',
        )


def _timeouts_in_order(config: Config, path: str, report: Report) -> None:
    limit = config.call_tool_max_timeout
    slow = [("call_tool_timeout", config.call_tool_timeout)]
    slow += [(f"call_tool_timeout of server {s.name!r}", s.call_tool_timeout or limit) for s in config.servers]
    for name, timeout in slow:
        if timeout > limit:
            report.warn(
                member(path, "call_tool_max_timeout"),
                f"is {limit.text}, shorter than the {timeout.text} of {name}; progress will not extend those calls",
            )


RULES: Final[dict[type, tuple[tuple[frozenset[str], Check], ...]]] = {
    Server: (
        (frozenset({"command", "url"}), _command_or_url),
        (frozenset({"command", "url", "protocol"}), _protocol_fits),
        (frozenset({"command", "url", "args", "env", "working_dir", "headers", "oauth"}), _without_effect),
        (frozenset({"command", "url", "args", "env", "working_dir", "headers"}), _foreign_references),
    ),
    Config: (
        (frozenset({"listen"}), _loopback_meant),
        (frozenset({"call_tool_timeout", "call_tool_max_timeout", "servers"}), _timeouts_in_order),
    ),
}
"""For each block: the rule, after the keys that must be sound before it can be judged."""
