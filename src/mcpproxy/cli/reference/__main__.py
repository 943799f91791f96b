"""Write everything that is made from the commands: `python -m mcpproxy.cli.reference`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcpproxy.cli.reference.man import man_page
from mcpproxy.cli.reference.markdown import markdown
from mcpproxy.cli.reference.tree import root
from mcpproxy.cli.reference.words import words_module

_PROJECT: Final = Path(__file__).parents[4]


def files() -> dict[Path, str]:
    """Each file and what it should hold."""
    commands = root()
    return {
        _PROJECT / "docs" / "cli.md": markdown(commands),
        _PROJECT / "docs" / "mcpproxy.1": man_page(commands),
        Path(__file__).parents[1] / "words.py": words_module(commands),
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text)
