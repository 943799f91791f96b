"""Does a text of this definition say something suspect, plainly, in disguise or in code?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcpproxy.catalog.scan.finding import Finding
from mcpproxy.catalog.scan.phrases import Match, Token
from mcpproxy.catalog.scan.subject import PHRASEBOOK, Subject

_BEFORE: Final = 9
_ABOUT: Final = PHRASEBOOK.lexicon.kind("ABOUT")
_ORDERS: Final = PHRASEBOOK.lexicon.kind("YOU", "MUST", "CALL", "SEND", "IGNORE", "TOOL", "USER", "RULES")
_ORDER_WORDS: Final = 3


def wording(subject: Subject) -> Iterator[Finding]:
    """Orders to the model, requests for secrets, advertising; also where they are disguised or in code."""
    for reading, tokens in subject.readings:
        for match in PHRASEBOOK.matches(tokens):
            said = match.wording
            if not said.own_names and _names_own(subject, tokens, match):
                continue
            severity, why = said.severity, said.why
            if reading.disguise is not None:
                severity, why = "high", f"{why}, and is {reading.disguise}"
            elif said.quotable and _spoken_of(tokens, match):
                severity, why = "low", f"{why}; here it seems to be spoken of rather than said"
            span = reading.span(tokens[match.first].start, tokens[match.last].end)
            yield subject.remark(said.rule, severity, reading.piece, span, why)


def codes(subject: Subject) -> Iterator[Finding]:
    """Sentences in code that speak to someone, whatever they say."""
    for reading, tokens in subject.readings:
        if reading.disguise is not None and sum(1 for token in tokens if token.kinds & _ORDERS) >= _ORDER_WORDS:
            why = f"is text that speaks to the model, {reading.disguise}"
            yield subject.remark("hidden.code", "medium", reading.piece, reading.span(0, len(reading.text)), why)


def _names_own(subject: Subject, tokens: list[Token], match: Match) -> bool:
    own = {name.lower() for name in subject.context.own}
    return any(token.text in own for token in tokens[match.first : match.last + 1])


def _spoken_of(tokens: list[Token], match: Match) -> bool:
    first = tokens[match.first]
    before = tokens[max(0, match.first - _BEFORE) : match.first]
    return any(token.kinds & _ABOUT and token.sentence == first.sentence for token in before)
