"""`mcpproxy tools`: which tools are there, and may they be used?"""

from __future__ import annotations

from typing import Annotated

import typer

from mcpproxy.cli.examples import examples

group = typer.Typer(help="Find, look at and approve the tools of all servers.", no_args_is_help=True)

Limit = Annotated[
    int | None, typer.Option("-n", "--limit", min=1, max=100, metavar="N", help="How many. Default: tools_limit.")
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="tools")


@group.command(
    "list", epilog=examples("mcpproxy tools list", "mcpproxy tools list --server demo", "mcpproxy tools list -o json")
)
def list_(
    context: typer.Context,
    server: Annotated[str | None, typer.Option("--server", metavar="NAME", help="Only of this server.")] = None,
) -> None:
    """List the tools and how each is to be called."""
    from mcpproxy.cli.screen import value_of
    from mcpproxy.cli.tools.listing import print_tools
    from mcpproxy.cli.tools.shelf import all_tools

    screen = context.obj.screen
    found = all_tools(context.obj, server)
    screen.show(found, lambda: print_tools(screen, value_of(found)["tools"]))


@group.command(
    epilog=examples(
        "mcpproxy tools search find a note",
        "mcpproxy tools search delete notes -n 3 --explain",
        "mcpproxy tools search delete notes --explain --tool demo:list_notes",
    )
)
def search(
    context: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What the tool should do.")],
    limit: Limit = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each tool ranks where it does.")] = False,
    tool: Annotated[
        str | None,
        typer.Option("--tool", metavar="SERVER:TOOL", help="With --explain: why this one ranks there, or is missing."),
    ] = None,
) -> None:
    """Find tools by what they do: the same search that agents use."""
    from mcpproxy.cli.screen import value_of
    from mcpproxy.cli.tools.search import explain as run_explain
    from mcpproxy.cli.tools.search import print_explanations, print_hits
    from mcpproxy.cli.tools.search import search as run_search

    screen = context.obj.screen
    words = " ".join(query)
    if explain or tool is not None:
        reasons = run_explain(context.obj, words, limit, tool)
        screen.show({"query": words, "tools": reasons}, lambda: print_explanations(screen, reasons))
        return
    found = run_search(context.obj, words, limit)
    screen.show(found, lambda: print_hits(screen, value_of(found)))


@group.command(epilog=examples("mcpproxy tools show demo:add_note"))
def show(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="SERVER:TOOL", help="The tool.")],
) -> None:
    """Show one tool: what it does, what it takes and gives, and how to call it."""
    from mcpproxy.cli.tools.listing import print_tool
    from mcpproxy.cli.tools.shelf import one_tool

    screen = context.obj.screen
    found = one_tool(context.obj, name)
    screen.show(found, lambda: print_tool(screen, found))


Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="SERVER | SERVER:TOOL", help="What is meant. Default: everything that waits."),
]


@group.command(epilog=examples("mcpproxy tools diff", "mcpproxy tools diff demo -o json"))
def diff(context: typer.Context, names: Names = None) -> None:
    """Show what waits for approval: what changed, the dangerous part first, and what the scan says about it."""
    from mcpproxy.cli.tools.decision import show as run

    run(context.obj, names or [])


@group.command(epilog=examples("mcpproxy tools approve", "mcpproxy tools approve --reject --yes -o json"))
def approve(
    context: typer.Context,
    names: Names = None,
    reject: Annotated[bool, typer.Option("--reject", help="Refuse these versions instead.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Look at what waits, and let it be used exactly as shown. A server that changes it again waits again."""
    from mcpproxy.cli.tools.decision import judge

    judge(context.obj, names or [], approve=not reject, yes=yes)
