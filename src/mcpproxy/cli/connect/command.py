"""How is a client pointed at the proxy? A preview, a question, a backup, the change; and all of it backwards."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcpproxy.cli.ask import agreed
from mcpproxy.cli.connect.clients import CLIENTS, NAME, Client, Target
from mcpproxy.cli.connect.files import backup_of, entry_in, read_text, replace, with_entry
from mcpproxy.cli.errors import FAILED, USAGE, Failure

if TYPE_CHECKING:
    from mcpproxy.cli.screen import Screen
    from mcpproxy.cli.session import Session

_HIDDEN: Final = "***"


def connect(session: Session, name: str, *, token: str | None, stdio: bool, yes: bool, preview: bool) -> None:
    """Point a client at the proxy."""
    client = find(name)
    screen, path = session.screen, client.path()
    before = read_text(path)
    target = _target(session, client, token, stdio=stdio)
    after = with_entry(client, before or "", client.entry(target))
    changed = after != (before or "")
    if screen.output == "table":
        _print_change(screen, client, before or "", after, token)
    written = changed and not preview and agreed(screen, f"Write {path}?", yes=yes)
    if written:
        _back_up(client, before)
        replace(path, after)
        kept = f"The file as it was: {backup_of(path)}" if before else "There was none before; --undo removes it."
        screen.note(f"Written. {kept}", "green")
    report = _report(client, changed=changed, written=written)
    screen.show(report, lambda: _print_permissions(screen, client))


def undo(session: Session, name: str, *, yes: bool) -> None:
    """Have a client's file as it was before, or at least without the proxy."""
    client = find(name)
    screen, path = session.screen, client.path()
    current = read_text(path)
    entry = entry_in(client, current) if current is not None else None
    if current is None or entry is None:
        raise Failure(FAILED, f"{client.title} is not connected: {path} has no {NAME!r}.")
    backup = read_text(backup_of(path))
    restored = _restored(client, current, entry, backup)
    if screen.output == "table":
        _print_change(screen, client, current, restored, _token_in(entry))
    written = agreed(screen, f"Write {path}?", yes=yes)
    if written:
        if backup == "" and restored == "":
            path.unlink()
        else:
            replace(path, restored)
        backup_of(path).unlink(missing_ok=True)
        screen.note("Undone.", "green")
    screen.show(_report(client, changed=True, written=written), lambda: None)


def find(name: str) -> Client:
    """The client of that name."""
    if name not in CLIENTS:
        raise Failure(USAGE, f"{name!r} is not a client that is known here; give one of {', '.join(CLIENTS)}.")
    return CLIENTS[name]


def _target(session: Session, client: Client, token: str | None, *, stdio: bool) -> Target:
    config = session.config
    beside = Path(sys.executable).with_name("mcpproxy")  # the client's PATH may be another than ours
    command = [str(beside) if beside.exists() else shutil.which("mcpproxy") or "mcpproxy", "serve", "--stdio"]
    for flag, given in (("--config", session.options.config), ("--data-dir", session.options.data_dir)):
        command += [flag, str(given.absolute())] if given is not None else []
    if stdio or not config.listen or client.remote is None:
        return Target(None, tuple(command))
    if config.mcp_auth_required and token is None:
        raise Failure(
            USAGE,
            "agents need a token here (require_mcp_auth), and none was given.",
            f"Make one: mcpproxy token create --name {NAME} --allow read,write,destructive; then give it with --token.",
        )
    host, _, port = config.listen.rpartition(":")
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104
    return Target(f"http://{host}:{port}/mcp", tuple(command), token)


def _back_up(client: Client, before: str | None) -> None:
    path = backup_of(client.path())
    # Connecting twice must not take the file with our entry for the original.
    if before is None or entry_in(client, before) is None or not path.exists():
        replace(path, before or "")


def _restored(client: Client, current: str, entry: dict[str, Any], backup: str | None) -> str:
    if backup is not None and with_entry(client, backup, entry) == current:
        return backup
    return with_entry(client, current, entry_in(client, backup) if backup else None)


def _token_in(entry: dict[str, Any]) -> str | None:
    headers = entry.get("headers") or entry.get("http_headers") or {}
    value = headers.get("Authorization") if isinstance(headers, dict) else None
    return value.removeprefix("Bearer ") if isinstance(value, str) else None


def _print_change(screen: Screen, client: Client, before: str, after: str, secret: str | None) -> None:
    import difflib

    path = str(client.path())
    if before == after:
        screen.line((f"{client.title} is connected already", "green"), f" ({path})")
        return
    screen.line((f"{client.title}: {path}", "bold"))
    for line in list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]:
        shown = line.replace(secret, _HIDDEN) if secret else line
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        screen.line((shown, style))


def _print_permissions(screen: Screen, client: Client) -> None:
    screen.write("")
    screen.line(("Permissions", "bold"), f": reads pass, the rest asks. In {client.where}:")
    screen.write("")
    for line in client.permissions().splitlines():
        screen.line(f"  {line}")
    if client.after:
        screen.write("")
        screen.line(client.after)


def _report(client: Client, *, changed: bool, written: bool) -> dict[str, Any]:
    return {
        "client": client.title,
        "file": str(client.path()),
        "changed": changed,
        "written": written,
        "backup": str(backup_of(client.path())),
        "permissions": client.permissions(),
        "permissions_file": client.where,
    }
