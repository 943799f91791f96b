"""What does checking a result cost? `python -m bench.outputs [--json FILE] [--no-fastmcp] [--seconds N]`.

Every row starts from the bytes of `structuredContent` and ends with a verdict. `jsonschema` decodes with the
standard library and validates; FastMCP's figure is what an output schema adds to a call of its client.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import platform
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.outputs.fastmcp_env import measure_fastmcp
from bench.outputs.measure import longest_wait, timed
from bench.outputs.payloads import SCHEMA, SIZES, conforming, violating

from mcpproxy.config.models import OutputValidation
from mcpproxy.outputs.apart import Apart, is_heavy
from mcpproxy.outputs.check import check
from mcpproxy.outputs.schema import CompiledSchema, compile_schema

Work = Callable[[], object]


def main() -> None:
    """Measure everything in one run and print a table."""
    options = argparse.ArgumentParser(prog="python -m bench.outputs")
    options.add_argument("--json", type=Path, help="write the figures to this file too")
    options.add_argument("--no-fastmcp", action="store_true", help="do not install and measure FastMCP")
    options.add_argument("--seconds", type=float, default=1.0, help="how long to measure each row")
    chosen = options.parse_args()
    payloads = {name: conforming(size) for name, size in SIZES.items()}
    apart = Apart(workers=1)
    results: dict[str, Any] = {
        "versions": {
            name: importlib.metadata.version(name) for name in ("mcpproxy", "jsonschema-rs", "jsonschema", "msgspec")
        },
        "python": platform.python_version(),
        "bytes": {name: len(raw) for name, raw in payloads.items()},
        "payloads": {},
    }
    for name, raw in payloads.items():
        rows = _rows(raw, violating(SIZES[name]), apart)
        results["payloads"][name] = {row: timed(work, chosen.seconds) for row, work in rows.items()}
    results["longest_wait_ms"] = _waits(payloads["1 MB"], apart)
    apart.close()
    results["fastmcp"] = "left out" if chosen.no_fastmcp else measure_fastmcp(payloads)
    _print(results)
    if chosen.json:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(json.dumps(results, indent=2) + "\n")


def _compiled() -> CompiledSchema:
    schema = compile_schema(SCHEMA)
    if not isinstance(schema, CompiledSchema):
        raise SystemExit(schema.reason)
    return schema


def _rows(good: bytes, bad: bytes, apart: Apart) -> dict[str, Work]:
    schema = _compiled()
    off, warn, strict = (OutputValidation(mode=mode) for mode in ("off", "warn", "strict"))
    rows: dict[str, Work] = {
        "off": partial(check, good, False, schema, off),
        "no schema declared": partial(check, good, False, None, strict),
        "warn": partial(check, good, False, schema, warn),
        "strict": partial(check, good, False, schema, strict),
        "strict, violating": partial(check, bad, False, schema, strict),
        "jsonschema": partial(_jsonschema(), good),
    }
    if is_heavy(schema, good):
        rows["strict, in a worker"] = partial(check, good, False, schema, strict, look=apart.look)
    return rows


def _jsonschema() -> Callable[[bytes], None]:
    jsonschema: Any = importlib.import_module("jsonschema")
    validator = jsonschema.Draft202012Validator(SCHEMA)

    def validate(raw: bytes) -> None:
        if not validator.is_valid(json.loads(raw)):
            raise SystemExit("jsonschema does not agree that the payload conforms")

    return validate


def _waits(raw: bytes, apart: Apart) -> dict[str, float]:
    schema, strict = _compiled(), OutputValidation(mode="strict")
    return {
        "strict": longest_wait(partial(check, raw, False, schema, strict)),
        "strict, in a worker": longest_wait(partial(check, raw, False, schema, strict, look=apart.look)),
    }


def _print(results: dict[str, Any]) -> None:
    names = list(results["payloads"])
    rows = list(dict.fromkeys(row for name in names for row in results["payloads"][name]))
    print(f"median ms per call{'':10}" + "".join(f"{name:>12}" for name in names))
    for row in rows:
        cells = [results["payloads"][name].get(row) for name in names]
        print(f"{row:28}" + "".join(f"{cell['median_ms']:12.4f}" if cell else f"{'':>12}" for cell in cells))
    fastmcp = results["fastmcp"]
    if isinstance(fastmcp, str):
        print(f"FastMCP: {fastmcp}")
    else:
        print(
            f"{'FastMCP ' + fastmcp['version']:28}" + "".join(f"{fastmcp[name]['median_ms']:12.4f}" for name in names)
        )
    for row, wait in results["longest_wait_ms"].items():
        print(f"longest wait of another thread during 1 MB, {row}: {wait:.1f} ms")


if __name__ == "__main__":
    main()
