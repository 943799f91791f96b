"""What is wrong with the configuration, and where?"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

HIDDEN = "***"
_SHOWN = 60


class Problem(Struct, frozen=True, kw_only=True):
    """One thing that keeps the configuration from loading."""

    path: str
    """Where it stands, such as `mcpServers[2].protocol`; empty for the file as a whole."""
    what: str
    """What is the matter, such as `"htp" is not allowed`."""
    allowed: str = ""
    """What to write instead, such as `use "stdio", "http" or "sse"`."""
    nearest: str | None = None
    """The known value that was perhaps meant."""

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        advice = f"; {self.allowed}" if self.allowed else ""
        guess = f" (did you mean {shown(self.nearest)}?)" if self.nearest is not None else ""
        return f"{place}{self.what}{advice}{guess}"


class ConfigError(Exception):
    """The configuration does not load. Carries every problem, not only the first, and the warnings beside them."""

    def __init__(self, problems: Iterable[Problem], path: Path | None = None, warnings: Iterable[str] = ()) -> None:
        self.problems = tuple(problems)
        self.path = path
        self.warnings = tuple(warnings)
        super().__init__(self._text())

    def at(self, path: Path) -> ConfigError:
        """The same error, said of this file."""
        return ConfigError(self.problems, path, self.warnings)

    def _text(self) -> str:
        name = str(self.path) if self.path else "the configuration"
        if len(self.problems) == 1:
            return f"{name} does not load: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{name} does not load, {len(self.problems)} problems:{lines}"


class ConfigAccessError(Exception):
    """The file or its directory cannot be read or written: permissions or the disk, not what it says."""

    def __init__(self, path: Path, doing: str, cause: OSError) -> None:
        self.path = path
        self.reason = cause.strerror or str(cause)
        super().__init__(f"{path} cannot be {doing}: {self.reason}. Check its owner and permissions.")


class Report:
    """Problems and warnings as they are found."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def problem(self, path: str, what: str, allowed: str = "", nearest: str | None = None) -> None:
        """Note what keeps the configuration from loading."""
        self.problems.append(Problem(path=path, what=what, allowed=allowed, nearest=nearest))

    def warn(self, path: str, text: str) -> None:
        """Note what loads but deserves a word."""
        self.warnings.append(f"{path}: {text}" if path else text)


def member(path: str, key: str) -> str:
    """The path of a named member: `activity.max_records`, `env["A B"]`."""
    if not key.isidentifier():
        return entry(path, key)
    return f"{path}.{key}" if path else key


def entry(path: str, key: str | int) -> str:
    """The path of a list item or of a free key: `mcpServers[2]`, `mcpServers["github"]`."""
    return f"{path}[{key if isinstance(key, int) else shown(key)}]"


def shown(value: object, secret: bool = False) -> str:
    """The value as JSON on one line, shortened; hidden where it is secret."""
    match value:
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _ if secret:
            return HIDDEN
        case _:
            text = _printable(json.dumps(value, default=str, ensure_ascii=False))
            return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 2]}…{text[-1]}"


def _printable(text: str) -> str:
    # What is shown must not be able to play tricks on the terminal: control and direction characters are escaped.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that is most like this one, if any is."""
    folded = {name.lower().replace("_", ""): name for name in known}
    close = difflib.get_close_matches(word.lower().replace("_", "").replace("-", ""), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def choices(values: Sequence[str]) -> str:
    """The values as a person lists them: `"a", "b" or "c"`."""
    *head, last = (shown(value) for value in values)
    return f"{', '.join(head)} or {last}" if head else last
