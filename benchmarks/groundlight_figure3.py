"""Draws figure 3 of Groundlight's paper (arXiv 2506.14821): the advantage of using the tool.

    python benchmarks/groundlight_figure3.py runs/<name>/<phase>/metrics.jsonl figure3.png

Reads the trainer's metrics of each step (`visenv.algos.trainer.metrics.advantages_by_tool`),
accumulates them over the steps, prints the sums at ten points of the run, and draws them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

OUTCOMES = {
    "tool_ok": "successful tool use",
    "tool_failed": "failed tool use",
    "no_tool": "no tool",
}


def accumulated(path: Path) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
    """Return the steps of a run, and the accumulated mean advantage by outcome.

    A step without an episode of that outcome adds nothing.
    """
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    steps = np.array([row["step"] for row in rows], np.int64)
    return steps, {
        outcome: np.cumsum([row.get(f"advantage/{outcome}", 0.0) for row in rows])
        for outcome in OUTCOMES
    }


def draw(steps: NDArray[np.int64], sums: dict[str, NDArray[np.float64]], picture: Path) -> None:
    """Draw the sums by step, on a symmetric logarithmic scale."""
    from matplotlib.figure import Figure  # without pyplot: no display, no global state

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    chart = figure.subplots()
    for outcome, label in OUTCOMES.items():
        chart.plot(steps, sums[outcome], label=label)
    chart.set_yscale("symlog", linthresh=0.1)
    chart.set_xlabel("step")
    chart.set_ylabel("accumulated advantage")
    chart.legend(fontsize=8)
    figure.savefig(picture, dpi=130)


def main(metrics: str, picture: str) -> None:
    """Print the sums and draw them."""
    steps, sums = accumulated(Path(metrics))
    print("  step" + "".join(f"{outcome:>14}" for outcome in OUTCOMES))
    for place in np.unique(np.linspace(0, len(steps) - 1, 10).astype(int)):
        print(f"{steps[place]:6}" + "".join(f"{sums[each][place]:14.3f}" for each in OUTCOMES))
    draw(steps, sums, Path(picture))


if __name__ == "__main__":
    main(*sys.argv[1:])
