"""How does it grow? Figures over a size, as a table, with a word on how they grow."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct


class Curve(Struct):
    """What was measured at each size."""

    of: str
    """What the size counts, such as tools."""
    sizes: list[int] = []
    points: dict[str, list[float]] = {}
    """Figures by name, one for each size."""

    def add(self, size: int, figures: dict[str, float]) -> None:
        """Take what one size came to."""
        self.sizes.append(size)
        for name, value in figures.items():
            self.points.setdefault(name, []).append(value)

    def table(self) -> str:
        """For a person."""
        lines = [f"\n{self.of:34}" + "".join(f"{size:>12,}" for size in self.sizes) + "   grows"]
        for name, values in self.points.items():
            shown = "".join(f"{value:>12.4g}" for value in values)
            lines.append(f"{name:34}{shown}   {self.growth(name)}")
        return "\n".join(lines)

    def markdown(self) -> str:
        """For the documentation."""
        sizes = " | ".join(f"{size:,}" for size in self.sizes)
        lines = [f"| {self.of} | {sizes} | grows |", "|---|" + "---|" * (len(self.sizes) + 1)]
        for name, values in self.points.items():
            shown = " | ".join(f"{value:,.4g}" for value in values)
            lines.append(f"| {name} | {shown} | {self.growth(name)} |")
        return "\n".join(lines)

    def growth(self, name: str) -> str:
        """How a figure grows between the two largest sizes, in words: with which power of the size."""
        values = self.points[name]
        if len(values) < 2 or min(values[0], values[-1]) <= 0:
            return ""
        power = math.log(values[-1] / values[-2]) / math.log(self.sizes[-1] / self.sizes[-2])
        words = ((0.15, "hardly"), (0.8, "more slowly than the size"), (1.2, "with the size"))
        return next((word for limit, word in words if power < limit), "faster than the size") + f" ({power:.2f})"

    def panels(self) -> list[dict[str, Any]]:
        """The figures as small pictures."""
        return [
            {
                "title": name,
                "x": self.sizes,
                "series": {name: values},
                "xlabel": self.of,
                "log": True,
                "marker": "o",
            }
            for name, values in self.points.items()
            if min(values) > 0
        ]
