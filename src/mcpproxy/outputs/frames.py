"""How do two processes hand each other a message over a pipe? Its length first, then its bytes."""

from __future__ import annotations

import os
import select
import struct
import time

_LENGTH = struct.Struct("!I")


def send(descriptor: int, message: bytes) -> None:
    """Write one message, whole."""
    left = memoryview(_LENGTH.pack(len(message)) + message)
    while left:
        left = left[os.write(descriptor, left) :]


def receive(descriptor: int, seconds: float | None = None) -> bytes | None:
    """Read one message; None at the end of the pipe, `TimeoutError` after so many seconds."""
    until = None if seconds is None else time.monotonic() + seconds
    head = _exactly(descriptor, _LENGTH.size, until)
    return None if head is None else _exactly(descriptor, _LENGTH.unpack(head)[0], until)


def _exactly(descriptor: int, count: int, until: float | None) -> bytes | None:
    message = bytearray()
    while len(message) < count:
        if until is not None:
            _wait(descriptor, until)
        chunk = os.read(descriptor, min(count - len(message), 1 << 20))
        if not chunk:
            return None
        message += chunk
    return bytes(message)


def _wait(descriptor: int, until: float) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError
