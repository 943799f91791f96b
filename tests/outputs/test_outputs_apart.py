"""Heavy checks happen in a process that can be lost: what it holds up, or what ends it, touches nobody else."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import psutil
import pytest

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs import frames
from mcpproxy.outputs.apart import INLINE_BYTES, Apart
from mcpproxy.outputs.check import PASS, check
from mcpproxy.outputs.findings import Findings
from mcpproxy.outputs.schema import CompiledSchema, compile_schema
from mcpproxy.outputs.worker import Job

STRICT = OutputValidation(mode="strict")


def compiled(schema: dict[str, Any]) -> CompiledSchema:
    result = compile_schema(schema)
    assert isinstance(result, CompiledSchema)
    return result


NUMBERS = compiled({"type": "array", "items": {"type": "integer"}})
HEAVY = json.dumps(list(range(20_000))).encode()
HEAVY_BAD = json.dumps([*range(20_000), "x"]).encode()
# Not catastrophic for this engine, only slow: about 40 µs for every character.
SLOW_PATTERN = compiled({"pattern": "(?:[ab]{1,50}){1,50}c"})
SLOW_TEXT = json.dumps("".join(random.Random(1).choices("ab", k=1_000_000))).encode()


@pytest.fixture
def apart() -> Iterator[Apart]:
    workers = Apart(workers=1)
    yield workers
    workers.close()
    assert worker_processes() == []


def worker_processes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "mcpproxy.outputs.worker" in child.cmdline()]


@pytest.mark.parametrize("raw", [HEAVY, HEAVY_BAD, b"[" * INLINE_BYTES * 2, b"[" + b"1e400," * INLINE_BYTES + b"1]"])
def test_a_heavy_payload_gets_the_same_verdict_elsewhere(apart: Apart, raw: bytes) -> None:
    assert len(raw) > INLINE_BYTES
    assert check(raw, False, NUMBERS, STRICT, look=apart.look) == check(raw, False, NUMBERS, STRICT)
    assert len(worker_processes()) == 1


def test_a_heavy_payload_without_a_schema_is_guarded_elsewhere_too(apart: Apart) -> None:
    guarded = OutputValidation(mode="strict", guard_undeclared=True)
    assert check(b"[" * INLINE_BYTES * 2, False, None, guarded, look=apart.look).guard == "max_depth"
    assert check(HEAVY, False, None, guarded, look=apart.look) is PASS


def test_a_check_that_takes_too_long_is_a_violation_and_the_next_one_works(apart: Apart) -> None:
    verdict = check(SLOW_TEXT, False, SLOW_PATTERN, STRICT, look=apart.look)
    assert verdict.action == "block"
    assert verdict.for_agent == "$: expected a payload that can be checked in 2 seconds"
    assert check(HEAVY, False, NUMBERS, STRICT, look=apart.look) is PASS


def test_a_slow_check_stops_nobody_else(apart: Apart) -> None:
    slow = threading.Thread(target=check, args=(SLOW_TEXT, False, SLOW_PATTERN, STRICT), kwargs={"look": apart.look})
    slow.start()
    while not worker_processes():
        pass
    # A slow check in this process would hold the interpreter: this loop would not turn once until it ends.
    turns = 0
    while slow.is_alive() and turns < 1_000:
        assert check(b"[1, 2]", False, NUMBERS, STRICT) is PASS
        turns += 1
    assert turns == 1_000
    slow.join()


def test_a_worker_that_was_killed_is_replaced(apart: Apart) -> None:
    assert check(HEAVY, False, NUMBERS, STRICT, look=apart.look) is PASS
    (worker,) = worker_processes()
    worker.kill()
    worker.wait()
    assert check(HEAVY, False, NUMBERS, STRICT, look=apart.look) is PASS
    assert worker_processes() != [worker]


def test_a_worker_that_dies_on_a_payload_makes_it_a_violation(apart: Apart) -> None:
    def kill_when_there() -> None:
        while not (found := worker_processes()):
            pass
        found[0].send_signal(signal.SIGSEGV)

    killer = threading.Thread(target=kill_when_there)
    killer.start()
    verdict = check(SLOW_TEXT, False, SLOW_PATTERN, STRICT, look=apart.look)
    killer.join()
    assert verdict.for_agent == "$: expected a payload that can be checked"
    assert f"({int(signal.SIGSEGV)})" in verdict.for_record


def test_a_worker_knows_none_of_the_operators_secrets(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPPROXY_API_KEY", "canary")
    assert check(HEAVY, False, NUMBERS, STRICT, look=apart.look) is PASS
    (worker,) = worker_processes()
    assert "canary" not in worker.environ().values()


def test_a_worker_cannot_be_started_is_a_violation(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert (
        check(HEAVY, False, NUMBERS, STRICT, look=apart.look).for_agent == "$: expected a payload that can be checked"
    )
    monkeypatch.undo()
    assert check(HEAVY, False, NUMBERS, STRICT, look=apart.look) is PASS


def ask_worker(before: str, job: Job) -> tuple[Findings | None, int]:
    """Start a worker after a line of Python, hand it one job, and return its answer and exit code."""
    start = f"import resource; from mcpproxy.outputs import worker; {before}; worker.main()"
    worker = subprocess.Popen([sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin and worker.stdout
    frames.send(worker.stdin.fileno(), msgspec.msgpack.encode(job))
    answer = frames.receive(worker.stdout.fileno())
    worker.stdin.close()
    worker.stdout.close()
    return (msgspec.msgpack.decode(answer, type=Findings) if answer else None), worker.wait()


def test_a_worker_lives_within_its_memory() -> None:
    hungry = b"[" + b"{}," * 5_000_000 + b"1]"
    job = Job(structured=hungry, schema=NUMBERS.source, settings=OutputValidation(max_bytes=1 << 30))
    findings, code = ask_worker("worker.MEMORY_BYTES = 400 << 20", job)
    assert code != 0 or (findings is not None and "memory" in findings.for_agent())


def test_a_worker_starts_where_the_system_allows_less_memory() -> None:
    job = Job(structured=b"[1]", schema=NUMBERS.source, settings=STRICT)
    assert ask_worker("resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))", job) == (Findings(), 0)


def test_a_message_that_never_comes_is_not_waited_for_forever() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"\x00\x00\x00\x05abc")
        with pytest.raises(TimeoutError):
            frames.receive(reading, 0.01)
    finally:
        os.close(reading)
        os.close(writing)
