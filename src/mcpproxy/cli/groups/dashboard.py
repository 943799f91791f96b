"""`mcpproxy dashboard`: how do I get into the dashboard?"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mcpproxy.cli.examples import examples


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("mcpproxy dashboard", "mcpproxy dashboard --open", "mcpproxy dashboard -o json"))(
        dashboard
    )


def dashboard(
    context: typer.Context,
    open_: Annotated[bool, typer.Option("--open", help="Open the link in the browser, too.")] = False,
) -> None:
    """Print a link that lets a browser into the dashboard, once and within five minutes. Needs the daemon.

    From another machine, put the name by which you reach this one in the place of the link's address.
    """
    from mcpproxy.cli.screen import value_of

    session = context.obj
    found = session.need_daemon("dashboard").post("/dashboard/login")
    link: str = value_of(found)["login_url"]
    session.screen.show(found, lambda: _print(session.screen, link))
    if open_:
        _open(link)


def _print(screen: Any, link: str) -> None:
    # The link alone on stdout, so that a script can take it.
    screen.write(link)
    screen.note("It lets one browser in, once, within five minutes.")


def _open(link: str) -> None:
    import os
    import sys
    import webbrowser

    from mcpproxy.cli.errors import FAILED, Failure

    # Some browsers talk while they open. Stdout holds the answer alone, so they talk on stderr.
    sys.stdout.flush()
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        opened = link.startswith("http://") and webbrowser.open(link)
    except ValueError:  # $BROWSER is no command line
        opened = False
    finally:
        os.dup2(answer, 1)
        os.close(answer)
    if not opened:
        raise Failure(FAILED, "no browser could be opened from here.", "Open the link yourself.")
