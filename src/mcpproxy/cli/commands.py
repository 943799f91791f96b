"""Which commands are there? One typer application; each group in a module of its own, imported when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final

import typer
from typer.core import TyperGroup

from mcpproxy.cli.errors import FAILED, INTERRUPTED, USAGE, Failure, explained, report
from mcpproxy.cli.options import COMMON, Options, UsageError, split
from mcpproxy.cli.session import Session

GROUPS: Final = (
    "serve",
    "call",
    "tools",
    "upstream",
    "activity",
    "token",
    "config",
    "connect",
    "dashboard",
    "doctor",
    "status",
    "completion",
    "version",
)
"""Every command of the first level, in the order of help; each has a module in `groups`, with `register(app)`."""

_CLOSED_PIPE: Final = 141
_EPILOG: Final = "\b\nEvery command also takes, before or after its name:\n" + "\n".join(
    f"  {option}\n      {text}" for option, text in COMMON
)


class _InOrder(TyperGroup):
    """Shows commands in our order; typer would put all groups behind all single commands."""

    def list_commands(self, ctx: object) -> list[str]:
        return [name for name in GROUPS if name in self.commands]


def build(word: str | None = None) -> typer.Typer:
    """The application; with only the group that a word names, where it names one."""
    app = typer.Typer(
        name="mcpproxy",
        cls=_InOrder,
        help="One MCP endpoint in front of all your MCP servers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=_EPILOG,
    )
    app.callback()(lambda: None)  # so that a single group stays a group
    for name in (word,) if word in GROUPS else GROUPS:
        import_module(f"mcpproxy.cli.groups.{name}").register(app)
    return app


def run() -> None:
    """Run the command line."""
    raise SystemExit(_run(sys.argv[1:]))


def _run(argv: list[str]) -> int:
    try:
        options, rest = split(argv)
    except UsageError as error:
        return report(Failure(USAGE, str(error), "See: mcpproxy --help"), as_json=error.as_json)
    as_json = options.output == "json"
    try:
        code = _invoke(options, rest)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read has enough. Python would complain about it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except typer.TyperException as error:
        return _usage(error, as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("\n" if sys.stderr.isatty() else "")
        return INTERRUPTED
    except Exception as error:
        return _failed(error, options, as_json=as_json)


def _invoke(options: Options, words: list[str]) -> int:
    from mcpproxy.cli.logs import set_up_logging

    set_up_logging(options.log_level or "warning")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    word = next((word for word in words if not word.startswith("-")), None)
    code = build(word)(words, prog_name="mcpproxy", obj=Session(options), standalone_mode=False)
    return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException, *, as_json: bool) -> int:
    """A command line that typer does not understand; without a command at all, it is help that is asked for."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
        sys.stderr.write(error.format_message() + "\n")
        return USAGE
    path = context.command_path if context is not None else "mcpproxy"
    hint = f"See: {path} --help"
    if "No such option" in str(error) and path.endswith("upstream add"):
        hint = "Put -- before the command that starts the server: mcpproxy upstream add NAME -- npx -y PACKAGE"
    message = "a command is missing" if type(error).__name__ == "NoArgsIsHelpError" else error.format_message()
    return report(Failure(USAGE, message, hint), as_json=as_json)


def _failed(error: Exception, options: Options, *, as_json: bool) -> int:
    failure = explained(error)
    if failure is None:
        if options.log_level == "debug":
            import traceback

            traceback.print_exc()
        failure = Failure(
            FAILED,
            f"something unexpected went wrong: {type(error).__name__}: {error}",
            "Run it again with --log-level debug to see where, and please report it.",
        )
    return report(failure, as_json=as_json)
