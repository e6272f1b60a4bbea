"""Trains a model that is loaded in shards, on every process of a launched test."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import deepspeed
import pytest
import torch
from typing_extensions import override

from tests.algos.distributed.training import train
from visenv.algos.trainer import Callback
from visenv.errors import PolicyError
from visenv.policies.tokens.generic import GenericFamily
from visenv.policies.transformers import TransformersPolicy, shards
from visenv.registration import load
from visenv.types import Message, Sampling, TurnRequest

BUFFER = 10**9
"""The size in bytes of DeepSpeed's gradient buffer, which is the same for any model."""

MOST = 0.6
"""The largest share of a model's bytes that one of two processes may hold."""


def check_shards(model: str, folder: Path) -> None:
    """Load, copy, save and train a model in shards; print the share that each process held."""
    policy = load("policy", "transformers")(model, threads=1)
    whole = sum(weight.nbytes for weight in policy.module.parameters())
    del policy
    os.environ["ACCELERATE_USE_DEEPSPEED"] = os.environ["ACCELERATE_DEEPSPEED_ZERO3_INIT"] = "true"
    before = _held()
    policy = load("policy", "transformers")(model, threads=1)
    one = _held() - before
    reference = policy.copy_frozen()
    two = _held() - before
    assert one <= MOST * whole, (one, whole)
    assert two <= 2 * MOST * whole, (two, whole)
    _check_weights(policy, reference, model)
    check_padding()
    _check_sampling(policy)
    del policy, reference
    watch = _Watch()
    train(model, folder, callbacks=[watch])
    os.environ["ACCELERATE_DEEPSPEED_ZERO3_INIT"] = "false"  # for later tasks of this process
    # Counted are weights, reference, gradients, and the optimizer's copy of the weights and two
    # moments.
    assert watch.most - before <= MOST * 6 * whole, (watch.most - before, whole)
    shares = (one / whole, two / (2 * whole), (watch.most - before) / (6 * whole))
    said = ", ".join(f"{share:.2f}" for share in shares)
    print(f"{torch.distributed.get_rank()}: shards hold {said} of the whole", flush=True)


class _Watch(Callback):
    """Records the most bytes held after a step, without DeepSpeed's gradient buffer."""

    def __init__(self) -> None:
        self.most = 0

    @override
    def on_step_end(self, state: Any, *_: Any, **__: Any) -> None:
        self.most = max(self.most, _held())


def _held() -> int:
    """Return the bytes of all tensors of this process, without the images that a family keeps."""
    gc.collect()
    objects = gc.get_objects()
    tensors = [each for each in objects if isinstance(each, torch.Tensor)]
    kept = sum(each._known.currsize for each in objects if isinstance(each, GenericFamily))
    shards = [each.ds_tensor for each in tensors if hasattr(each, "ds_tensor")]
    sizes = {}
    for each in (*tensors, *shards):
        if each.nbytes < BUFFER:
            sizes[each.untyped_storage().data_ptr()] = each.untyped_storage().nbytes()
    total: int = sum(sizes.values())
    return total - int(kept)


def _check_weights(policy: Any, reference: Any, model: str) -> None:
    """Check that shards hold the checkpoint's weights and that a copy can have other weights."""
    os.environ["ACCELERATE_DEEPSPEED_ZERO3_INIT"] = "false"
    expected = TransformersPolicy(model, threads=1).network.model.state_dict()
    os.environ["ACCELERATE_DEEPSPEED_ZERO3_INIT"] = "true"
    with torch.no_grad():
        for weight in reference.module.parameters():
            weight.ds_tensor.data.zero_()
    for number, each in enumerate((policy, reference, policy)):
        for name, weight in each.named_weights(deepspeed.zero.GatheredParameters):
            wanted = expected[name] if number != 1 else torch.zeros_like(expected[name])
            assert torch.equal(weight, wanted), name
    reference.load_weights(Path(model))
    for name, weight in reference.named_weights(deepspeed.zero.GatheredParameters):
        assert torch.equal(weight, expected[name]), name


def check_padding() -> None:
    """Check that two processes hold 8 and 7 of 15 values, 1 and 0 of 1 value, and padding."""
    rank = torch.distributed.get_rank()
    for count, own in ((15, (8, 7)), (1, (1, 0))):
        model = torch.nn.Module()
        model.weight = torch.nn.Parameter(torch.ones(count), requires_grad=False)
        config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}
        deepspeed.zero.Init(module=model, config_dict_or_path=config)
        other = shards.deep_copy(model)
        other.weight.ds_tensor.data[own[rank] :] = float("nan")
        assert shards.equal(model.weight, other.weight), count
        if rank == 0:
            other.weight.ds_tensor.data[0] = 2.0
        assert not shards.equal(model.weight, other.weight), count


def _check_sampling(policy: Any) -> None:
    import asyncio

    session = policy.open(0)
    session.observe([Message("user", ("what is in the crop",))])
    with pytest.raises(PolicyError, match="samples only inside of a trainer"):
        asyncio.run(policy.respond(session, TurnRequest(), Sampling(1.0, 4)))
