"""How is numpy loaded? On one core: its matrix product is short here, and a second thread costs more than it gives.

Measured at 10,000 tools on two busy cores: 0.37 ms for one query with one thread, 1.24 ms with two.
"""

from __future__ import annotations

import os

_KEY = "OPENBLAS_NUM_THREADS"

if _KEY in os.environ:
    import numpy as np
else:
    os.environ[_KEY] = "1"  # read once, while numpy is loaded
    import numpy as np

    del os.environ[_KEY]  # what we start, upstream servers above all, must not inherit it

from numpy.typing import NDArray  # noqa: E402 - it loads numpy, so it comes last

__all__ = ["NDArray", "np"]
