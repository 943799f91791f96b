"""Run inside FastMCP's own environment: what do its client's checks add to a call?

The same tool is called through FastMCP's in-memory client twice, with and without an output schema; the
difference is what holding the result against the schema costs.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.metadata
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any


async def measure(schema: dict[str, Any], payload: dict[str, Any]) -> dict[str, float]:
    """Return median milliseconds of a call without and with the schema."""
    fastmcp: Any = importlib.import_module("fastmcp")
    result: Any = importlib.import_module("fastmcp.tools.base").ToolResult

    def answer() -> Any:
        return result(content="ok", structured_content=payload)

    server = fastmcp.FastMCP("bench")
    server.tool(answer, name="plain", output_schema=None)
    server.tool(answer, name="declared", output_schema=schema)
    medians: dict[str, float] = {}
    async with fastmcp.Client(server) as client:
        await client.list_tools()
        for name in ("plain", "declared"):
            times: list[float] = []
            until = time.perf_counter() + 2
            while time.perf_counter() < until or len(times) < 5:
                start = time.perf_counter()
                await client.call_tool(name, {})
                times.append((time.perf_counter() - start) * 1e3)
            medians[name] = statistics.median(times)
    return medians


def main() -> None:
    """Read the job from the command line, print the answer as one line of JSON."""
    job = json.loads(sys.argv[1])
    results: dict[str, Any] = {"version": importlib.metadata.version("fastmcp")}
    for name, path in job["payloads"].items():
        medians = asyncio.run(measure(job["schema"], json.loads(Path(path).read_bytes())))
        results[name] = {"median_ms": medians["declared"] - medians["plain"], "call_ms": medians["declared"]}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
