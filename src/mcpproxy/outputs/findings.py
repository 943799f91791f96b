"""What is wrong with a value, in all? The first few violations in words, and how many more there are."""

from __future__ import annotations

from typing import Literal

import msgspec

from mcpproxy.outputs.wording import Mask, Violation

SHOWN = 3

Guard = Literal["max_bytes", "max_depth"]


class Findings(msgspec.Struct, frozen=True):
    """The violations of one value; falsy where there are none."""

    shown: tuple[Violation, ...] = ()
    total: int = 0
    complete: bool = True
    guard: Guard | None = None

    def __bool__(self) -> bool:
        return self.total > 0

    @property
    def schema_path(self) -> str | None:
        """Return the place in the schema that the first violation breaks."""
        return self.shown[0].schema_path or None if self.shown else None

    def for_agent(self) -> str:
        """Put up to three violations into words that hold nothing of the payload."""
        return self._join([violation.for_agent() for violation in self.shown])

    def for_record(self, mask: Mask = str) -> str:
        """Put up to three violations into words with what was found, shortened and masked."""
        return self._join([violation.for_record(mask) for violation in self.shown])

    def _join(self, texts: list[str]) -> str:
        more = self.total - len(self.shown)
        if more and self.complete:
            texts.append(f"and {more} more")
        elif not self.complete:
            texts.append(f"and at least {more} more" if more else "and perhaps more")
        return "; ".join(texts)


def one(expected: str, found: str, guard: Guard | None = None) -> Findings:
    """Report one violation of the value as a whole."""
    whole = Violation(place="$", expected=expected, path="$", found=found)
    return Findings(shown=(whole,), total=1, guard=guard)
