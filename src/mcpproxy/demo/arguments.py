"""What may each demo tool be asked? One type per tool gives its input schema and the check against it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, json

from mcpproxy.demo.notes import MAX_TAG, MAX_TAGS, MAX_TEXT, MAX_TITLE

MAX_EXPORT = 200_000
MAX_SECONDS = 300

NoteId = Annotated[str, Meta(description="The note's id, as list_notes shows it, for example `n1`.")]
Title = Annotated[str, Meta(min_length=1, max_length=MAX_TITLE, description="One line.")]
Text = Annotated[str, Meta(max_length=MAX_TEXT, description="The body of the note.")]
Tag = Annotated[str, Meta(min_length=1, max_length=MAX_TAG)]
Tags = Annotated[list[Tag], Meta(max_length=MAX_TAGS, description="Words to find the note by.")]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool's arguments have in common: a misspelt name is an error, not ignored."""


class ListNotes(Arguments, frozen=True):
    """Arguments of list_notes."""

    tag: Annotated[Tag, Meta(description="Only notes with this tag.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100, description="At most this many notes.")] = 50


class SearchNotes(Arguments, frozen=True):
    """Arguments of search_notes."""

    query: Annotated[str, Meta(min_length=1, max_length=200, description="Words that must all occur in the note.")]


class GetNote(Arguments, frozen=True):
    """Arguments of get_note."""

    id: NoteId


class AddNote(Arguments, frozen=True):
    """Arguments of add_note."""

    title: Title
    text: Text
    tags: Tags = []


class UpdateNote(Arguments, frozen=True):
    """Arguments of update_note."""

    id: NoteId
    title: Title | UnsetType = UNSET
    text: Text | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET


class TagNote(Arguments, frozen=True):
    """Arguments of tag_note."""

    id: NoteId
    tag: Annotated[Tag, Meta(description="The tag to put on the note.")]


class DeleteNote(Arguments, frozen=True):
    """Arguments of delete_note."""

    id: NoteId


class ClearNotes(Arguments, frozen=True):
    """clear_notes takes none."""


class CountNotes(Arguments, frozen=True):
    """Arguments of note_stats."""

    broken: Annotated[bool, Meta(description="Return figures that break the declared output schema, on purpose.")] = (
        False
    )


class ExportNotes(Arguments, frozen=True):
    """Arguments of export_notes."""

    min_chars: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_EXPORT,
            description="Repeat the notes until the text has this many characters, to see a long answer.",
        ),
    ] = 0


class SlowReport(Arguments, frozen=True):
    """Arguments of slow_report."""

    seconds: Annotated[float, Meta(ge=0, le=MAX_SECONDS, description="How long to take.")] = 5


def object_schema(kind: type[Struct]) -> dict[str, Any]:
    """The JSON Schema of a Struct with the object itself at the root, as MCP wants it."""
    _, definitions = json.schema_components([kind], ref_template="#/$defs/{name}")
    schema = definitions.pop(kind.__name__)
    for unwanted in ("title", "description"):  # the class's name and docstring mean nothing to an agent
        schema.pop(unwanted, None)
    return {**schema, "$defs": definitions} if definitions else schema
