"""Modules that DeepSpeed holds in parts (ZeRO-3): taken over, and given back as they were found."""

from __future__ import annotations

from typing import Any

import deepspeed
import torch


class PartedModule:
    """A module that DeepSpeed is about to take over, to be given back as it was found.

    Args:
        module: The module; its weights are whole, or in parts already.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._was_in_parts = is_in_parts(module)

    def release(self, engine: Any) -> None:
        """End DeepSpeed's engine, and make its weights what they were: whole, or in parts.

        Whole weights wait in main memory until the engine has given its own back.
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
    """Return whether DeepSpeed holds the weights of a module in parts."""
    return any(hasattr(parameter, "ds_id") for parameter in module.parameters())


def _restore(module: torch.nn.Module, plain: dict[int, torch.nn.Parameter]) -> None:
    """Put plain dictionaries and, where there are some, plain parameters in place of DeepSpeed's.

    What was one object stays one.
    """
    for part in module.modules():
        part._parameters = {  # noqa: SLF001 - DeepSpeed replaced it
            name: None if old is None else plain.get(id(old), old)
            for name, old in part._parameters.items()  # noqa: SLF001
        }


def frozen_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return DeepSpeed's configuration of a frozen module, made from that of the trained one."""
    zero = config["zero_optimization"]
    kept = {name: zero[name] for name in ("stage", "offload_param") if name in zero}
    return {
        "train_micro_batch_size_per_gpu": 1,
        "bf16": dict(config.get("bf16", {"enabled": False})),
        # No weight stays whole: `load_weights` writes into the parts.
        "zero_optimization": {**kept, "stage3_param_persistence_threshold": 0},
    }
