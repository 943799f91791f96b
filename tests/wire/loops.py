"""The event loops that a channel must work on, and the unit that sizes are given in."""

import pytest

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
MIB = 1024 * 1024
