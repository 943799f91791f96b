"""python -m bench.activity: the activity log at a million records, and what it costs a call."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import uvloop

from bench.activity.cost import measure_cost
from bench.activity.fill import fill
from bench.activity.queries import measure_queries
from mcpproxy.storage.engine import open_storage


def main() -> int:
    """Run what is asked for; 0 if the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m bench.activity", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--data-dir", type=Path, help="keep the filled log here, and use it again the next time")
    parser.add_argument("--only", choices=("queries", "cost"))
    given = parser.parse_args()
    met = True
    with tempfile.TemporaryDirectory(prefix="mcpproxy-bench-") as scratch:
        if given.only != "cost":
            data_dir = given.data_dir or Path(scratch) / "large"
            new = not (data_dir / "mcpproxy.db").exists()
            storage = open_storage("sqlite", data_dir)
            if new:
                per_record = uvloop.run(fill(storage, data_dir, given.records))
                size = (data_dir / "mcpproxy.db").stat().st_size / 1e6
                print(f"{given.records} records written in bulk, {per_record * 1e6:.1f} µs each; {size:.0f} MB")
            met = measure_queries(storage) and met
            storage.close()
        if given.only != "queries":
            data_dir = Path(scratch) / "cost"
            storage = open_storage("sqlite", data_dir)
            met = uvloop.run(measure_cost(storage, data_dir)) and met
            storage.close()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
