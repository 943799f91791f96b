"""How do we talk to a child process? One line of JSON at a time, with a bound on everything it may do to us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from mcpproxy.wire import envelope
from mcpproxy.wire.channel import Channel, Pending
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import ChannelClosed, WireError
from mcpproxy.wire.lines import LineReader
from mcpproxy.wire.reaper import Reaper

_SAFE = (
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE TZ TMPDIR TEMP TMP "
    "XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR "
    "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"
).split()
_PROXIES = "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy".split()
_LOCALE = re.compile(r"LC_[A-Z]+\Z")


class SpawnError(WireError):
    """The command could not be started."""


def child_environment(given: Mapping[str, str], own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our own environment cut down to what a program needs to run, plus what the operator gave."""
    own = os.environ if own is None else own
    kept = {name: own[name] for name in _SAFE if name in own}
    kept.update({name: value for name, value in own.items() if _LOCALE.match(name)})
    # A proxy's address is needed to reach the network; one with a password in it is the operator's to hand out.
    kept.update({name: own[name] for name in _PROXIES if name in own and "@" not in own[name]})
    # An exported shell function would be code that runs in the child's shell.
    kept = {name: value for name, value in kept.items() if not value.startswith("()")}
    return {**kept, **given}


def _find_program(command: str, path: str | None, cwd: str | None) -> str:
    if "/" not in command:
        program = shutil.which(command, path=path)
        if program is None:
            raise SpawnError(f"command {command!r} was not found on the PATH")
        return program
    # Like a shell's after `cd working_dir`.
    program = shutil.which(os.path.join(os.path.abspath(cwd or ""), command))  # noqa: PTH100, PTH118
    if program is None:
        raise SpawnError(f"command {command!r} is not a program that can be run")
    return program


class StdioChannel(Channel):
    """A child process in a group of its own, spoken to over its stdin and stdout."""

    kind = "stdio"

    def __init__(self, *, max_result_bytes: int, on_stderr: Callable[[bytes], None], reaper: Reaper) -> None:
        super().__init__(max_result_bytes=max_result_bytes)
        self._on_stderr = on_stderr
        self._reaper = reaper
        self._lines = LineReader(self, max_result_bytes, on_stderr)
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._exited = asyncio.Event()
        self._resumed = asyncio.Event()
        self._resumed.set()

    @classmethod
    async def spawn(
        cls,
        command: str,
        args: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None,
        max_result_bytes: int,
        on_stderr: Callable[[bytes], None],
        reaper: Reaper,
    ) -> StdioChannel:
        """Start the child, or say in one sentence why it cannot be started."""
        if cwd is not None and not os.path.isdir(cwd):  # noqa: PTH112, ASYNC240  one stat before a fork
            raise SpawnError(f"working_dir {cwd!r} is not a directory")
        program = _find_program(command, env.get("PATH"), cwd)
        channel = cls(max_result_bytes=max_result_bytes, on_stderr=on_stderr, reaper=reaper)
        reaper.start()
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Pipes(channel), program, *args, env=dict(env), cwd=cwd, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise SpawnError(f"command {command!r} could not be started: {error}") from None
        channel._attach(transport)
        return channel

    def _attach(self, transport: asyncio.SubprocessTransport) -> None:
        self._transport = transport
        # uvloop's transports are no subclasses of asyncio's, so there is nothing to check here.
        self._stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        self._reaper.watch(transport.get_pid())

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        assert self._transport is not None
        return self._transport.get_pid()

    async def _send_request(
        self, pending: Pending, request_id: RequestId, body: bytes, headers: Mapping[str, str]
    ) -> None:
        await self._write(body)

    async def _send_message(self, body: bytes, headers: Mapping[str, str]) -> None:
        await self._write(body)

    async def _write(self, body: bytes) -> None:
        while not self._resumed.is_set():  # one writer after the other, so that the buffer stays bounded
            await self._resumed.wait()
        if self.closed.done() or self._stdin is None or self._stdin.is_closing():
            await asyncio.wait({self.closed}, timeout=0.5)  # the exit that closed the pipe says more than the pipe
            raise ChannelClosed(self.closed.result() if self.closed.done() else "its stdin is closed")
        self._stdin.write(envelope.one_line(body) + b"\n")

    async def close(self) -> None:
        """End the child and all it started: ask by closing stdin, then SIGTERM, then SIGKILL to the group."""
        self.fail_all("the connection was closed")
        transport = self._transport
        if transport is None:
            return
        if self._stdin is not None:
            self._stdin.close()
        for step, patience in ((None, 0.5), (signal.SIGTERM, 1.0), (signal.SIGKILL, 1.0)):
            if step is not None:
                self._signal(step)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._exited.wait()
                break
        self._signal(signal.SIGKILL)  # what the child left behind in its group
        self._reaper.forget(self.pid)
        transport.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    # Called by the pipes.

    def stdout_received(self, data: bytes) -> None:
        """Take a piece of the child's stdout."""
        excess = self._lines.feed(data)
        if excess and not self.closed.done():
            self.fail_all(excess)
            self._signal(signal.SIGKILL)

    def stderr_received(self, data: bytes) -> None:
        """Take a piece of the child's stderr."""
        self._on_stderr(data)

    def hold(self, held: bool) -> None:
        """The pipe to the child is full, or has room again."""
        self._resumed.clear() if held else self._resumed.set()

    def exited(self) -> None:
        """The child is gone."""
        self._exited.set()
        self._resumed.set()
        code = self._transport.get_returncode() if self._transport is not None else None
        self.fail_all(_how_it_ended(code))

    def stdout_closed(self) -> None:
        """Without its stdout the child can answer nothing, even if it still runs."""
        self._lines.finish()
        asyncio.get_running_loop().call_later(0.2, self.fail_all, "it closed its stdout")


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "the process ended"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was killed by {signal.Signals(-code).name}"
    return f"the process exited with code {code}"


class _Pipes(asyncio.SubprocessProtocol):
    """Hands the event loop's callbacks to the channel."""

    def __init__(self, channel: StdioChannel) -> None:
        self._channel = channel

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        if fd == 1:
            self._channel.stdout_received(data)
        else:
            self._channel.stderr_received(data)

    def pipe_connection_lost(self, fd: int, exc: BaseException | None) -> None:
        if fd == 1:
            self._channel.stdout_closed()

    def process_exited(self) -> None:
        # Its last words may still be in the pipe: let the reads that are due run first.
        asyncio.get_running_loop().call_later(0.05, self._channel.exited)

    def pause_writing(self) -> None:
        self._channel.hold(True)

    def resume_writing(self) -> None:
        self._channel.hold(False)
