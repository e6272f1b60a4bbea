"""Handles state that DeepSpeed shards: modules (ZeRO-3), and optimizer state (every stage)."""

from __future__ import annotations

from typing import Any

import deepspeed
import torch

from .optimizer_shards import Slot


class PartedModule:
    """Remembers the original state of a module that DeepSpeed wraps, to restore it later.

    Args:
        module: The module, whose weights may already be sharded.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._was_in_parts = is_in_parts(module)

    def release(self, engine: Any) -> None:
        """End the engine of DeepSpeed, and restore the weights: complete, or sharded.

        Complete weights are held in main memory until the engine has released its own.
        """
        parameters = [*self._module.parameters()]
        plain: dict[int, torch.nn.Parameter] = {}
        if is_in_parts(self._module) and not self._was_in_parts:
            for parameter in parameters:
                with deepspeed.zero.GatheredParameters([parameter]):
                    whole = parameter.detach().to("cpu", copy=True)
                plain[id(parameter)] = torch.nn.Parameter(whole, parameter.requires_grad)
        engine.destroy()
        for parameter in parameters:
            if id(parameter) in plain:
                plain[id(parameter)].data = plain[id(parameter)].data.to(parameter.device)
        _restore(self._module, plain)


def is_in_parts(module: torch.nn.Module) -> bool:
    """Return whether DeepSpeed has sharded the weights of a module."""
    return any(hasattr(parameter, "ds_id") for parameter in module.parameters())


def _restore(module: torch.nn.Module, plain: dict[int, torch.nn.Parameter]) -> None:
    """Restore the plain dictionaries that DeepSpeed replaced, with the parameters in `plain`.

    Parameters that were the same object remain the same object.
    """
    for part in module.modules():
        part._parameters = {  # noqa: SLF001 - DeepSpeed replaced it
            name: None if old is None else plain.get(id(old), old)
            for name, old in part._parameters.items()  # noqa: SLF001
        }


def frozen_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the DeepSpeed configuration of a frozen module, from that of the trained module."""
    zero = config["zero_optimization"]
    kept = {name: zero[name] for name in ("stage", "offload_param") if name in zero}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": dict(config.get("bf16", {"enabled": False})),
        # Every weight is sharded, because `load_weights` writes into the shards.
        "zero_optimization": {**kept, "stage3_param_persistence_threshold": 0},
    }


def optimizer_slots(engine: Any) -> list[Slot]:
    """Return the elements of each trained parameter whose optimizer state this process holds."""
    named = [each for each in engine.module.named_parameters() if each[1].requires_grad]
    zero = engine.optimizer
    find = _slot_in_parts if is_in_parts(engine.module) else _slot_of_whole
    found = [find(zero, name, parameter) for name, parameter in named]
    return [slot for slot in found if slot is not None]


def _slot_of_whole(zero: Any, name: str, parameter: Any) -> Slot | None:
    """Return the slot of ZeRO-1 and 2, in which a process holds an interval of each group."""
    mapping = parameter._hp_mapping  # noqa: SLF001 - there is no public name
    if mapping is None:  # other processes hold all elements
        return None
    own, kept = mapping.lp_fragment_address, mapping.hp_fragment_address
    master = zero.single_partition_of_fp32_groups[mapping.param_group_index]
    return Slot(name, own.start, own.numel, master, kept.start)


def _slot_in_parts(zero: Any, name: str, parameter: Any) -> Slot | None:
    """Return the slot of ZeRO-3, where all shards of a parameter have one size, without padding."""
    group, offset, size = zero.grad_position[zero.get_param_id(parameter)]
    start = torch.distributed.get_rank() * size
    length = min(size, parameter.ds_numel - start)
    master = zero.fp32_partitioned_groups_flat[group]
    return Slot(name, start, length, master, int(offset)) if length > 0 else None
