"""How do we talk to a child process? One line of JSON at a time, with a bound on everything it may do to us."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from mcpproxy.wire import envelope
from mcpproxy.wire.channel import Channel, Pending
from mcpproxy.wire.envelope import RequestId
from mcpproxy.wire.errors import ChannelClosed, WireError
from mcpproxy.wire.exits import watch_exit
from mcpproxy.wire.lines import LineReader
from mcpproxy.wire.reaper import MARK, Reaper
from mcpproxy.wire.turns import Output

_SAFE = (
    "PATH HOME USER LOGNAME SHELL TERM LANG LANGUAGE TZ TMPDIR TEMP TMP "
    "XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR "
    "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"
).split()
_PROXIES = "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy".split()
_MOST_GATHERED = 64 * 1024
_PIPE_BYTES = 256 * 1024
_CLOSE_SECONDS = 0.0003
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

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        mark: str,
        *,
        max_result_bytes: int,
        on_stderr: Callable[[bytes], None],
        reaper: Reaper,
    ) -> None:
        super().__init__(max_result_bytes=max_result_bytes)
        self._process = process
        self._mark = mark
        self._on_stderr = on_stderr
        self._reaper = reaper
        self._lines = LineReader(self, on_stderr)
        self._pipes: list[asyncio.BaseTransport] = []
        self._stdout: Output | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._exited = asyncio.Event()
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._gathered: list[bytes] | None = None
        """Lines that go out in the next turn of the event loop; None where nothing waits for it."""
        self._wrote_at = 0.0

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
        reaper.start()
        mark = reaper.mark()
        try:
            process = _start([program, *args], {**env, MARK: mark}, cwd)
        except (OSError, ValueError) as error:
            raise SpawnError(f"command {command!r} could not be started: {error}") from None
        reaper.watch(process.pid)  # before anything else: we may be killed at any moment
        channel = cls(process, mark, max_result_bytes=max_result_bytes, on_stderr=on_stderr, reaper=reaper)
        try:
            await channel._connect()
        except BaseException:
            await channel.close()
            raise
        return channel

    async def _connect(self) -> None:
        """Attach the pipes to the event loop; the loops' own subprocess calls differ too much to rely on.

        uvloop leaves the child second copies of its pipes, so that its closing one goes unnoticed, and neither
        tells the process id before it has waited for something else.
        """
        loop = asyncio.get_running_loop()
        watch_exit(self._process, self._ended)
        stdin, _ = await loop.connect_write_pipe(lambda: _Stdin(self), self._process.stdin)
        self._stdin = stdin
        self._pipes.append(stdin)
        stdout, self._stdout = await loop.connect_read_pipe(
            lambda: Output(self._take_stdout, self._stdout_lost, lambda: self._lines.tedious), self._process.stdout
        )
        self._pipes.append(stdout)
        stderr, _ = await loop.connect_read_pipe(lambda: _Stderr(self._on_stderr), self._process.stderr)
        self._pipes.append(stderr)

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        return self._process.pid

    async def _send_request(
        self, pending: Pending, request_id: RequestId, body: bytes, headers: Mapping[str, str]
    ) -> None:
        await self._write(body)

    async def send_message(self, body: bytes, headers: Mapping[str, str]) -> None:
        await self._write(body)

    async def _write(self, body: bytes) -> None:
        while not self._resumed.is_set():  # one writer after the other, so that the buffer stays bounded
            await self._resumed.wait()
        if self.closed.done() or self._stdin is None or self._stdin.is_closing():
            await asyncio.wait({self.closed}, timeout=0.5)  # the exit that closed the pipe says more than the pipe
            raise ChannelClosed(self.closed.result() if self.closed.done() else "its stdin is closed")
        self._put(envelope.one_line(body) + b"\n")

    def _put(self, line: bytes) -> None:
        """Write at once, but gather what comes close upon it until the loop's next turn: few writes are cheaper."""
        if self._gathered is None:
            moment = time.perf_counter()
            if moment - self._wrote_at > _CLOSE_SECONDS:
                self._wrote_at = moment
                self._write_now(line)
                return
            self._gathered = []
            self._loop.call_soon(self._flush)
        if len(line) > _MOST_GATHERED:
            self._flush()
            self._write_now(line)
        else:
            self._gathered.append(line)

    def _flush(self) -> None:
        lines, self._gathered = self._gathered, None
        if lines:
            self._wrote_at = time.perf_counter()
            self._write_now(b"".join(lines))

    def _write_now(self, data: bytes) -> None:
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    async def close(self) -> None:
        """End the child and all it started: ask by closing stdin, then SIGTERM, then SIGKILL to the group."""
        self.fail_all("the connection was closed")
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
        self._reaper.forget(self.pid, self._mark)
        for transport in self._pipes:
            transport.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)[len(self._pipes) :]:
            if pipe is not None:  # never attached
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    # Called by the pipes.

    def _take_stdout(self, data: bytes) -> None:
        excess = self._lines.feed(data)
        if excess and not self.closed.done():
            self.fail_all(excess)
            self._signal(signal.SIGKILL)

    def hold(self, held: bool) -> None:
        """The pipe to the child is full, or has room again."""
        self._resumed.clear() if held else self._resumed.set()

    def _stdout_lost(self) -> None:
        """Without its stdout the child can answer nothing, even if it still runs."""
        self._lines.finish()
        asyncio.get_running_loop().call_later(0.2, self.fail_all, "it closed its stdout")

    def _ended(self, code: int) -> None:
        self._exited.set()
        self._resumed.set()
        # Its last words may still be in the pipe: let the reads that are due run first.
        asyncio.get_running_loop().call_later(0.05, self._over, _how_it_ended(code))

    def _over(self, reason: str) -> None:
        if self._stdout is not None and self._stdout.behind:
            asyncio.get_running_loop().call_later(0.05, self._over, reason)
        else:
            self.fail_all(reason)


def _start(command: Sequence[str], env: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=dict(env), cwd=cwd, start_new_session=True
    )
    _widen(process.stdout)
    return process


def _widen(pipe: IO[bytes] | None) -> None:
    """Let a child put down a large answer, or several, without waiting for us after every 64 KiB of it."""
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
        with contextlib.suppress(OSError):  # a user's pipes may be wide only up to a sum
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _how_it_ended(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the process was killed by {signal.Signals(-code).name}"
    return f"the process exited with code {code}"


class _Stdin(asyncio.BaseProtocol):
    """Tells the channel when the pipe to the child is full."""

    def __init__(self, channel: StdioChannel) -> None:
        self._channel = channel

    def pause_writing(self) -> None:
        self._channel.hold(True)

    def resume_writing(self) -> None:
        self._channel.hold(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel.hold(False)


class _Stderr(asyncio.Protocol):
    """Hands on what the child says on the side."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def data_received(self, data: bytes) -> None:
        self._take(data)
