"""In which form does an answer go out? As a table that fits a terminal, as lines for a pipe, as JSON or YAML."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from mcpproxy.cli.clean import clean, clean_lines, escaped_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from mcpproxy.cli.options import Output

NOTHING: Final = "-"
"""What stands in a pipe where there is nothing to say, so that every line has every column."""
_GAP: Final = 2
_NARROWEST: Final = 6


class Column(Struct, frozen=True):
    """One column of a table."""

    name: str
    gives: int = 0
    """How soon it is cut where the terminal is too narrow: the highest first, 0 never."""
    right: bool = False


class Cell(Struct, frozen=True):
    """One value: what a pipe gets, and how a terminal shows it."""

    text: str
    shown: str | None = None
    style: str = ""


class Screen:
    """Where the answer of one command goes. Remarks go to stderr, so that stdout holds the answer alone."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.terminal = sys.stdout.isatty()
        self.pretty = self.terminal and output == "table"

    @cached_property
    def console(self) -> Console:
        """The terminal; it takes nothing for markup and nothing for an emoji code."""
        return _console(stderr=False)

    @cached_property
    def remarks(self) -> Console:
        """The terminal for what is not part of the answer."""
        return _console(stderr=True)

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self.console.width

    # The answer.

    def show(self, value: Any, table: Callable[[], None]) -> None:
        """Print the value as JSON or YAML where that is asked for; else have `table` print it."""
        if self.output == "json":
            self.json(value)
        elif self.output == "yaml":
            self.write(_yaml(value_of(encoded(value))))
        else:
            table()

    def json(self, value: Any) -> None:
        """Print JSON: indented for a person, on one line for a program."""
        data = encoded(value)
        self.write(escaped_json((_indented(data) if self.terminal else data).decode(errors="replace")))

    def write(self, text: str) -> None:
        """Print text as it is, and a line end."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def raw(self, data: bytes) -> None:
        """Print bytes as they are."""
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def print(self, part: RenderableType) -> None:
        """Print something of rich's; long lines are left to the terminal, so that they can be copied whole."""
        self.console.print(part, soft_wrap=True)

    def line(self, *parts: str | tuple[str, str]) -> None:
        """Print one line of harmless text; a part may come with a style."""
        texts = [(part, "") if isinstance(part, str) else part for part in parts]
        if not self.terminal:
            self.write(clean_lines("".join(text for text, _ in texts)))
            return
        from rich.text import Text

        self.console.print(Text.assemble(*((clean_lines(text), style) for text, style in texts)), soft_wrap=True)

    def rows(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
        """Print a table: cut to fit a terminal, whole and tab-separated into a pipe."""
        if not self.terminal:
            self.write("\t".join(column.name for column in columns))
            for row in rows:
                self.write("\t".join(clean(cell.text) or NOTHING for cell in row))
            return
        from rich.text import Text

        rows = [*rows]
        lines = [[clean(cell.text if cell.shown is None else cell.shown) for cell in row] for row in rows]
        widths = fitting(columns, lines, self.width)
        self.console.print(_line([Text(column.name, "bold") for column in columns], columns, widths))
        for line, row in zip(lines, rows, strict=True):
            texts = [Text(text, cell.style) for text, cell in zip(line, row, strict=True)]
            self.console.print(_line(texts, columns, widths))

    def highlighted(self, data: bytes) -> Text:
        """JSON, indented and in colours."""
        from rich.highlighter import JSONHighlighter
        from rich.text import Text

        text = Text(escaped_json(_indented(data).decode(errors="replace")))
        JSONHighlighter().highlight(text)
        return text

    # Beside the answer.

    def note(self, text: str, style: str = "dim") -> None:
        """Say something on the side; not in JSON mode, where stderr holds nothing but an error."""
        if self.output == "json":
            return
        if not sys.stderr.isatty():
            sys.stderr.write(clean_lines(text) + "\n")
            return
        from rich.text import Text

        self.remarks.print(Text(clean_lines(text), style), soft_wrap=True)

    @contextlib.contextmanager
    def working(self, text: str) -> Iterator[None]:
        """Show that something takes a moment, on a terminal."""
        if self.output != "table" or not sys.stderr.isatty():
            yield
            return
        with self.remarks.status(clean(text)):
            yield


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def encoded(value: Any) -> bytes:
    """The value as JSON; raw JSON as it came."""
    return bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)


def value_of(data: bytes | Raw) -> Any:
    """The value of JSON that may hold half characters or numbers beyond all bounds."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return json.loads(bytes(data))


def _indented(data: bytes) -> bytes:
    try:
        return msgspec.json.format(data, indent=2)
    except msgspec.DecodeError:
        return json.dumps(json.loads(data), indent=2).encode()


def _yaml(value: Any) -> str:
    import yaml

    text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
    if escaped_json(text) != text:  # something in it plays tricks on terminals: written out instead
        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=False, width=120)
    return text


# How wide is each column?


def fitting(columns: Sequence[Column], lines: Sequence[Sequence[str]], width: int) -> list[int]:
    """The widths of the columns: those of their widest cell, where that is too much cut as the columns allow."""
    from rich.cells import cell_len

    widths = [
        max(cell_len(text) for text in (column.name, *(line[place] for line in lines)))
        for place, column in enumerate(columns)
    ]
    excess = sum(widths) + _GAP * (len(columns) - 1) - width
    for turn in sorted({column.gives for column in columns if column.gives}, reverse=True):
        while excess > 0:
            places = [place for place, column in enumerate(columns) if column.gives == turn]
            widest = max(places, key=lambda place: widths[place])
            if widths[widest] <= max(_NARROWEST, len(columns[widest].name)):
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _line(texts: Sequence[Text], columns: Sequence[Column], widths: Sequence[int]) -> Text:
    from rich.text import Text

    line = Text(no_wrap=True, overflow="ellipsis", end="")
    for place, (text, column, width) in enumerate(zip(texts, columns, widths, strict=True)):
        last = place == len(widths) - 1
        text.truncate(width, overflow="ellipsis")
        text.align("right" if column.right else "left", width)
        if last and not column.right:
            text.rstrip()
        line.append_text(text)
        line.append("" if last else " " * _GAP)
    line.end = "\n"
    return line
