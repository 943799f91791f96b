"""What is searched? One tool as plain values, and the text of each of its fields, bounded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TEXT = 3000
"""Characters of one field that are read; what follows tells nothing new about a tool."""
MAX_PARAMETERS = 200
MAX_DEPTH = 6
MAX_NODES = 2000
MAX_CHOICES = 20


@dataclass(frozen=True, slots=True)
class Document:
    """One tool, as search sees it."""

    id: str
    """`server:tool`"""
    server: str
    name: str
    title: str = ""
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    read_only: bool | None = None
    destructive: bool | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """The text of one tool, by field."""

    name: str
    server: str
    title: str
    description: str
    parameters: str
    parameter_texts: str


def fields_of(document: Document) -> Fields:
    """Take a tool apart into the fields that are ranked."""
    names: list[str] = []
    texts: list[str] = []
    room = MAX_TEXT
    for name, text in parameters_of(document.input_schema):
        names.append(name)
        texts.append(text[:room])
        room -= len(text[:room])
    return Fields(
        name=document.name,
        server=document.server,
        title=document.title[:MAX_TEXT],
        description=document.description[:MAX_TEXT],
        parameters=" ".join(names)[:MAX_TEXT],
        parameter_texts=" ".join(filter(None, texts)),
    )


def parameters_of(schema: object) -> Iterator[tuple[str, str]]:
    """Name and text of every parameter, nested ones too, outermost first and bounded against hostile schemas."""
    root = schema if isinstance(schema, Mapping) else {}
    level: list[object] = [root]
    followed: set[str] = set()
    nodes = found = 0
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for node in level:
            nodes += 1
            if nodes > MAX_NODES:
                return
            if not isinstance(node, Mapping):
                continue
            properties = node.get("properties")
            for name, child in properties.items() if isinstance(properties, Mapping) else ():
                yield str(name), _text(child)
                found += 1
                if found >= MAX_PARAMETERS:
                    return
                below.append(child)
            below.extend(_inside(node, root, followed))
        level = below


def _text(node: object) -> str:
    if not isinstance(node, Mapping):
        return ""
    said = node.get("description")
    choices = node.get("enum")
    words = [said] if isinstance(said, str) else []
    if isinstance(choices, list):
        words += [choice for choice in choices[:MAX_CHOICES] if isinstance(choice, str)]
    return " ".join(words)


def _inside(node: Mapping[str, Any], root: Mapping[str, Any], followed: set[str]) -> Iterator[object]:
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), Mapping):
            yield node[key]
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(node.get(key), list):
            yield from node[key]
    target = node.get("$ref")
    # A definition is read once, however often it is pointed to: loops end, and a doubling schema stays small.
    if isinstance(target, str) and target not in followed:
        followed.add(target)
        yield resolve(target, root)


def resolve(reference: str, root: Mapping[str, Any]) -> object:
    """What a local `$ref` points to; None for anything else."""
    if not reference.startswith("#/"):
        return None
    node: object = root
    for step in reference[2:].split("/"):
        if not isinstance(node, Mapping):
            return None
        node = node.get(step.replace("~1", "/").replace("~0", "~"))
    return node


def fingerprint(*texts: str) -> bytes:
    """A short hash that says whether a text was seen before."""
    return hashlib.blake2b("\x1f".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
