"""Draw a small picture: bars or lines, from a description, with matplotlib in an environment of its own."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2] / ".bench" / "plot"
OURS, OTHERS = "#1f6feb", "#9aa4b2"


def draw(panels: list[dict[str, Any]], path: Path) -> str:
    """Write a PNG; says where it is, or why there is none."""
    if not panels:
        return "no picture: there is nothing to draw"
    try:
        if not (HOME / ".done").exists():
            subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
            subprocess.run([HOME / "bin" / "pip", "install", "-qq", "matplotlib"], check=True)
            (HOME / ".done").touch()
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [str(HOME / "bin" / "python"), __file__, str(path)]
        subprocess.run(command, input=json.dumps(panels), text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no picture: {error}"
    return f"picture: {path}"


def _bars(axes: Any, panel: dict[str, Any]) -> None:
    """`values` by name; ours is marked. They begin at nothing, so that lengths compare."""
    names, values = list(panel["values"]), list(panel["values"].values())
    colours = [OURS if name == "mcpproxy" else OTHERS for name in names]
    drawn = axes.barh(names, values, color=colours)
    axes.bar_label(drawn, [panel["format"].format(value) for value in values], padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.22)
    axes.set_xticks([])
    axes.tick_params(left=False, labelsize=9)


def _lines(axes: Any, panel: dict[str, Any]) -> None:
    """`series` by name, over `x`."""
    for name, values in panel["series"].items():
        axes.plot(panel["x"], values, marker=panel.get("marker", ""), markersize=3, linewidth=1.2, label=name)
    if len(panel["series"]) > 1:
        axes.legend(fontsize=7, frameon=False)
    axes.set_xlabel(panel["xlabel"], fontsize=8)
    axes.set_xscale("log" if panel.get("log") else "linear")
    axes.set_yscale("log" if panel.get("log") else "linear")
    if not panel.get("log"):
        axes.set_ylim(0, 1.15 * max(max(values) for values in panel["series"].values()))
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)


def main() -> None:
    """Read the panels, write the file."""
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    panels = json.loads(sys.stdin.read())
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(4.0 * columns, 2.5 * rows), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, panels, strict=False):
        axes.set_title(panel["title"], fontsize=9)
        for side in ("top", "right", *(("bottom", "left") if "values" in panel else ())):
            axes.spines[side].set_visible(False)
        (_bars if "values" in panel else _lines)(axes, panel)
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=110, facecolor="white")


if __name__ == "__main__":
    main()
