"""What did the browser send? The fields of a form, in order, and several under one name where there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request


class Form:
    """The fields of one form."""

    def __init__(self, fields: list[tuple[str, str]]) -> None:
        self._fields = fields

    def __contains__(self, name: str) -> bool:
        return any(given == name for given, _ in self._fields)

    def get(self, name: str) -> str:
        """The value of a field without white space around it; empty where it was not sent."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """The value of a field as it was typed, with the line ends of this system."""
        return next((value.replace("\r\n", "\n") for given, value in self._fields if given == name), "")

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value for given, value in self._fields if given == name]

    def lines(self, name: str) -> list[str]:
        """The lines of a field that say something."""
        return [line.strip() for line in self.raw(name).splitlines() if line.strip()]

    def values(self) -> dict[str, str]:
        """Every field by name, to show it again."""
        return {name: value.replace("\r\n", "\n") for name, value in self._fields}


def form(request: Request) -> Form:
    """The form that came with a request; empty where there was none."""
    return Form(request.scope["mcpproxy.form"])
