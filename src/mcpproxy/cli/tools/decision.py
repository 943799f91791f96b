"""How does a person see what waits, and say yes or no to it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli import looks
from mcpproxy.cli.ask import agreed
from mcpproxy.cli.tools.trust import View, decide, waiting

if TYPE_CHECKING:
    from mcpproxy.catalog.diff import Words
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_SEVERITIES: Final = {"high": "bold red", "medium": "yellow", "low": "dim"}
_RUNS: Final = {"same": "", "added": "green", "removed": "red strike"}
_WORDS: Final = {"pending": "is new", "changed": "changed", "rejected": "was refused"}


def show(session: Session, names: Sequence[str]) -> None:
    """Show what waits and what is different about it."""
    found = waiting(session, names)
    screen = session.screen
    screen.show({"waiting": found}, lambda: _print_all(screen, found))


def judge(session: Session, names: Sequence[str], *, approve: bool, yes: bool) -> None:
    """Show what is meant, ask, and decide."""
    screen = session.screen
    # What was refused before is approved only where it is named itself.
    chosen = [
        one for one in waiting(session, names) if not approve or one["state"] != "rejected" or one["name"] in names
    ]
    if screen.output == "table":
        _print_all(screen, chosen)
    verb = "Approve" if approve else "Refuse"
    decided = bool(chosen) and agreed(screen, f"{verb} {looks.plural(len(chosen), 'tool')} as shown?", yes=yes)
    if decided:
        decide(session, chosen, approve=approve)
    report = {"decided": decided, "approved": approve, "tools": chosen}
    screen.show(report, lambda: _print_end(screen, chosen, "approved" if approve else "refused") if decided else None)


def _print_all(screen: Screen, found: Sequence[View]) -> None:
    if not found:
        screen.line("Nothing waits for approval.")
    for place, one in enumerate(found):
        if place:
            screen.write("")
        _print_one(screen, one)


def _print_one(screen: Screen, one: View) -> None:
    name = one["name"] if not one["name"].endswith(":") else f"{one['server']} (instructions)"
    screen.line((name, "bold"), " ", (_WORDS[one["state"]], "magenta"))
    for finding in one["findings"]:
        place = f" in {finding['where']}" if finding["where"] else ""
        severity = finding["severity"]
        screen.line("  ", (severity, _SEVERITIES[severity]), f"  {finding['rule']}{place}: {finding['why']}")
        if finding["excerpt"]:
            screen.line("        ", (finding["excerpt"], "dim"))
    for difference in one["differences"]:
        _print_difference(screen, difference)
    if one["state"] == "pending":
        screen.line("  ", ("as it would be: ", "dim"), one["definition"])


def _print_difference(screen: Screen, one: dict[str, Any]) -> None:
    mark = ("!!", "bold red") if one["loud"] else ("  ", "")
    path, before, after = one["path"] or "the whole definition", one.get("before"), one.get("after")
    match one["kind"]:
        case "added":
            screen.line(mark, (f" + {path}: {after}", "green"))
        case "removed":
            screen.line(mark, (f" - {path}: {before}", "red"))
        case "wording":
            runs = [(_marked(run.operation, run.text), _RUNS[run.operation]) for run in _runs(before, after)]
            screen.line(mark, f" ~ {path}: ", *runs)
        case _:
            screen.line(mark, f" ~ {path}: ", (str(before), "red"), " -> ", (str(after), "green"))


def _runs(before: str | None, after: str | None) -> tuple[Words, ...]:
    """Which words of a text went, and which came."""
    import msgspec

    from mcpproxy.catalog.diff import diff

    texts = [msgspec.json.encode({"description": text or ""}) for text in (before, after)]
    found = diff(*texts)
    return found[0].words if found else ()


def _marked(operation: str, text: str) -> str:
    """What was taken out or put in, told apart without colours too."""
    return {"added": f"{{+{text}+}}", "removed": f"[-{text}-]"}.get(operation, text)


def _print_end(screen: Screen, chosen: Sequence[View], word: str) -> None:
    screen.line((f"{looks.plural(len(chosen), 'tool is', 'tools are')} {word}.", "green"))
