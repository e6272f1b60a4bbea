"""Supports models in shards: each process has a shard of every weight (ZeRO-3).

A launcher requests this by ``accelerate launch --zero3_init_flag true`` with a ZeRO-3
configuration: no process then contains a whole model, not even during loading. DeepSpeed marks such
a weight with ``ds_id``; the weight's own tensor is empty, and ``ds_tensor`` is the shard of this
process.

Such a model computes only inside of a trainer, which gathers one layer after the other.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from visenv.private_names import check_private_names

from .private_names import SHARD_NAMES

# DeepSpeed takes seconds to import, so that it is imported in the functions that use it.


def is_wanted() -> bool:
    """Return whether the launcher of this process requested models in shards."""
    names = ("ACCELERATE_USE_DEEPSPEED", "ACCELERATE_DEEPSPEED_ZERO3_INIT")
    return all(os.environ.get(name, "false") == "true" for name in names)


def is_sharded(model: torch.nn.Module) -> bool:
    """Return whether a model's weights are in shards."""
    return any(hasattr(weight, "ds_id") for weight in model.parameters())


def shape_of(weight: torch.Tensor) -> torch.Size:
    """Return the shape of a weight, which may be in shards."""
    shape: torch.Size = getattr(weight, "ds_shape", weight.shape)
    return shape


@contextmanager
def in_shards(dtype: torch.dtype) -> Iterator[None]:
    """Load models in shards inside this context; all processes must enter it together.

    Args:
        dtype: Type of the weights.

    Raises:
        ConfigurationError: If DeepSpeed or transformers lacks a private name that is used here.
    """
    check_private_names(SHARD_NAMES)
    from transformers.integrations.deepspeed import HfDeepSpeedConfig, unset_hf_deepspeed_config

    _join()
    config = HfDeepSpeedConfig(_config(dtype))  # transformers uses it while it exists
    try:
        yield
    finally:
        unset_hf_deepspeed_config()
        del config


def deep_copy(model: Any) -> Any:
    """Return a copy of a model with the current weights, in shards if the model is in shards."""
    if not is_sharded(model):
        return copy.deepcopy(model)
    copies = {id(weight): _copied(weight) for weight in model.parameters()}
    return copy.deepcopy(model, copies)


def take(weight: Any, other: Any) -> None:
    """Set a weight to the values of another, both whole or both in shards."""
    if hasattr(weight, "ds_tensor"):
        weight.ds_tensor.data.copy_(other.ds_tensor.data)
    else:
        weight.copy_(other)


def assign(weight: Any, value: torch.Tensor) -> None:
    """Set a weight, whole or in shards, to the values of a whole tensor."""
    if not hasattr(weight, "ds_tensor"):
        weight.copy_(value)
        return
    size = weight.ds_tensor.ds_numel
    start = torch.distributed.get_rank() * size
    part = value.flatten()[start : start + size]  # [elements of this process]
    weight.ds_tensor.data[: len(part)].copy_(part)


def equal(weight: Any, other: Any) -> bool:
    """Return whether two weights, both whole or both in shards, are equal on all processes."""
    if not hasattr(weight, "ds_tensor"):
        return torch.equal(weight, other.to(weight.device))
    ours, theirs = _without_padding(weight), _without_padding(other)
    same = torch.tensor(float(torch.equal(ours, theirs)), device=ours.device)
    torch.distributed.all_reduce(same, torch.distributed.ReduceOp.MIN)
    return bool(same)


def _without_padding(weight: Any) -> torch.Tensor:
    """Return this process's shard of a weight, without the padding of the last shards.

    All shards have the same size, and DeepSpeed does not initialize the padding.
    """
    size = weight.ds_tensor.ds_numel
    left = weight.ds_numel - torch.distributed.get_rank() * size
    shard: torch.Tensor = weight.ds_tensor.data[: max(0, min(size, left))]
    return shard


def _copied(weight: Any) -> torch.nn.Parameter:
    """Return a new weight in shards like another; it is whole while it is created."""
    import deepspeed

    holder = torch.nn.Module()
    empty = torch.empty(shape_of(weight), dtype=weight.dtype, device=weight.device)
    holder.weight = torch.nn.Parameter(empty, requires_grad=False)
    deepspeed.zero.Init(module=holder, config_dict_or_path=_config(weight.dtype))
    take(holder.weight, weight)
    return holder.weight


def _join() -> None:
    """Initialize torch.distributed, if this was not done yet; the trainer uses the same group."""
    if torch.distributed.is_initialized():
        return
    torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")


def _config(dtype: torch.dtype) -> dict[str, Any]:
    return {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": {"enabled": dtype == torch.bfloat16},
        # Otherwise DeepSpeed would replace PyTorch's linear function for the whole process.
        "zero_optimization": {"stage": 3, "memory_efficient_linear": False},
    }
