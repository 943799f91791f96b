"""Does a flood of tiny lines leave others their turn, and does nothing of it get lost or out of order?"""

import asyncio
import os

import pytest
from tests.support.children import run, until
from tests.wire.loops import LOOPS

from mcpproxy.wire.turns import Output, pieces


@pytest.mark.parametrize("chunk", [b"", b"one\n", b"x" * 100_000, b"\n" * 128 + b"x" * 10_000, b"\n" * 128])
def test_what_is_soon_read_stays_whole(chunk: bytes) -> None:
    assert list(pieces(chunk)) == [chunk]


@pytest.mark.parametrize("chunk", [b"\n" * 10_000, b"\r" * 10_000, b"word\n" * 3_333])
def test_many_lines_come_in_pieces(chunk: bytes) -> None:
    cut = pieces(chunk + b"half a line")
    assert b"".join(cut) == chunk + b"half a line"
    assert max(len(piece.splitlines()) for piece in cut) == 64


class Flood:
    """A pipe that somebody floods, and what of it was handed on."""

    def __init__(self, slow: bool) -> None:
        self.slow = slow
        self.taken: list[bytes] = []
        self.lost = False
        self.others = 0
        """How often somebody else had a turn since the first piece was taken."""

    async def read(self, data: bytes) -> None:
        """Read the data from a real pipe, to its end, while somebody else wants the loop, too."""
        reading, writing = os.pipe()
        loop = asyncio.get_running_loop()
        writer = asyncio.create_task(asyncio.to_thread(_write, writing, data))
        transport, _ = await loop.connect_read_pipe(
            lambda: Output(self.taken.append, self._end, lambda: self.slow), os.fdopen(reading)
        )
        other = asyncio.create_task(self._other())
        await until(lambda: self.lost)
        other.cancel()
        await writer
        transport.close()

    def _end(self) -> None:
        self.lost = True

    async def _other(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.others += bool(self.taken)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.close(descriptor)


@LOOPS
@pytest.mark.parametrize("line", [b"\n", b"{\n", b"word\n"])
@pytest.mark.parametrize("slow", [True, False])
def test_a_flood_is_handed_on_in_order_with_turns_for_others_in_between(loop: str, line: bytes, slow: bool) -> None:
    async def main() -> None:
        flood = Flood(slow)
        data = line * 30_000 + b"the end"
        await flood.read(data)
        assert b"".join(flood.taken) == data
        assert flood.others > 100

    run(main(), loop)


@LOOPS
def test_a_pipe_that_is_closed_in_a_flood_hands_on_no_more(loop: str) -> None:
    async def main() -> None:
        taken: list[bytes] = []
        lost = asyncio.Event()
        reading, writing = os.pipe()

        def take(piece: bytes) -> None:
            taken.append(piece)
            transport.close()

        transport, output = await asyncio.get_running_loop().connect_read_pipe(
            lambda: Output(take, lost.set, lambda: False), os.fdopen(reading)
        )
        os.write(writing, b"\n" * 60_000)
        await lost.wait()
        assert len(taken) == 1 and not output.behind
        os.close(writing)

    run(main(), loop)
