"""Does this text dress up as something else? Mark-up and labels by which a prompt tells its parts apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpproxy.catalog.scan.disguise import Reading
from mcpproxy.catalog.scan.hidden import Remark

_LEAST: Final = 8
_TAG: Final = "sets text apart with a tag that a model takes for an order"
_LABEL: Final = "labels itself as a message of the system"
_TURN: Final = "uses the marks by which a model tells whose turn it is"
_CALL: Final = "speaks to the model over the user's head"

_MARKS: Final = tuple(
    (sign, re.compile(pattern, re.IGNORECASE if sign.islower() else 0), why)
    for sign, pattern, why in (
        ("<", r"<\|[a-z_]{2,30}\|>|<</?SYS>>|<(?:start|end)_of_turn>", _TURN),
        ("INST]", r"\[/?INST\]", _TURN),
        ("{{", r"\{\{ ?(?i:system|assistant)\b", _TURN),
        (
            "<",
            r"<\s{0,3}/?\s{0,3}(?i:hidden|secret|system|sys|instructions?|important|critical|assistant|admin|override"
            r"|prompt|rules?)(?:[\s_-][^<>\n]{0,60})?>",
            _TAG,
        ),
        ("SYSTEM", r"(?:^|[\s\[(<*#\"'>-])SYSTEM(?: [A-Z]{3,12}){0,2}(?: ?\([^)\n]{0,60}\))? ?(?::|\]|###)", _LABEL),
        ("[", r"\[(?i:instructions?|system|admin|assistant|prompt|hidden|override)\]", _LABEL),
        *(
            (f"{who} ", rf"[\[{{(#]{{1,4}} ?(?:new )?{who} (?:message|instructions?|prompt|note)\b", _LABEL)
            for who in ("system", "assistant", "admin", "ai")
        ),
        *(
            (call, rf"\b{call},? (?:the |all )?(?:ai|llm|model|assistant|agent)s?\b", _CALL)
            for call in ("attention", "dear", "hey", "hello")
        ),
    )
)
"""What a text must hold for the pattern to be worth a try, in small letters for any case; the pattern; the reason."""


def marks_in(reading: Reading) -> Iterator[Remark]:
    """Where this text poses as the system."""
    text = reading.text
    if len(text) < _LEAST:
        return
    lower = text.lower()
    for sign, pattern, why in _MARKS:
        if sign in (lower if sign.islower() else text):
            found = pattern.search(text)
            if found:
                yield "model.mark", "high", reading.span(*found.span()), why
