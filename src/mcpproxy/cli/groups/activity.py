"""`mcpproxy activity`: what happened?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpproxy.cli.examples import examples

group = typer.Typer(help="See what happened: every call, every refusal, every change.", no_args_is_help=True)

Type = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="tool_call, policy_decision, server_change, tool_change, …"),
]
Status = Annotated[
    str | None,
    typer.Option("--status", metavar="STATUS", help="success, error, blocked, warning, rejected or interrupted."),
]
Server = Annotated[str | None, typer.Option("--server", metavar="NAME", help="Only of this server.")]
Tool = Annotated[
    str | None, typer.Option("--tool", metavar="TOOL", help="Only of this tool: its bare name, or SERVER:TOOL.")
]
IntentType = Annotated[str | None, typer.Option("--intent-type", metavar="KIND", help="read, write or destructive.")]
RequestId = Annotated[str | None, typer.Option("--request-id", metavar="ID", help="Every record of one call.")]
SessionId = Annotated[str | None, typer.Option("--session-id", metavar="ID", help="Every record of one session.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From then on: an age such as 30m, 24h or 7d, a date, or a time."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before then.")]
Query = Annotated[
    str | None,
    typer.Option("--query", "-q", metavar="WORDS", help="All of these words in the tool's name, error or reason."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="activity")


@group.command(
    "list",
    epilog=examples(
        "mcpproxy activity list",
        "mcpproxy activity list --intent-type destructive --since 7d",
        "mcpproxy activity list --status blocked -n 20 -o json",
    ),
)
def list_(
    context: typer.Context,
    *,
    type_: Type = None,
    status: Status = None,
    server: Server = None,
    tool: Tool = None,
    intent_type: IntentType = None,
    request_id: RequestId = None,
    session_id: SessionId = None,
    since: Since = None,
    until: Until = None,
    query: Query = None,
    count: Annotated[int, typer.Option("-n", "--limit", min=1, metavar="N", help="How many, at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="CURSOR", help="Go on where a list ended (its next_cursor).")
    ] = None,
) -> None:
    """List records, newest first. On a narrow terminal an id is shown by its end, which `show` takes too."""
    from mcpproxy.cli.activity.log import checked, open_log, read_pages
    from mcpproxy.cli.activity.table import print_list

    filters = checked(
        {
            "type": type_,
            "status": status,
            "server": server,
            "tool": tool,
            "intent_type": intent_type,
            "request_id": request_id,
            "session_id": session_id,
            "start_time": since,
            "end_time": until,
            "q": query,
        }
    )
    screen = context.obj.screen
    with open_log(context.obj) as log:
        page = read_pages(log, filters, count, cursor)
    screen.show(page, lambda: print_list(screen, page.activities))
    if screen.pretty and not page.activities:
        screen.note("Nothing on record matches.")
    elif screen.pretty and page.next_cursor:
        more = "" if page.total_exact else "more than "
        screen.note(f"{len(page.activities)} of {more}{page.total:,}. Go on with: --cursor {page.next_cursor}")


@group.command(epilog=examples("mcpproxy activity show 01KBDZ3V7W9Q4C2M8T5N6R1XYA"))
def show(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The record's id, or the end of a recent one.")],
) -> None:
    """Show one record: intent, decision, arguments and response."""
    from mcpproxy.cli.activity.log import find_record, open_log, read_pages
    from mcpproxy.cli.activity.record import print_record
    from mcpproxy.cli.screen import value_of

    screen = context.obj.screen
    with open_log(context.obj) as log:
        found = find_record(log, id_)
        record = value_of(found)
        about = {"request_id": record["request_id"], "type": "policy_decision"}
        wanted = screen.output == "table" and record["type"] == "tool_call" and record["request_id"]
        decisions = read_pages(log, about, 10, None).activities if wanted else []
    screen.show(found, lambda: print_record(screen, found, decisions))


@group.command(epilog=examples("mcpproxy activity watch", "mcpproxy activity watch --status blocked -o json"))
def watch(
    context: typer.Context,
    *,
    type_: Type = None,
    status: Status = None,
    server: Server = None,
    tool: Tool = None,
    intent_type: IntentType = None,
    request_id: RequestId = None,
) -> None:
    """Follow what happens, live. Needs the daemon, and waits for it where it goes away."""
    from mcpproxy.cli.activity.log import checked
    from mcpproxy.cli.activity.watch import watch as run

    filters = {
        "type": type_,
        "status": status,
        "server": server,
        "tool": tool,
        "intent_type": intent_type,
        "request_id": request_id,
    }
    run(context.obj, checked(filters))


@group.command(epilog=examples("mcpproxy activity summary", "mcpproxy activity summary --period 7d -o yaml"))
def summary(
    context: typer.Context,
    period: Annotated[str, typer.Option("--period", metavar="PERIOD", help="1h, 24h, 7d or 30d.")] = "24h",
) -> None:
    """Count what happened, by type, status, intent, server and tool."""
    from mcpproxy.cli.activity.log import open_log
    from mcpproxy.cli.activity.summary import print_summary
    from mcpproxy.cli.screen import value_of

    screen = context.obj.screen
    with open_log(context.obj) as log:
        found = log.summary(period)
    screen.show(found, lambda: print_summary(screen, value_of(found)))


@group.command(
    epilog=examples(
        "mcpproxy activity export --file activity.jsonl",
        "mcpproxy activity export --format csv --since 30d --file activity.csv",
    )
)
def export(
    context: typer.Context,
    *,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="jsonl (with its hashes) or csv.")] = "jsonl",
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Where to. Default: stdout.")] = None,
    type_: Type = None,
    status: Status = None,
    server: Server = None,
    tool: Tool = None,
    intent_type: IntentType = None,
    request_id: RequestId = None,
    session_id: SessionId = None,
    since: Since = None,
    until: Until = None,
    query: Query = None,
) -> None:
    """Write records out, oldest first. docs/activity.md says how to check an export without mcpproxy."""
    from mcpproxy.cli.activity.log import checked, open_log
    from mcpproxy.cli.activity.out import check_form, write_out

    check_form(form)
    filters = checked(
        {
            "type": type_,
            "status": status,
            "server": server,
            "tool": tool,
            "intent_type": intent_type,
            "request_id": request_id,
            "session_id": session_id,
            "start_time": since,
            "end_time": until,
            "q": query,
        }
    )
    with open_log(context.obj) as log:
        write_out(context.obj.screen, log.export(form, filters), file)


@group.command(epilog=examples("mcpproxy activity verify", "mcpproxy activity verify -o json"))
def verify(context: typer.Context) -> None:
    """Check that nothing was altered: every record against its hash, every chain against its signatures.

    Exit code 1 where something was, with the first bad record named first.
    """
    from mcpproxy.cli.activity.log import open_log
    from mcpproxy.cli.activity.out import print_verification
    from mcpproxy.cli.screen import value_of

    screen = context.obj.screen
    with open_log(context.obj) as log:
        raw = log.verify()
    found = value_of(raw)
    screen.show(raw, lambda: print_verification(screen, found))
    if not found["ok"]:
        raise typer.Exit(1)
