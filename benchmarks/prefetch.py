"""Measures an update with and without micro-batches that another thread makes in advance.

    python benchmarks/prefetch.py
    python benchmarks/prefetch.py --device cuda --dtype bfloat16 --size 3b --groups 8

Each group is a micro-batch: two images in the prompt and a tool image for each member. Images are
processed again in every round, as after sampling with an engine (which processes images itself).
Rounds alternate with and without prefetching. The medians of the wall time count, because overlap
does not change processor time.

The share is the part of the time without prefetching that is spent on making micro-batches.
Prefetching saves at most this part: the ratio is at most ``1 / (1 - share)``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import tyro

from benchmarks.random_vlm import SHAPES, build, group
from visenv.algos.trainer.micro_batches import pinned, prefetched
from visenv.policies.tokens.qwen_vl import require_qwen_vl
from visenv.policies.transformers import TransformersPolicy

Way = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
WAYS: dict[str, Way] = {"in turn": map, "prefetched": prefetched}


class Round(NamedTuple):
    """Holds the seconds of one round: in total, and for making micro-batches (on any thread)."""

    whole: float
    making: float


def take(policy: TransformersPolicy, parts: Sequence[Any], way: Way) -> Round:
    """Run forward and backward of all micro-batches."""
    require_qwen_vl(policy.codec.family).images.forget()
    making = 0.0

    def make(part: Any) -> Any:
        nonlocal making
        begun = time.perf_counter()
        collated = pinned(policy.collate(*part))
        making += time.perf_counter() - begun
        return collated

    begun = time.perf_counter()
    for collated in way(make, parts):
        policy.module(collated).logprobs.sum().backward()
        policy.module.zero_grad()
    if policy.network.device.type == "cuda":
        torch.cuda.synchronize()
    return Round(time.perf_counter() - begun, making)


def main(
    size: str = "8m",
    groups: int = 4,
    members: int = 4,
    rounds: int = 5,
    device: str = "cpu",
    dtype: Literal["float32", "bfloat16"] = "float32",
    threads: int = 1,
) -> None:
    """Time updates with and without prefetching.

    Args:
        size: A key of `benchmarks.random_vlm.SIZES`.
        groups: Micro-batches in an update.
        members: Episodes in a group.
        rounds: Rounds of each way.
        device: Device of the model.
        dtype: Type of its weights.
        threads: CPU threads of PyTorch.
    """
    with tempfile.TemporaryDirectory() as folder:
        policy = TransformersPolicy(
            build(Path(folder), size), device=device, dtype=dtype, freeze_vision=False,
            threads=threads,
        )  # fmt: skip
        policy.train_mode(True)
        parts = [group(policy, SHAPES[0], members) for _ in range(groups)]
        taken: dict[str, list[Round]] = {name: [] for name in WAYS}
        for number in range(rounds + 1):
            for name, way in WAYS.items():
                one = take(policy, parts, way)
                if number:  # the first round warms up
                    taken[name].append(one)
    load = "/".join(f"{each:.0f}" for each in os.getloadavg())
    print(
        f"{size}, {device}, {dtype}, {groups} groups of {members}, {threads} threads, load {load}"
    )
    medians = {name: statistics.median(one.whole for one in each) for name, each in taken.items()}
    for name, each in taken.items():
        print(f"{name:12} {medians[name]:7.2f} s  rounds {[round(one.whole, 2) for one in each]}")
    share = statistics.median(one.making / one.whole for one in taken["in turn"])
    ratio = medians["in turn"] / medians["prefetched"]
    print(
        f"making takes {share:.0%}; in turn takes {ratio:.2f} x (at most {1 / (1 - share):.2f} x)"
    )


if __name__ == "__main__":
    tyro.cli(main)
