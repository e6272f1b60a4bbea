"""Measures scoring and updates of the generic path, against the packed path and TRL.

    python benchmarks/generic_path.py

Models other than Qwen2.5-VL and Qwen3-VL are computed by the generic path: padded rows, which share
no prefix. Here it computes a Qwen2.5-VL with random weights, which both other ways can compute too,
on the same episodes: groups of 8 with prompts of several images.

packed   prefixes are read once, as the trainer does for this model
generic  padded rows, each of which is read whole
trl      `GRPOTrainer` of TRL on the stock model: its log-probabilities, and its loss. Its head
         skips masked places, as on a GPU
trl-cpu  the same with TRL's default on a CPU: its head scores every place

"Score" is the forward pass without a gradient, as for the log-probabilities of a reference model;
"update" is forward, backward and AdamW. Padded batches are made before the time is measured. The
processes, times and memory are those of `update.py`, but the smallest of all rounds counts, because
other programs only add to processor seconds. "Gradient" is the distance from the gradient of the
packed way, relative to its norm.

The last lines are the ratios of processor seconds. When it samples, the generic path reads the
prompt of a group once; this is not measured here.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from benchmarks.random_vlm import SHAPES, Shape, build
from benchmarks.update import Processes, heading, measure

WORK = ("score", "update")
WAYS = {"packed": "shared", "generic": "generic", "trl": "trl", "trl-cpu": "trl-cpu"}
"""The ways of `update.py`, by their names here."""


def report(
    processes: Processes, options: argparse.Namespace, shape: Shape, members: int
) -> Iterator[str]:
    """Yield the lines of one shape."""
    measured, apart = measure(processes, options, shape, members, WORK, min)
    yield (
        f"\n{shape}, {shape.images} images, G = {members}: {shape.whole(members)} tokens,"
        f" {shape.read(members)} with shared prefixes"
    )
    yield "                 seconds  vision  MiB  gradient"
    for work in WORK:
        for name, way in WAYS.items():
            one = measured[work][way]
            gradient = f"{apart[way]:9.1e}" if work == "update" else ""
            yield (
                f"{name:8} {work:7} {one.whole:7.2f} {one.vision:7.2f} {one.memory:4.0f} {gradient}"
            )
    for work, other in product(WORK, ("packed", "trl", "trl-cpu")):
        generic, peer = measured[work]["generic"], measured[work][WAYS[other]]
        yield (
            f"{work}: generic takes {generic.whole / peer.whole:.2f} times the seconds and"
            f" {generic.memory / peer.memory:.2f} times the memory of {other}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="8m", help="8m or 22m, see `random_vlm.py`")
    parser.add_argument("--members", type=int, default=8)
    parser.add_argument("--shapes", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for name, value in (
        ("device", "cpu"), ("dtype", "float32"), ("threads", 1), ("checkpointing", False),
    ):  # fmt: skip
        setattr(options, name, value)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options.folder = build(scratch / "model", options.size)
        print(heading(options), flush=True)
        processes = {
            way: stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
            for way in WAYS.values()
        }
        for number in options.shapes:
            for line in report(processes, options, SHAPES[number], options.members):
                print(line, flush=True)


if __name__ == "__main__":
    main()
