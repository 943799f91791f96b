"""Where does a reference in this schema lead? Answered inside the document only, never outside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

Node = dict[str, Any]

# Keywords that hold schemas: one, a list of them, or a map of them. Some hold either.
HOLDS_ONE_OR_LIST = frozenset(
    {
        "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "else", "if", "items", "not",
        "oneOf", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
HOLDS_MAP = frozenset({"dependencies", "dependentSchemas", "patternProperties", "properties"})
# Reached by reference only.
_SHELVES = frozenset({"$defs", "definitions"})
_METASCHEMA_ADDRESSES = ("http://json-schema.org/", "https://json-schema.org/")
# Stands for a dialect's own schema: these come with the validator, so nothing is fetched.
METASCHEMA = object()


class UnresolvedError(Exception):
    """A reference that does not lead anywhere inside the schema. Its text says which."""


def held(node: Node, keyword: str) -> list[Any]:
    """List the schemas that a keyword of a schema holds."""
    value = node[keyword]
    if keyword in HOLDS_MAP or keyword in _SHELVES:
        return list(value.values()) if isinstance(value, dict) else []
    return value if isinstance(value, list) else [value]


class Document:
    """One schema with its resources, anchors and references."""

    def __init__(self, root: Any, id_keyword: str = "$id") -> None:
        self.root = root
        self._id_keyword = id_keyword
        self.dialects: set[Any] = set()
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {"": root}
        self._anchors: dict[tuple[str, str], Any] = {}
        self._dynamic: dict[str, list[Any]] = {}
        self._index()

    @property
    def has_inner_resources(self) -> bool:
        """Say whether some inner schema has an address of its own, which changes what `#` means in it."""
        return any(resource is not self.root for resource in self._resources.values())

    def targets(self, node: Node) -> Iterator[Any]:
        """Yield every schema that the references of a schema may lead to; raise `UnresolvedError`."""
        base = self._bases.get(id(node), "")
        if isinstance(reference := node.get("$ref"), str):
            yield self._resolve(reference, base)
        for keyword, anchor in (("$dynamicRef", "$dynamicAnchor"), ("$recursiveRef", "$recursiveAnchor")):
            if isinstance(reference := node.get(keyword), str):
                target = self._resolve(reference, base)
                name = target.get(anchor) if isinstance(target, dict) else None
                # Which of the equally named anchors applies is known at run time only.
                yield from self._dynamic.get(str(name), [target])

    def _index(self) -> None:
        stack: list[tuple[Any, str]] = [(self.root, "")]
        while stack:
            node, base = stack.pop()
            if not isinstance(node, dict):
                continue
            base = self._enter(node, base)
            for keyword in node:
                if keyword in HOLDS_ONE_OR_LIST or keyword in HOLDS_MAP or keyword in _SHELVES:
                    stack.extend((child, base) for child in held(node, keyword))

    def _enter(self, node: Node, base: str) -> str:
        if isinstance(address := node.get(self._id_keyword), str):
            base, fragment = _split(base, address)
            if fragment:
                self._anchors[base, fragment] = node
            else:
                self._resources[base] = node
        if "$schema" in node:
            self.dialects.add(str(node["$schema"]))
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := node.get(keyword), str):
                self._anchors[base, name] = node
        for keyword in ("$dynamicAnchor", "$recursiveAnchor"):
            if keyword in node:
                self._dynamic.setdefault(str(node[keyword]), []).append(node)
        self._bases[id(node)] = base
        return base

    def _resolve(self, reference: str, base: str) -> Any:
        address, fragment = _split(base, reference)
        if address not in self._resources and address.startswith(_METASCHEMA_ADDRESSES):
            return METASCHEMA
        try:
            target = self._resources[address]
            if not fragment:
                return target
            if not fragment.startswith("/"):
                return self._anchors[address, unquote(fragment)]
            return self._follow(target, unquote(fragment), address)
        except (KeyError, IndexError, ValueError, TypeError):
            raise UnresolvedError(reference) from None

    def _follow(self, node: Any, pointer: str, base: str) -> Any:
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) else node[key]
        if isinstance(node, dict):
            # A target under a keyword nobody knows was not indexed: it belongs to the same resource.
            self._bases.setdefault(id(node), base)
        return node


def _split(base: str, reference: str) -> tuple[str, str]:
    try:
        # urljoin knows nothing of addresses such as urn:…
        joined = base + reference if reference.startswith("#") else urljoin(base, reference)
        address, fragment = urldefrag(joined)
    except ValueError:
        raise UnresolvedError(reference) from None
    return address, fragment
