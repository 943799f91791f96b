"""`mcpproxy token`: which agents may come with what?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcpproxy.cli.examples import examples

group = typer.Typer(help="Hand out tokens to agents, and take them back. Needs the daemon.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="token")


@group.command(
    epilog=examples(
        "mcpproxy token create --name ci --servers github,jira --tools 'github:list_*' --allow read,write",
        "mcpproxy token create --name reader -o json",
    )
)
def create(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What to call it.")],
    servers: Annotated[
        str, typer.Option("--servers", metavar="GLOBS", help="The servers that it sees, separated by commas.")
    ] = "*",
    tools: Annotated[
        str, typer.Option("--tools", metavar="GLOBS", help="The tools that it sees: NAME or SERVER:NAME.")
    ] = "*",
    allow: Annotated[
        str, typer.Option("--allow", metavar="KINDS", help="The calls that it may make: read, write, destructive.")
    ] = "read",
    expires: Annotated[
        str, typer.Option("--expires", metavar="TIME", help="How long it holds: 12h, 30d, or never.")
    ] = "30d",
) -> None:
    """Make a token. Its secret is shown this once, and nowhere else."""
    from mcpproxy.cli.screen import value_of

    session = context.obj
    body = {
        "name": name,
        "servers": _parts(servers),
        "tools": _parts(tools),
        "allow": _parts(allow),
        "expires": expires,
    }
    found = session.need_daemon("token create").post("/tokens", body)
    session.screen.show(found, lambda: _print_new(session.screen, value_of(found)))


@group.command("list", epilog=examples("mcpproxy token list"))
def list_(context: typer.Context) -> None:
    """List the tokens and what each of them may do."""
    from mcpproxy.cli.screen import value_of

    session = context.obj
    found = session.need_daemon("token list").get("/tokens")
    session.screen.show(found, lambda: _print_list(session.screen, value_of(found)["tokens"]))


@group.command(epilog=examples("mcpproxy token revoke ci"))
def revoke(
    context: typer.Context,
    token: Annotated[str, typer.Argument(metavar="NAME | ID", help="The token's name or id.")],
) -> None:
    """End a token at once, with the sessions that it opened."""
    from mcpproxy.cli.daemon import segment
    from mcpproxy.cli.screen import value_of

    session = context.obj
    daemon = session.need_daemon("token revoke")
    known = value_of(daemon.get("/tokens"))["tokens"]
    id_ = next((each["id"] for each in known if token in (each["id"], each["name"])), token)
    found = daemon.delete(f"/tokens/{segment(id_)}")
    session.screen.show(found, lambda: session.screen.line((value_of(found)["name"], "bold"), " is revoked"))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _print_new(screen: Any, token: dict[str, Any]) -> None:
    # The secret alone on stdout, so that a script can take it: TOKEN=$(mcpproxy token create …)
    screen.write(token["token"])
    until = f"until {token['expires_at'][:10]}" if token["expires_at"] else "for ever"
    screen.note(f"{token['name']} may {', '.join(token['allow'])} {until}. This secret is not shown again.")


def _print_list(screen: Any, tokens: list[dict[str, Any]]) -> None:
    from mcpproxy.cli import looks
    from mcpproxy.cli.screen import Cell, Column

    columns = (
        Column("ID"),
        Column("NAME", gives=1),
        Column("ALLOW"),
        Column("SERVERS", gives=3),
        Column("TOOLS", gives=3),
        Column("EXPIRES"),
        Column("USED"),
    )
    rows = [
        [
            Cell(token["id"], style="dim"),
            Cell(token["name"], style="bold"),
            Cell(",".join(token["allow"])),
            Cell(",".join(token["servers"])),
            Cell(",".join(token["tools"])),
            Cell("expired", style="red") if token["expired"] else _until(token["expires_at"]),
            looks.moment(token["last_used_at"]),
        ]
        for token in tokens
    ]
    screen.rows(columns, rows)
    if screen.pretty and not tokens:
        screen.note("No tokens yet. Make one: mcpproxy token create --name NAME --allow read")


def _until(moment: str | None) -> Any:
    from mcpproxy.cli import looks
    from mcpproxy.cli.screen import Cell

    return looks.moment(moment) if moment else Cell("never")
