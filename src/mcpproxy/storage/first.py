"""How does a database begin? A process of its own makes the tables: what that takes is never given back, 14 MB of it.

It works while the proxy still loads. Where it fails, the proxy makes them itself, and says what is wrong.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Final

from mcpproxy.storage.engine import FILE_NAME, open_storage

_PATIENCE_SECONDS: Final = 60.0


def begin(setting: str, data_dir: Path) -> subprocess.Popen[bytes] | None:
    """Start to make what a first start needs; None where nothing is to be made in the data directory."""
    if setting != "sqlite" or (data_dir / FILE_NAME).exists():
        return None
    # -P: what lies in the working directory is no module of ours.
    command = [sys.executable, "-P", "-m", __name__, str(data_dir)]
    with contextlib.suppress(OSError):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return None


def finish(making: subprocess.Popen[bytes] | None) -> None:
    """Wait until it is made, or could not be."""
    if making is not None:
        try:
            making.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            making.kill()
            making.wait()


if __name__ == "__main__":
    open_storage("sqlite", Path(sys.argv[1])).close()
