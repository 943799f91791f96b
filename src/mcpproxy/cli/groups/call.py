"""`mcpproxy call`: call a tool, and say what kind of call it is."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Annotated, Final

import typer

from mcpproxy.cli.examples import examples
from mcpproxy.policy.operations import OperationType

group = typer.Typer(
    help="Call a tool, checked and recorded exactly like an agent's call.",
    no_args_is_help=True,
)

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SERVER:TOOL [KEY=VALUE]",
        help="The tool, and arguments for it, typed by its schema. A key given twice makes a list.",
        show_default=False,
    ),
]
ToolName = Annotated[
    str | None, typer.Option("--tool-name", metavar="SERVER:TOOL", help="The tool, if not given as a word.")
]
Args = Annotated[
    str | None,
    typer.Option(
        "--args", metavar="JSON", help="The arguments as a JSON object; @FILE reads them from a file, - from stdin."
    ),
]
JsonArgs = Annotated[str | None, typer.Option("--json_args", "--json-args", metavar="JSON", help="The same as --args.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")]
Sensitivity = Annotated[
    str | None,
    typer.Option("--sensitivity", metavar="KIND", help="Of the data: public, internal, private or unknown."),
]
Save = Annotated[
    str | None,
    typer.Option("--save", metavar="PATH", help="Write images, sounds and files of the result here (file or folder)."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    app.add_typer(group, name="call")


_VARIANTS: Final[dict[OperationType, tuple[str, str]]] = {
    "read": (
        """Call a tool that only reads. Refused where its server marks it as destructive or modifying.

        Prints the result, as raw JSON in a pipe. Exit code 1 where the call is refused or the tool reports an error.
        """,
        examples(
            "mcpproxy call tool-read demo:search_notes query=milk",
            """mcpproxy call tool-read demo:list_notes --args '{"limit": 2}'""",
            "mcpproxy call tool-read --tool-name=demo:list_notes --json_args='{}'",
            """echo '{"query": "milk"}' | mcpproxy call tool-read demo:search_notes --args - -o json""",
        ),
    ),
    "write": (
        "Call a tool that creates or changes something. Refused where its server marks it as destructive.",
        examples(
            "mcpproxy call tool-write demo:add_note title=Shopping text='milk and bread' tags=home",
            """mcpproxy call tool-write demo:tag_note --args '{"id": "n1", "tag": "later"}' --reason sorting""",
        ),
    ),
    "destructive": (
        "Call a tool that deletes, or does what cannot be undone. The annotations always allow it.",
        examples("mcpproxy call tool-destructive demo:delete_note id=n1 --sensitivity private --reason 'user asked'"),
    ),
}


def _command(operation: OperationType) -> Callable[..., None]:
    def call(
        context: typer.Context,
        words: Words = None,
        *,
        tool_name: ToolName = None,
        args: Args = None,
        json_args: JsonArgs = None,
        reason: Reason = None,
        sensitivity: Sensitivity = None,
        save: Save = None,
    ) -> None:
        from mcpproxy.cli.call.command import run

        run(
            context.obj,
            operation,
            words or [],
            tool_name=tool_name,
            json_options=(("--args", args), ("--json_args", json_args)),
            intent={"data_sensitivity": sensitivity, "reason": reason},
            save=save,
        )

    return call


for _operation, (_help, _epilog) in _VARIANTS.items():
    group.command(f"tool-{_operation}", help=cleandoc(_help), epilog=_epilog)(_command(_operation))


@group.command("tool", hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def tool() -> None:
    """There is no such command: say which kind of call it is."""
    from mcpproxy.cli.errors import USAGE, Failure

    raise Failure(
        USAGE,
        "there is no 'call tool': say what kind of call it is, with call tool-read, call tool-write or "
        "call tool-destructive.",
        "Which one a tool needs: mcpproxy tools show SERVER:TOOL",
    )
