"""The process that checks what might take long: one payload after the other, each within a budget of its own.

Started by `apart.Apart`. The kernel ends it where a check takes more time or memory than it may: neither
the decoder nor the validator can be interrupted from inside.
"""

from __future__ import annotations

import gc
import resource
import signal
import sys
from functools import lru_cache

import msgspec

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs import frames
from mcpproxy.outputs.check import examine
from mcpproxy.outputs.findings import Findings, one
from mcpproxy.outputs.schema import CompiledSchema, compile_schema

# Of processor time, so that a busy machine does not turn good payloads away.
CPU_SECONDS = 2.0
MEMORY_BYTES = 2 << 30


class Job(msgspec.Struct, frozen=True):
    """One payload to look at."""

    structured: bytes
    schema: bytes | None
    settings: OutputValidation


def main() -> None:
    """Answer jobs from standard input on standard output until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory()
    gc.disable()  # JSON values are trees: counting references frees them, and looking for cycles costs up to a quarter
    jobs = msgspec.msgpack.Decoder(Job)
    while (message := frames.receive(sys.stdin.fileno())) is not None:
        job = jobs.decode(message)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        findings = _examine(job)
        signal.setitimer(signal.ITIMER_PROF, 0)
        frames.send(sys.stdout.fileno(), msgspec.msgpack.encode(findings))


def _limit_memory() -> None:
    # The system may allow less already, and a limit can only be lowered.
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(MEMORY_BYTES, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _examine(job: Job) -> Findings:
    try:
        return examine(job.structured, _compiled(job.schema) if job.schema else None, job.settings)
    except MemoryError:
        return one("a payload that can be checked in the memory a check may use", "one that needs more")


@lru_cache(maxsize=64)
def _compiled(source: bytes) -> CompiledSchema:
    compiled = compile_schema(source)
    if not isinstance(compiled, CompiledSchema):  # the parent compiled the same bytes
        raise TypeError(compiled.reason)
    return compiled


if __name__ == "__main__":
    main()
