"""Is there a command for a shell in this text that loads and runs code, opens a door, or destroys files?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpproxy.catalog.scan.disguise import Reading
from mcpproxy.catalog.scan.hidden import Remark

_LEAST: Final = 8
_BEFORE: Final = 60

_COMMAND: Final = re.compile(
    "|".join(
        (
            r"\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^|\n]{1,200}\| ?(?:sudo )?(?:ba|z|da|k)?sh\b",
            r"\b(?:curl|wget)\b[^|\n]{1,200}\| ?(?:python|perl|node|ruby)\d?\b",
            r"\bbase64 (?:-d|--decode)\b[^|\n]{0,80}\|",
            r"\b(?:env|printenv) ?\| ?(?:base64|curl|nc|xxd)\b",
            r"/dev/tcp/\S|\bnc(?:at)? [^\n]{0,40}-e |/bin/(?:ba)?sh -i|\bmkfifo /",
            r"\brm -[a-z]{0,4}(?:rf|fr)[a-z]{0,4} [~/$*]",
            r"\bchmod (?:\+x /tmp|(?:-r )?0?777\b)",
            r"\bpowershell(?:\.exe)? [^\n]{0,60}-e(?:nc|ncodedcommand)?\b|\binvoke-expression\b",
            r"\bos\.system\(",
        )
    ),
    re.IGNORECASE,
)
_SIGNS: Final = (
    "curl,wget,fetch,iwr ,base64 -,env |,env|,/dev/tcp,nc ,ncat ,/bin/,mkfifo,rm -,chmod,powershell,invoke-,os.sys"
).split(",")
_ORDERED: Final = re.compile(
    r"\b(?:run|execute|exec|invoke|launch|start|type|paste|issue|add|write)\b[^.\n]{0,50}$", re.IGNORECASE
)


def commands_in(reading: Reading) -> Iterator[Remark]:
    """The first such command; one that is only mentioned counts for little, since manuals are full of them."""
    text = reading.text
    lower = text.lower()
    worth_a_try = len(text) >= _LEAST and any(sign in lower for sign in _SIGNS)
    found = _COMMAND.search(text) if worth_a_try else None
    if found is None:
        return
    before = text[max(0, found.start() - _BEFORE) : found.start()]
    ordered = reading.disguise is not None or _ORDERED.search(before) is not None
    why = "gives a shell command that loads and runs code, opens a door, or destroys files"
    yield "command.shell", "high" if ordered else "low", reading.span(*found.span()), why
