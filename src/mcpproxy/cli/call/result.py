"""What did the tool answer? Readable on a terminal, raw JSON in a pipe, images and sounds in files."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from mcpproxy.cli import looks
from mcpproxy.cli.clean import clean, clean_lines
from mcpproxy.cli.errors import FAILED, Failure
from mcpproxy.cli.screen import value_of

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen

_ENDINGS: Final = {"image/jpeg": ".jpg", "audio/wav": ".wav", "audio/mpeg": ".mp3", "text/plain": ".txt"}


def print_result(screen: Screen, result: bytes) -> bool:
    """Print a tool's result; says whether the tool itself calls it an error."""
    value = value_of(result)
    if screen.output == "json" and screen.terminal:
        screen.json(msgspec.Raw(result))
    elif screen.output == "yaml":
        screen.show(msgspec.Raw(result), lambda: None)
    elif screen.pretty:
        _print_readably(screen, value, result)
    else:
        screen.raw(result.rstrip() + b"\n")
    return bool(value.get("isError"))


def _print_readably(screen: Screen, value: dict[str, Any], result: bytes) -> None:
    structured = value.get("structuredContent")
    blocks = [block for block in value.get("content") or [] if isinstance(block, dict)]
    for block in blocks:
        # Servers repeat structured content as text for older clients; once is enough for a person.
        if structured is None or not _says(block, structured):
            _print_block(screen, block)
    if structured is not None:
        raw = msgspec.json.decode(result, type=_Structured).structuredContent
        screen.print(screen.highlighted(bytes(raw)))
    if not blocks and structured is None:
        screen.note("The tool answered with nothing.")


class _Structured(msgspec.Struct):
    structuredContent: msgspec.Raw = msgspec.Raw(b"null")


def _says(block: dict[str, Any], structured: Any) -> bool:
    try:
        return block.get("type") == "text" and bool(json.loads(block["text"]) == structured)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False


def _print_block(screen: Screen, block: dict[str, Any]) -> None:
    match block.get("type"):
        case "text":
            _print_text(screen, str(block.get("text", "")))
        case "image" | "audio":
            size = looks.size(len(_bytes(block.get("data")) or b""))
            screen.line(
                (f"[{block['type']} {clean(str(block.get('mimeType')))}, {size}]", "cyan"), "  keep it with --save"
            )
        case "resource_link":
            screen.line((f"[{block.get('name', 'resource')}]", "cyan"), f"  {block.get('uri')}")
        case "resource":
            resource = block.get("resource") or {}
            screen.line((f"[{resource.get('uri')}]", "cyan"))
            if isinstance(resource.get("text"), str):
                _print_text(screen, resource["text"])
        case _:
            screen.print(screen.highlighted(msgspec.json.encode(block)))


def _print_text(screen: Screen, text: str) -> None:
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
            screen.print(screen.highlighted(text.encode()))
            return
        except (ValueError, RecursionError, UnicodeEncodeError):
            pass
    from rich.text import Text

    screen.print(Text(clean_lines(text)))


# Files.


def save_media(screen: Screen, result: bytes, target: str, tool: str) -> None:
    """Write every image, sound and embedded file of a result; `target` is a file, or a directory for several."""
    media = [found for block in value_of(result).get("content") or [] if (found := _media(block)) is not None]
    if not media:
        raise Failure(FAILED, "the result holds no image, sound or file to save.")
    for path, (data, _) in zip(_paths(target, tool, [kind for _, kind in media]), media, strict=True):
        try:
            path.write_bytes(data)
        except OSError as error:
            raise Failure(FAILED, f"{path} cannot be written: {error.strerror}.") from None
        screen.note(f"Saved {looks.size(len(data))} to {path}", "green")


def _media(block: Any) -> tuple[bytes, str] | None:
    if not isinstance(block, dict):
        return None
    if block.get("type") in ("image", "audio"):
        data, kind = _bytes(block.get("data")), block.get("mimeType")
    elif block.get("type") == "resource" and isinstance(block.get("resource"), dict):
        resource = block["resource"]
        text = resource.get("text")
        data = text.encode(errors="replace") if isinstance(text, str) else _bytes(resource.get("blob"))
        kind = resource.get("mimeType", "text/plain" if isinstance(text, str) else None)
    else:
        return None
    return (data, str(kind or "")) if data is not None else None


def _bytes(data: Any) -> bytes | None:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except (binascii.Error, ValueError):
        return None


def _paths(target: str, tool: str, kinds: list[str]) -> list[Path]:
    """One path for each; nothing that the server says becomes part of a name, but the ending of a known type."""
    named = Path(target).expanduser()
    folder = named.is_dir() or target.endswith("/")
    if len(kinds) == 1 and not folder:
        return [named]
    if folder:
        named.mkdir(parents=True, exist_ok=True)
        stem = "".join(char if char.isalnum() or char in "-_" else "-" for char in tool)
        return _numbered(named, stem, [_ending(kind) for kind in kinds])
    return _numbered(named.parent, named.stem, [named.suffix or _ending(kind) for kind in kinds])


def _numbered(folder: Path, stem: str, endings: list[str]) -> list[Path]:
    paths: list[Path] = []
    number = 0
    for ending in endings:
        number += 1
        while (path := folder / f"{stem}-{number}{ending}").exists():
            number += 1
        paths.append(path)
    return paths


def _ending(kind: str) -> str:
    return _ENDINGS.get(kind) or mimetypes.guess_extension(kind) or ".bin"
