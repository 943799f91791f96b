"""FastMCP, in an environment of its own that is thrown away afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.outputs.payloads import SCHEMA

_SCRIPT = Path(__file__).with_name("fastmcp_script.py")
_INSTALL_SECONDS = 600


def measure_fastmcp(payloads: dict[str, bytes]) -> dict[str, Any] | str:
    """Return version and milliseconds by payload, or why there are none."""
    with tempfile.TemporaryDirectory(prefix="bench-fastmcp-") as folder:
        place = Path(folder)
        python = place / "env" / "bin" / "python"
        try:
            _run([sys.executable, "-m", "venv", str(place / "env")])
            _run([str(python), "-m", "pip", "install", "--quiet", "fastmcp"])
        except (subprocess.SubprocessError, OSError) as error:
            return f"not installed ({type(error).__name__})"
        names = {}
        for name, raw in payloads.items():
            names[name] = str(place / f"{name.replace(' ', '')}.json")
            Path(names[name]).write_bytes(raw)
        job = {"schema": SCHEMA, "payloads": names}
        try:
            answer = _run([str(python), str(_SCRIPT), json.dumps(job)])
        except (subprocess.SubprocessError, OSError) as error:
            return f"did not run ({type(error).__name__})"
    result: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return result


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    return done.stdout
