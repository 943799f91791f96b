"""`mcpproxy upstream`: which servers are there, and how are they?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpproxy.cli.examples import examples

group = typer.Typer(help="Add, watch and manage the servers behind the proxy.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait until the server is ready or has failed.")]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="upstream")


@group.command("list", epilog=examples("mcpproxy upstream list", "mcpproxy upstream list -o json"))
def list_(context: typer.Context) -> None:
    """List the servers and how they are. Without a daemon, what the configuration says."""
    from mcpproxy.cli.screen import value_of
    from mcpproxy.cli.upstream.change import offline
    from mcpproxy.cli.upstream.listing import print_servers

    session = context.obj
    if session.daemon is not None:
        found = session.daemon.get("/servers")
        servers = value_of(found)["servers"]
    else:
        servers = [offline(server) for server in session.config.servers]
        found = {"servers": servers}
        session.screen.note("No daemon is running; this is what the configuration says.")
    session.screen.show(found, lambda: print_servers(session.screen, servers))


@group.command(
    epilog=examples(
        "mcpproxy upstream add notes -- npx -y @modelcontextprotocol/server-memory",
        "mcpproxy upstream add docs https://docs.example/mcp --header 'Authorization: Bearer ${env:DOCS_KEY}'",
        "mcpproxy upstream add files --env ROOT=/srv --cwd /srv --quarantine -- python3 -m files_server",
    )
)
def add(
    context: typer.Context,
    name: Name,
    words: Annotated[
        list[str],
        typer.Argument(metavar="URL | -- COMMAND [ARG]", help="Where the server is, or how it is started."),
    ],
    *,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="KEY=VALUE", help="Environment of the command; KEY alone is looked up at start."),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="Header for a server with a URL.")
    ] = None,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Where to start the command.")] = None,
    protocol: Annotated[
        str | None, typer.Option("--protocol", metavar="KIND", help="stdio, http or sse. Default: found out.")
    ] = None,
    trust: Annotated[
        str | None, typer.Option("--trust", metavar="HOW", help="first_use, manual or scan. Default: first_use.")
    ] = None,
    quarantine: Annotated[bool, typer.Option("--quarantine", help="Do not start it before it is approved.")] = False,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not start it before it is enabled.")] = False,
    no_wait: NoWait = False,
) -> None:
    """Add a server to the configuration and start it."""
    from mcpproxy.cli.upstream.entry import from_words, headers, variables

    more = {
        "env": variables("--env", env),
        "headers": headers(header),
        "working_dir": cwd,
        "protocol": protocol,
        "trust": trust,
        "quarantined": True if quarantine else None,
        "enabled": False if disabled else None,
    }
    _add(context, from_words(name, words, more), wait=not no_wait)


@group.command(
    "add-json",
    epilog=examples("""mcpproxy upstream add-json memory '{"command": "npx", "args": ["-y", "server-memory"]}'"""),
)
def add_json(
    context: typer.Context,
    name: Name,
    entry: Annotated[str, typer.Argument(metavar="JSON", help="The server's entry, as its documentation shows it.")],
    no_wait: NoWait = False,
) -> None:
    """Add a server from the JSON that its documentation gives for other clients."""
    from mcpproxy.cli.upstream.entry import from_json

    _add(context, from_json(name, entry), wait=not no_wait)


def _add(context: typer.Context, entry: dict[str, object], *, wait: bool) -> None:
    from mcpproxy.cli.upstream.change import add
    from mcpproxy.cli.upstream.entry import checked
    from mcpproxy.cli.upstream.listing import print_outcome

    screen = context.obj.screen
    server, warnings = checked(entry)
    for warning in warnings:
        screen.note(warning, "yellow")
    found = add(context.obj, server, entry, wait=wait)
    screen.show(found, lambda: print_outcome(screen, found))


@group.command(epilog=examples("mcpproxy upstream remove docs"))
def remove(context: typer.Context, name: Name) -> None:
    """Take a server out of the configuration. What was approved of it is remembered."""
    from mcpproxy.cli.upstream.change import remove

    remove(context.obj, name)
    screen = context.obj.screen
    screen.show({"name": name, "removed": True}, lambda: screen.line((name, "bold"), " is removed"))


@group.command(epilog=examples("mcpproxy upstream enable notes -o json"))
def enable(context: typer.Context, name: Name) -> None:
    """Start a server and let its tools be used."""
    _switch(context, name, "enable")


@group.command(epilog=examples("mcpproxy upstream disable notes"))
def disable(context: typer.Context, name: Name) -> None:
    """Stop a server and take its tools away, until it is enabled again."""
    _switch(context, name, "disable")


@group.command(epilog=examples("mcpproxy upstream approve files"))
def approve(context: typer.Context, name: Name) -> None:
    """Let a quarantined server run with everything that it lists first, or approve all that waits on a server."""
    _switch(context, name, "approve")


def _switch(context: typer.Context, name: str, action: str) -> None:
    from mcpproxy.cli.upstream.change import switch
    from mcpproxy.cli.upstream.listing import print_outcome

    screen = context.obj.screen
    found = switch(context.obj, name, action)
    screen.show(found, lambda: print_outcome(screen, found))


@group.command(epilog=examples("mcpproxy upstream restart demo"))
def restart(context: typer.Context, name: Name) -> None:
    """End a server's process or connection and start it anew. Needs the daemon."""
    from mcpproxy.cli.upstream.change import act
    from mcpproxy.cli.upstream.listing import print_outcome

    session = context.obj
    found = act(session, session.need_daemon("upstream restart"), name, "restart")
    session.screen.show(found, lambda: print_outcome(session.screen, found))


@group.command(epilog=examples("mcpproxy upstream login docs"))
def login(context: typer.Context, name: Name) -> None:
    """Log in to a server that asks for it: prints a link, and waits until you are done in the browser."""
    from mcpproxy.cli.upstream.listing import print_outcome
    from mcpproxy.cli.upstream.login import log_in

    screen = context.obj.screen
    found = log_in(context.obj, name)
    screen.show(found, lambda: print_outcome(screen, found))


@group.command(epilog=examples("mcpproxy upstream logout docs"))
def logout(context: typer.Context, name: Name) -> None:
    """Forget the login of a server, in memory, file and keyring. The server itself is not told."""
    from mcpproxy.cli.upstream.listing import print_outcome
    from mcpproxy.cli.upstream.login import log_out

    screen = context.obj.screen
    found = log_out(context.obj, name)
    screen.show(found, lambda: print_outcome(screen, found))


@group.command(epilog=examples("mcpproxy upstream logs demo -n 20", "mcpproxy upstream logs demo --follow"))
def logs(
    context: typer.Context,
    name: Name,
    count: Annotated[int, typer.Option("-n", "--lines", min=1, metavar="N", help="How many of the last lines.")] = 100,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what it says next.")] = False,
) -> None:
    """Print what a server wrote to stderr (!), and what mcpproxy has to say about it (-)."""
    from mcpproxy.cli.upstream.logs import print_logs

    print_logs(context.obj, name, count, follow=follow)


@group.command(
    "import",
    epilog=examples("mcpproxy upstream import", "mcpproxy upstream import --from cursor --yes"),
)
def import_(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A file to read. Default: those of all known clients.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="CLIENT",
            help="Only from claude-desktop, claude-code, cursor, vscode, gemini or mcpproxy.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Take over the servers of Claude, Cursor, VS Code, Gemini or another mcpproxy.

    Shows what it would add, and asks. Nothing is changed in the other programs' files.
    """
    from mcpproxy.cli.upstream.take_over import take_over

    take_over(context.obj, source, file, yes=yes)
