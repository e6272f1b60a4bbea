"""Checks DeepSpeed with bfloat16 weights on every process of a launched test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from deepspeed.utils import safe_get_full_grad

from tests.algos import toy
from tests.algos.distributed.training import CONFIG, make_env
from tests.algos.runs import Sloped, metrics
from visenv.algos.trainer import OptimizationConfig, Trainer
from visenv.algos.trainer.ddp import make_backend
from visenv.algos.trainer.distributed import DistributedContext
from visenv.registration import load

LARGE, SMALL = 1000, 20
"""One gradient of 1000, then 20 of 1: a bfloat16 sum stays 1000, as the next number is 1004."""


def check_bf16(model: str, folder: Path) -> None:
    """Check sums of gradients and a short run of a real model; print that they are right."""
    processes = DistributedContext(timeout=600)
    with _bf16(processes):
        _check_sum(processes)
        if model:
            _train(model, folder)
    print(f"{processes.rank}: bf16 agrees", flush=True)


@contextmanager
def _bf16(processes: DistributedContext) -> Iterator[None]:
    """Configure DeepSpeed as in configs/zero2.json and zero3.json."""
    config = processes.accelerator.deepspeed_plugin.deepspeed_config
    config["bf16"] = {"enabled": True}
    try:
        yield
    finally:
        for name in ("bf16", "data_types"):
            config.pop(name, None)


def _check_sum(processes: DistributedContext) -> None:
    policy = toy.ToyPolicy()
    policy.module.to(torch.bfloat16)
    episode = policy.encode(toy.demonstration("a", "b"))
    (segment,) = episode.segments
    images = {image.sha256: image for image in episode.images}

    def loss(scored: Any) -> torch.Tensor:
        summed: torch.Tensor = scored.logprobs.float().sum() / processes.count
        return summed

    loss(policy.score([segment], images)).backward()
    network: Any = policy.module.network
    single = network.bias.grad.float() * processes.count
    backend = make_backend(policy, OptimizationConfig(max_grad_norm=1e9), processes)
    backend.begin(0.0)
    weights = [LARGE] + [1] * SMALL
    found: list[torch.Tensor] = []
    for number, weight in enumerate(weights, start=1):
        with backend.micro_batch(last=number == len(weights)):
            backend.backward(weight * loss(backend(policy.collate([segment], images))))

    def keep(norm: float) -> bool:
        found.append(safe_get_full_grad(network.bias).float().clone())
        return False

    backend.step(keep)
    backend.close()
    expected = (LARGE + SMALL) * single
    torch.testing.assert_close(found[0], expected, rtol=5e-3, atol=1e-3 * LARGE)


def _train(model: str, folder: Path) -> None:
    """Run two steps of the real model; check that sampled and scored log-probabilities agree."""
    policy = load("policy", "transformers")(model, threads=1, dtype="bfloat16", fp32_head=True)
    Trainer(policy, Sloped(), replace(CONFIG, steps=2), folder=folder).train(make_env)
    for row in metrics(folder):
        assert row["grad_norm"] > 1e-2, row
        assert row["sampler/distance"] < 0.05, row
