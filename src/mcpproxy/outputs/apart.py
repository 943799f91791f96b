"""How is a check that might take long kept off everyone else's back? By doing it in another process.

Decoding and validating hold the interpreter from start to end, so a thread helps nobody: 5 MB stop the
event loop for 0.15 s, and a pattern of 25 characters in an approved schema for 44 s.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys

import msgspec

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs import frames
from mcpproxy.outputs.findings import Findings, one
from mcpproxy.outputs.guards import count_marks
from mcpproxy.outputs.schema import CompiledSchema
from mcpproxy.outputs.worker import CPU_SECONDS, Job

# About a millisecond of decoding; larger payloads are not looked at on the event loop, but for a few long texts.
INLINE_BYTES = 65_536
INLINE_TEXT_BYTES = 1_048_576
_INLINE_MARKS = 4_000
# At worst, by the schema's own reckoning. Real schemas stay far below it.
_INLINE_NANOSECONDS = 50e6
# The worker's own limit is processor time. This one is for a machine that does not let it run at all.
_WALL_SECONDS = 30.0
# What a check needs of the environment; nothing of the operator's secrets.
_PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")


def is_heavy(schema: CompiledSchema | None, payload: bytes) -> bool:
    """Say whether a look at this payload may take long: then it belongs in a thread, and into `Apart.look`."""
    size = len(payload)
    if schema is not None and schema.worst_ns_per_byte * size > _INLINE_NANOSECONDS:
        return True
    return size > INLINE_BYTES and (size > INLINE_TEXT_BYTES or count_marks(payload) > _INLINE_MARKS)


class Apart:
    """Hands heavy payloads to a few worker processes."""

    def __init__(self, workers: int = 2) -> None:
        # Started when first needed: most gateways never see a heavy payload.
        self._idle: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(workers):
            self._idle.put(None)
        self._workers = workers

    def look(self, structured: bytes, schema: CompiledSchema | None, settings: OutputValidation) -> Findings:
        """Look at one payload; a `check.Look`. Blocks while a worker does it."""
        job = Job(structured=structured, schema=schema.source if schema else None, settings=settings)
        return self._ask(msgspec.msgpack.encode(job))

    def close(self) -> None:
        """End the workers; waits for those that are busy."""
        for _ in range(self._workers):
            if worker := self._idle.get():
                worker.end()

    def _ask(self, job: bytes) -> Findings:
        try:
            worker = self._idle.get(timeout=_WALL_SECONDS)
        except queue.Empty:
            return one("a payload that can be checked in time", "too many checks waiting before it")
        try:
            if worker is None or not worker.is_alive():
                worker = _Worker()
            return worker.ask(job)
        except OSError as error:
            reason = worker.end() if worker else error.strerror
            worker = None
            if reason == signal.SIGPROF:
                return one(f"a payload that can be checked in {CPU_SECONDS:g} seconds", "one that takes longer")
            return one("a payload that can be checked", f"a check that failed ({reason})")
        finally:
            self._idle.put(worker)


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        # -P: nothing is imported from the directory the gateway happens to run in.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mcpproxy.outputs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        )

    def is_alive(self) -> bool:
        """Say whether the process still runs."""
        return self._process.poll() is None

    def ask(self, job: bytes) -> Findings:
        """Hand over a job and wait for the answer; `OSError` where there is none."""
        assert self._process.stdin and self._process.stdout
        frames.send(self._process.stdin.fileno(), job)
        answer = frames.receive(self._process.stdout.fileno(), _WALL_SECONDS)
        if answer is None:
            raise BrokenPipeError
        return msgspec.msgpack.decode(answer, type=Findings)

    def end(self) -> int:
        """End the process and say which signal or exit code it ended with, as a positive number."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.stdout.close()
        return abs(self._process.wait())
