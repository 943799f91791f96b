"""Is this the definition that was approved? One hash over all of it, bound to the server that it came from."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final

import msgspec

INSTRUCTIONS: Final = ""
"""Under this name, which no tool can have, a server's instructions are pinned beside its tools."""

MAX_DEPTH: Final = 100
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_FORM: Final = "mcpproxy pin 1"


def version_hash(server: str, identity: str, definition: bytes) -> str:
    """What a person approves: this definition of a tool of this server, and nothing else."""
    bound = json.dumps([_FORM, server, identity]).encode()
    return sha256(bound + b"\n" + canonical(definition)).hexdigest()


def identity_key(identity: str) -> str:
    """A server's identity as it is stored: a command line may be longer than a database key, and hold secrets."""
    return sha256(identity.encode(errors="surrogatepass")).hexdigest()


def canonical(definition: bytes) -> bytes:
    """One form for all spellings of the same definition; what differs in any other way stays different.

    The order of keys, white space and escapes do not count. Everything else does: keys that nobody knows, the order
    of lists, the spelling of numbers, and every one of several equal keys, since readers disagree on which of them
    counts. What cannot be read, or is nested out of all proportion, is its own form.
    """
    if is_deep(definition):
        return b"!" + definition
    try:
        tree = json.loads(
            definition,
            object_pairs_hook=_object,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_number,
        )
        return json.dumps(tree, separators=(",", ":")).encode()
    except ValueError:
        return b"!" + definition


def is_deep(definition: bytes) -> bool:
    """Whether it is nested deeper than any honest schema; a reader that recurses must not try."""
    if definition.count(b"{") + definition.count(b"[") <= MAX_DEPTH:
        return False
    depth = 0
    for found in _NESTING.finditer(definition):
        token = found[0]
        if token in (b"{", b"["):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token in (b"}", b"]"):
            depth -= 1
    return False


def instructions_definition(instructions: str) -> bytes:
    """A server's instructions in the form in which tools are pinned, compared and scanned."""
    return msgspec.json.encode({"instructions": instructions})


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Tagged, so that no object of a definition can look like a number of another. The sort keeps equal keys in order.
    return {"o": sorted(pairs, key=itemgetter(0))}


def _number(text: str) -> dict[str, str]:
    return {"n": text}
