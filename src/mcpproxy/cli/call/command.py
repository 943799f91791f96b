"""What does `call` do, from the words on the command line to the result on the screen?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from mcpproxy.cli.call.arguments import given_json, is_pair, merged
from mcpproxy.cli.call.make import Wanted, make_call
from mcpproxy.cli.call.progress import progress_bar
from mcpproxy.cli.call.result import print_result, save_media
from mcpproxy.cli.errors import FAILED, USAGE, Failure

if TYPE_CHECKING:
    from mcpproxy.cli.session import Session
    from mcpproxy.policy.operations import OperationType

_HINTS: Final = {
    "UNKNOWN_TOOL": "See what there is: mcpproxy tools list",
    "UNKNOWN_SERVER": "See what there is: mcpproxy upstream list",
    "INVALID_ARGUMENTS": "See what it takes: mcpproxy tools show {tool}",
    "TIMEOUT": "Longer calls: set call_tool_timeout for this server.",
    "UPSTREAM_UNAVAILABLE": "See why: mcpproxy upstream logs {server}",
}


def run(
    session: Session,
    operation: OperationType,
    words: Sequence[str],
    *,
    tool_name: str | None,
    json_options: Sequence[tuple[str, str | None]],
    intent: Mapping[str, str | None],
    save: str | None,
) -> None:
    """Make one call and show what comes of it."""
    name, pairs = _read_words(words, tool_name, operation)
    data = given_json(*json_options)
    wanted = Wanted(
        operation,
        name,
        partial(merged, data, pairs),
        needs_schema=bool(pairs),
        intent={"operation_type": operation, **{key: value for key, value in intent.items() if value is not None}},
    )
    try:
        with progress_bar(session.screen, name) as on_progress:
            result = make_call(session, wanted, on_progress)
    except Failure as error:
        error.hint = error.hint or _hint(error, name)
        raise
    failed = print_result(session.screen, result)
    if save is not None:
        save_media(session.screen, result, save, name)
    if failed:
        raise Failure(FAILED, f"the tool {name} reported an error.", code="TOOL_ERROR")


def _hint(error: Failure, name: str) -> str:
    wanted = re.search(r"use call_tool_(\w+) instead", error.message)
    if error.code == "SERVER_MISMATCH" and wanted:
        return f"If that is what you want: mcpproxy call tool-{wanted[1]} {name}"
    return _HINTS.get(error.code, "").format(tool=name, server=name.partition(":")[0])


def _read_words(words: Sequence[str], tool_name: str | None, operation: str) -> tuple[str, list[str]]:
    """The tool's name and the pairs."""
    names = [word for word in words if not is_pair(word)]
    if tool_name is not None and names:
        raise Failure(USAGE, f"the tool is named twice: {tool_name!r} and {names[0]!r}.")
    if len(names) > 1:
        message = f"{names[1]!r} is neither the tool nor KEY=VALUE."
        raise Failure(USAGE, message, f"See: mcpproxy call tool-{operation} --help")
    name = tool_name or (names[0] if names else "")
    if not name:
        raise Failure(USAGE, "which tool? Name it as SERVER:TOOL.", "See what there is: mcpproxy tools list")
    return name, [word for word in words if is_pair(word)]
