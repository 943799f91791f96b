"""How does a person see what waits, and say yes or no to it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.ask import agreed
from mcpproxy.cli.screen import value_of
from mcpproxy.cli.tools.trust import decide, waiting

if TYPE_CHECKING:
    from mcpproxy.catalog.approval import Waiting
    from mcpproxy.catalog.diff import Difference
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_SEVERITIES: Final = {"high": "bold red", "medium": "yellow", "low": "dim"}
_RUNS: Final = {"same": "", "added": "green", "removed": "red strike"}
_WORDS: Final = {"pending": "is new", "changed": "changed", "rejected": "was refused"}


def show(session: Session, names: Sequence[str]) -> None:
    """Show what waits and what is different about it."""
    found = waiting(session, names)
    screen = session.screen
    screen.show({"waiting": [_plain(one) for one in found]}, lambda: _print_all(screen, found))


def judge(session: Session, names: Sequence[str], *, approve: bool, yes: bool) -> None:
    """Show what is meant, ask, and decide."""
    screen = session.screen
    # What was refused before is approved only where it is named itself.
    chosen = [one for one in waiting(session, names) if not approve or one.state != "rejected" or one.id in names]
    if screen.output == "table":
        _print_all(screen, chosen)
    verb = "Approve" if approve else "Refuse"
    decided = bool(chosen) and agreed(screen, f"{verb} {looks.plural(len(chosen), 'tool')} as shown?", yes=yes)
    if decided:
        decide(session, chosen, approve=approve)
    report = {"decided": decided, "approved": approve, "tools": [_plain(one) for one in chosen]}
    screen.show(report, lambda: _print_end(screen, chosen, "approved" if approve else "refused") if decided else None)


def _print_all(screen: Screen, found: Sequence[Waiting]) -> None:
    if not found:
        screen.line("Nothing waits for approval.")
    for place, one in enumerate(found):
        if place:
            screen.write("")
        _print_one(screen, one)


def _print_one(screen: Screen, one: Waiting) -> None:
    name = one.id if one.tool else f"{one.server} (instructions)"
    screen.line((name, "bold"), " ", (_WORDS[one.state], "magenta"))
    for finding in one.findings:
        place = f" in {finding.where}" if finding.where else ""
        screen.line("  ", (finding.severity, _SEVERITIES[finding.severity]), f"  {finding.rule}{place}: {finding.why}")
        if finding.excerpt:
            screen.line("        ", (finding.excerpt, "dim"))
    if one.approved is not None:
        for difference in one.differences:
            _print_difference(screen, difference)
        return
    screen.line(("  as it would be:", "dim"))
    text = screen.highlighted(one.live)
    for line in text.split("\n"):
        screen.line("    ", line.plain)


def _print_difference(screen: Screen, one: Difference) -> None:
    mark = ("!!", "bold red") if one.loud else ("  ", "")
    path = one.path or "the whole definition"
    match one.kind:
        case "added":
            screen.line(mark, (f" + {path}: {one.after}", "green"))
        case "removed":
            screen.line(mark, (f" - {path}: {one.before}", "red"))
        case "changed":
            screen.line(mark, f" ~ {path}: ", (str(one.before), "red"), " -> ", (str(one.after), "green"))
        case "wording":
            runs = [(_marked(run.operation, run.text), _RUNS[run.operation]) for run in one.words]
            screen.line(mark, f" ~ {path}: ", *runs)


def _marked(operation: str, text: str) -> str:
    """What was taken out or put in, told apart without colours too."""
    return {"added": f"{{+{text}+}}", "removed": f"[-{text}-]"}.get(operation, text)


def _print_end(screen: Screen, chosen: Sequence[Waiting], word: str) -> None:
    screen.line((f"{looks.plural(len(chosen), 'tool is', 'tools are')} {word}.", "green"))


def _plain(one: Waiting) -> dict[str, Any]:
    import msgspec

    return {
        "server": one.server,
        "tool": one.tool,
        "state": one.state,
        "version": one.hash,
        "differences": msgspec.to_builtins(one.differences),
        "findings": msgspec.to_builtins(one.findings),
        "definition": value_of(one.live),
    }
