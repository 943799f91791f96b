"""How is the proxy started from a terminal? Every reason not to start is one line and an exit code."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import shlex
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from mcpproxy.cli.errors import INTERRUPTED, PERMISSION, USAGE, Failure
from mcpproxy.cli.logs import set_up_logging
from mcpproxy.cli.options import Options
from mcpproxy.config.errors import ConfigError
from mcpproxy.config.files import private_dir
from mcpproxy.config.load import Loaded, create_default, data_dir, load, open_config, parse
from mcpproxy.config.mask import Masker
from mcpproxy.config.write import with_api_key

if TYPE_CHECKING:
    from mcpproxy.app import App

log = logging.getLogger(__name__)

_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(options: Options, *, listen: str | None, stdio: bool, demo: bool) -> None:
    """Run until a signal or, on stdio, until stdin ends."""
    with _throw_away(demo) as scratch:
        home = scratch or data_dir(options.data_dir)
        loaded = _listening(_load(options, scratch), listen, stdio=stdio)
        try:
            private_dir(home)
        except OSError as error:
            raise Failure(PERMISSION, f"the data directory {home} cannot be used: {error.strerror}.") from None
        masker = Masker()
        set_up_logging(options.log_level or loaded.config.log_level, masker.mask)
        for warning in loaded.warnings:
            log.warning("%s", warning)
        _run(loaded, home, masker, demo=demo)


@contextlib.contextmanager
def _throw_away(demo: bool) -> Iterator[Path | None]:
    if not demo:
        yield None
        return
    scratch = Path(tempfile.mkdtemp(prefix="mcpproxy-demo-"))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _load(options: Options, scratch: Path | None) -> Loaded:
    if scratch is not None and options.config is None:
        path = scratch / "mcp_config.json"
        create_default(path)
        return with_api_key(load(path))
    return with_api_key(open_config(options.config))


def _listening(loaded: Loaded, listen: str | None, *, stdio: bool) -> Loaded:
    """The configuration with what the command line says about where to listen."""
    if stdio:
        return structs.replace(loaded, config=structs.replace(loaded.config, listen=""))
    if listen is None:
        return loaded
    try:
        given, _ = parse({"listen": listen})  # refuses what the file would refuse, in the same words
    except ConfigError as error:
        raise Failure(USAGE, f"--{error.problems[0]}") from None
    return structs.replace(loaded, config=structs.replace(loaded.config, listen=given.listen))


def _run(loaded: Loaded, home: Path, masker: Masker, *, demo: bool) -> None:
    from mcpproxy.listen import address_of, open_socket

    sockets = [open_socket(loaded.config.listen)] if loaded.config.listen else []

    # What is imported is never garbage. Looking through it costs a tenth of the start, and later, in every full
    # collection, a pause for all calls.
    gc.disable()
    from mcpproxy.storage import first

    making = first.begin(loaded.config.storage, home)
    import uvloop

    from mcpproxy.app import App, demo_server

    first.finish(making)
    gc.freeze()
    gc.enable()
    # A call makes some hundred objects and no cycles: with the usual 700 every few calls were a search for nothing.
    gc.set_threshold(10_000)
    address = address_of(sockets[0]) if sockets else None
    app = App(loaded, home, masker, address=address, extra=(demo_server(),) if demo else ())
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(app, sockets, demo=demo))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


async def _serve(app: App, sockets: list[socket.socket], *, demo: bool) -> None:
    from mcpproxy.listen import HostCheck, address_of, serve_http
    from mcpproxy.local import local_socket

    stopping = app.stopping
    _on_signals(stopping)
    async with app.running():
        if not sockets:
            await _until(stopping, app.agent.serve_stdio())
            return
        sys.stdout.write(_welcome(app, address_of(sockets[0]), demo=demo))
        sys.stdout.flush()
        with local_socket(app.data_dir) as local:
            every = [*sockets, *([local] if local is not None else [])]
            await serve_http(HostCheck(app, lambda: app.config), every, lambda: app.pipeline.in_flight, stopping)


def _on_signals(stopping: asyncio.Event) -> None:
    """Let a signal to stop set the event. A second one ends us at once."""
    loop = asyncio.get_running_loop()
    # Started by nohup we are to outlive the terminal.
    signals = [number for number in _STOP if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP]

    def stop() -> None:
        stopping.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stop)


async def _until(stopping: asyncio.Event, serving: Coroutine[None, None, None]) -> None:
    task, stop = asyncio.ensure_future(serving), asyncio.ensure_future(stopping.wait())
    await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _welcome(app: App, address: str, *, demo: bool) -> str:
    lines = [
        f"mcpproxy is running.  MCP endpoint: {address}/mcp",
        f"  Claude Code:  claude mcp add --transport http mcpproxy {address}/mcp",
        f'  Cursor, VS Code and others:  {{"mcpServers": {{"mcpproxy": {{"url": "{address}/mcp"}}}}}}',
        f"  Dashboard: {_dashboard(app, address)}",
        f"  Configuration: {app.loaded.path}",
    ]
    if demo:
        lines += [
            "  Demo server `demo`: a box of notes. Nothing of this session is kept. Stop with Ctrl-C.",
            "  To look on from another terminal:",
            f"    export MCPPROXY_DATA={app.data_dir} MCPPROXY_CONFIG={app.loaded.path}",
            f"    {command_to_type()} tools list; {command_to_type()} activity watch",
        ]
    return "\n".join(lines) + "\n"


def _dashboard(app: App, address: str) -> str:
    from mcpproxy.access.browser import login_link

    if not sys.stdout.isatty():
        # A link that lets one in belongs on no log.
        return f"{address}/ui/  (for a link that lets you in: {command_to_type()} dashboard)"
    return f"{login_link(address, app.browsers.invite())}  (lets you in once, within five minutes)"


def command_to_type() -> str:
    """How to type the command: by its name where a shell finds it, else by where it is, as after `make run`."""
    beside = Path(sys.executable).with_name("mcpproxy")
    return "mcpproxy" if shutil.which("mcpproxy") or not beside.exists() else shlex.quote(str(beside))
