"""Measures the vision tower: windows as one batch, and patches projected by a matrix product.

    python benchmarks/vision.py

The tower of a Qwen2.5-VL with random weights (`random_vlm.py`) reads the images of the first shape
of `update.py`: two of 28 by 28 patches and eight of 32 by 32, which have 160 windows of 3 sizes in
the layers that attend within windows. The peer is transformers' own code, with one call for each
window and a convolution for the patches. All ways alternate in one process and one thread; times
are medians of processor seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.random_vlm import SHAPES, build, group
from visenv.policies.tokens.qwen_vl import require_qwen_vl
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.transformers.attention import WINDOWS

WAYS = {
    "visenv": (WINDOWS, True),
    "windows one by one": ("sdpa", True),
    "patches by convolution": (WINDOWS, False),
    "transformers": ("sdpa", False),
}
"""Attention, and whether patches are projected by a matrix product."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="22m")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        policy = TransformersPolicy(build(Path(scratch), options.size), threads=1)
    _, images = group(policy, SHAPES[0], 8)
    patches = require_qwen_vl(policy.codec.family).images.encode([*images.values()])
    values = torch.cat([each.values for each in patches])  # [patches, numbers of a patch]
    grids = torch.tensor([each.grid for each in patches])  # [images, 3]
    model: Any = policy.network.model.model
    projection = model.visual.patch_embed.proj
    by_matmul = type(projection)

    def step(way: str) -> tuple[float, float]:
        model.visual.config._attn_implementation, matmul = WAYS[way]  # noqa: SLF001
        projection.__class__ = by_matmul if matmul else torch.nn.Conv3d
        start = time.process_time()
        seen = model.get_image_features(values, grids, return_dict=True).pooler_output
        forward = time.process_time() - start
        torch.cat([*seen]).sum().backward()
        return forward, time.process_time() - start

    taken: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for _ in range(options.rounds + 1):  # the first round warms up
        for way in WAYS:
            taken[way].append(step(way))
    print(f"{options.size}, {len(values)} patches, {options.rounds} rounds, seconds")
    print(f"{'':24}{'forward':>9}{'with backward':>15}")
    for way, rounds in taken.items():
        forward, both = (statistics.median(each) for each in zip(*rounds[1:], strict=True))
        print(f"{way:24}{forward:9.2f}{both:15.2f}")


if __name__ == "__main__":
    main()
