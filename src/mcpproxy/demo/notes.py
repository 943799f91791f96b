"""What does the notes box hold? Notes in memory, bounded in number and size, gone when the process ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct, structs

MAX_NOTES = 200
MAX_TITLE = 120
MAX_TEXT = 4000
MAX_TAGS = 10
MAX_TAG = 32

_SEED = (
    (
        "Welcome to the notes box",
        "Everything here lives in memory and starts afresh with the server, so try anything. "
        "Ask for a list, a search, a new note, and then a deletion, and watch which call each one needs.",
        ("welcome",),
    ),
    (
        "Groceries",
        "Oat milk, two lemons, coffee beans, a bag of rice, soap.",
        ("home", "list"),
    ),
    (
        "Release checklist",
        "1. Tests are green. 2. The changelog names every change a user can see. "
        "3. Tag the commit. 4. Publish. 5. Tell the people who asked for it.",
        ("work", "list"),
    ),
    (
        "Meeting with Amira",
        "We agreed to ship the search first and the dashboard a week later. "
        "Amira writes to the pilot users; I prepare the demo data.",
        ("work", "meeting"),
    ),
    (
        "Books to read",
        "The Left Hand of Darkness. A Pattern Language. The Design of Everyday Things.",
        ("home", "list", "books"),
    ),
    (
        "Idea: weekly digest",
        "Every Friday, one page: what changed, what is stuck, what needs a decision.",
        ("idea", "work"),
    ),
)


class Note(Struct, frozen=True, kw_only=True):
    """One note, as every tool returns it."""

    id: str
    title: str
    text: str
    tags: list[str]
    updated_at: str


class NoteSummary(Struct, frozen=True, kw_only=True):
    """What a list shows of a note."""

    id: str
    title: str
    tags: list[str]
    updated_at: str


class NoteStats(Struct, frozen=True, kw_only=True):
    """Figures about the whole box."""

    notes: int
    words: int
    tags: dict[str, int]


class NoteError(Exception):
    """Something the caller can put right; the text says how."""


class Notebox:
    """The notes, oldest first."""

    def __init__(self) -> None:
        self._notes: dict[str, Note] = {}
        self._last_id = 0
        for title, text, tags in _SEED:
            self.add(title, text, tags)

    def __len__(self) -> int:
        return len(self._notes)

    def all(self, tag: str | None = None) -> list[Note]:
        """Every note, or those that carry `tag`."""
        return [note for note in self._notes.values() if tag is None or tag in note.tags]

    def get(self, note_id: str) -> Note:
        """The note with this id; NoteError where there is none."""
        note = self._notes.get(note_id)
        if note is None:
            raise NoteError(f"There is no note '{note_id[:32]}'. Call list_notes to see the ids.")
        return note

    def search(self, query: str) -> list[Note]:
        """Notes that contain every word of `query`, in any case, in title, text or tags."""
        words = query.casefold().split()
        return [note for note in self._notes.values() if all(word in _haystack(note) for word in words)]

    def add(self, title: str, text: str, tags: Iterable[str] = ()) -> Note:
        """Keep a new note; NoteError when the box is full."""
        if len(self._notes) >= MAX_NOTES:
            raise NoteError(f"The box is full ({MAX_NOTES} notes). Delete a note first.")
        self._last_id += 1
        note = Note(id=f"n{self._last_id}", title=title, text=text, tags=_unique(tags), updated_at=_now())
        self._notes[note.id] = note
        return note

    def update(
        self,
        note_id: str,
        *,
        title: str | None = None,
        text: str | None = None,
        tags: Iterable[str] | None = None,
    ) -> Note:
        """Replace the given fields of a note and leave the others as they are."""
        old = self.get(note_id)
        note = structs.replace(
            old,
            title=old.title if title is None else title,
            text=old.text if text is None else text,
            tags=old.tags if tags is None else _unique(tags),
            updated_at=_now(),
        )
        self._notes[note_id] = note
        return note

    def tag(self, note_id: str, tag: str) -> Note:
        """Put one more tag on a note."""
        note = self.get(note_id)
        if tag not in note.tags and len(note.tags) >= MAX_TAGS:
            raise NoteError(f"Note '{note_id}' already has {MAX_TAGS} tags. Set them anew with update_note.")
        return self.update(note_id, tags=[*note.tags, tag])

    def delete(self, note_id: str) -> Note:
        """Remove a note and return it."""
        note = self.get(note_id)
        del self._notes[note_id]
        return note

    def clear(self) -> int:
        """Remove every note and say how many there were."""
        count = len(self._notes)
        self._notes.clear()
        return count

    def stats(self) -> NoteStats:
        """Count notes, words and tags."""
        tags = Counter(tag for note in self._notes.values() for tag in note.tags)
        words = sum(len(note.text.split()) for note in self._notes.values())
        return NoteStats(notes=len(self._notes), words=words, tags=dict(tags.most_common()))


def summary(note: Note) -> NoteSummary:
    """The note without its text."""
    return NoteSummary(id=note.id, title=note.title, tags=note.tags, updated_at=note.updated_at)


def _haystack(note: Note) -> str:
    return " ".join((note.title, note.text, *note.tags)).casefold()


def _unique(tags: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(tags))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
