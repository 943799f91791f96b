"""Which tools does the notes box offer? Their definitions and what each one does, in one table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import anyio
import msgspec
from mcp import types
from msgspec import UNSET, Struct

from mcpproxy.demo import arguments as args
from mcpproxy.demo.notes import Note, Notebox, NoteStats, NoteSummary, summary

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
Reply = Struct | dict[str, Any] | str
"""What a tool gives back: structured content, or plain text."""

_PROGRESS_STEPS = 10


class Call(NamedTuple):
    """What a tool works with besides its arguments."""

    box: Notebox
    progress: Progress


class DemoTool(NamedTuple):
    """One tool: what the client is told, how its arguments are read, what it does."""

    definition: types.Tool
    arguments: type[args.Arguments]
    run: Callable[[Call, Any], Awaitable[Reply]]


class NoteList(Struct, frozen=True, kw_only=True):
    """The answer of list_notes."""

    notes: list[NoteSummary]
    total: int


class Cleared(Struct, frozen=True, kw_only=True):
    """The answer of clear_notes."""

    deleted: int


async def list_notes(call: Call, wanted: args.ListNotes) -> NoteList:
    """The notes without their texts."""
    notes = call.box.all(None if wanted.tag is UNSET else wanted.tag)
    return NoteList(notes=[summary(note) for note in notes[: wanted.limit]], total=len(notes))


async def search_notes(call: Call, wanted: args.SearchNotes) -> str:
    """One line per note found."""
    found = call.box.search(wanted.query)
    if not found:
        return "No note contains all of these words."
    return "\n".join(f"{note.id}  {note.title}: {note.text[:80]}" for note in found)


async def get_note(call: Call, wanted: args.GetNote) -> Note:
    """One whole note."""
    return call.box.get(wanted.id)


async def add_note(call: Call, wanted: args.AddNote) -> Note:
    """The note as it was kept."""
    return call.box.add(wanted.title, wanted.text, wanted.tags)


async def update_note(call: Call, wanted: args.UpdateNote) -> Note:
    """The note as it is now."""
    return call.box.update(
        wanted.id,
        title=None if wanted.title is UNSET else wanted.title,
        text=None if wanted.text is UNSET else wanted.text,
        tags=None if wanted.tags is UNSET else wanted.tags,
    )


async def tag_note(call: Call, wanted: args.TagNote) -> Note:
    """The note with its new tag."""
    return call.box.tag(wanted.id, wanted.tag)


async def delete_note(call: Call, wanted: args.DeleteNote) -> Note:
    """The note that is gone."""
    return call.box.delete(wanted.id)


async def clear_notes(call: Call, _: args.ClearNotes) -> Cleared:
    """How many notes are gone."""
    return Cleared(deleted=call.box.clear())


async def note_stats(call: Call, wanted: args.CountNotes) -> NoteStats | dict[str, Any]:
    """Figures about the box, or, on request, figures that lie about their shape."""
    if wanted.broken:
        return {"notes": "quite a few", "words": -1}
    return call.box.stats()


async def export_notes(call: Call, wanted: args.ExportNotes) -> str:
    """All notes as Markdown, repeated until the text is as long as asked."""
    page = "\n".join(f"## {note.title}\n\n{note.text}\n" for note in call.box.all()) or "The box is empty.\n"
    return page * max(1, -(-wanted.min_chars // len(page)))


async def slow_report(call: Call, wanted: args.SlowReport) -> str:
    """A short report after a long wait, with progress on the way. Cancelling ends the wait at once."""
    for step in range(_PROGRESS_STEPS):
        done = wanted.seconds * step / _PROGRESS_STEPS
        await call.progress(done, wanted.seconds, f"{step * 100 // _PROGRESS_STEPS} % of the report is written")
        await anyio.sleep(wanted.seconds / _PROGRESS_STEPS)
    await call.progress(wanted.seconds, wanted.seconds, "The report is ready")
    stats = call.box.stats()
    return f"After {wanted.seconds:g} s: {stats.notes} notes, {stats.words} words, {len(stats.tags)} tags."


def _define(
    run: Callable[[Call, Any], Awaitable[Reply]],
    takes: type[args.Arguments],
    title: str,
    description: str,
    *,
    gives: type[Struct] | None = None,
    hints: types.ToolAnnotations | None = None,
) -> DemoTool:
    definition = types.Tool(
        name=run.__name__,
        title=title,
        description=description,
        input_schema=args.object_schema(takes),
        output_schema=args.object_schema(gives) if gives else None,
        annotations=hints and hints.model_copy(update={"title": title}),
    )
    return DemoTool(definition, takes, run)


def _hints(*, read_only: bool = False, destructive: bool = False, idempotent: bool) -> types.ToolAnnotations:
    return types.ToolAnnotations(
        read_only_hint=read_only,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=False,
    )


_READ = _hints(read_only=True, idempotent=True)

_ALL = (
    _define(
        list_notes,
        args.ListNotes,
        "List notes",
        "List the notes in the box, oldest first, with their ids and tags but without their texts.",
        gives=NoteList,
        hints=_READ,
    ),
    _define(
        search_notes,
        args.SearchNotes,
        "Search notes",
        "Find notes that contain all the given words in title, text or tags. Returns plain text, one line per note.",
        hints=_READ,
    ),
    _define(
        get_note,
        args.GetNote,
        "Get a note",
        "Get one note with its whole text.",
        gives=Note,
        hints=_READ,
    ),
    _define(
        note_stats,
        args.CountNotes,
        "Count notes",
        "Count notes, words and tags. With `broken: true` the answer breaks its own output schema, "
        "to show what output validation does about it.",
        gives=NoteStats,
        hints=_READ,
    ),
    _define(
        export_notes,
        args.ExportNotes,
        "Export notes",
        "Export all notes as Markdown. With `min_chars` the text grows as long as you like, "
        "to show how a long answer is cut and paged.",
        hints=_READ,
    ),
    _define(
        slow_report,
        args.SlowReport,
        "Write a slow report",
        "Write a one-line report about the box, slowly, with progress on the way. Can be cancelled.",
        hints=_READ,
    ),
    _define(
        add_note,
        args.AddNote,
        "Add a note",
        "Add a note to the box.",
        gives=Note,
        hints=_hints(idempotent=False),
    ),
    _define(
        update_note,
        args.UpdateNote,
        "Update a note",
        "Change the title, text or tags of a note. Fields that are not given stay as they are.",
        gives=Note,
        hints=_hints(idempotent=True),
    ),
    _define(
        tag_note,
        args.TagNote,
        "Tag a note",
        "Put one more tag on a note. This tool carries no annotations, like most tools in the wild.",
        gives=Note,
    ),
    _define(
        delete_note,
        args.DeleteNote,
        "Delete a note",
        "Delete one note for good and return what it was.",
        gives=Note,
        hints=_hints(destructive=True, idempotent=True),
    ),
    _define(
        clear_notes,
        args.ClearNotes,
        "Clear the box",
        "Delete every note for good. There is no way back.",
        gives=Cleared,
        hints=_hints(destructive=True, idempotent=True),
    ),
)

TOOLS = {tool.definition.name: tool for tool in _ALL}


async def run_tool(tool: DemoTool, call: Call, given: dict[str, Any]) -> types.CallToolResult:
    """Check the arguments, run the tool, and wrap what it gives back."""
    reply = await tool.run(call, msgspec.convert(given, tool.arguments))
    if isinstance(reply, str):
        return types.CallToolResult(content=[types.TextContent(text=reply)])
    return types.CallToolResult(
        content=[types.TextContent(text=msgspec.json.encode(reply).decode())],
        structured_content=msgspec.to_builtins(reply),
    )
