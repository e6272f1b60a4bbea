"""The private names of PyTorch, accelerate and DeepSpeed that the trainer uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName

_STAGE_2 = "deepspeed.runtime.zero.stage_1_and_2:DeepSpeedZeroOptimizer"
_STAGE_3 = "deepspeed.runtime.zero.stage3:DeepSpeedZeroOptimizer_Stage3"
_OFFLOAD = "deepspeed.runtime.zero.parameter_offload:DeepSpeedZeRoOffload"
_SHARDED = "deepspeed.runtime.zero.partition_parameters:Init"
_ENGINE = "deepspeed.runtime.engine:DeepSpeedEngine"

PROCESS_NAMES: Final = (
    PrivateName(
        "torch.distributed.distributed_c10d:_set_pg_timeout",
        "changes the time-out of a process group that an earlier run has made",
        parameters=("timeout", "group"),
    ),
    PrivateName(
        "accelerate.utils:DeepSpeedPlugin.dschf",
        "removes it, because transformers shards every model that is loaded while it exists",
    ),
)
"""Checked by `Processes`, for every run."""

ZERO_NAMES: Final = (
    PrivateName(
        "accelerate.utils:DeepSpeedPlugin.deepspeed_config",
        "writes the settings of a run into it",
    ),
    PrivateName(
        f"{_STAGE_2}.scaled_global_norm",
        "replaces it, to refuse a ZeRO-2 step whose gradient norm is too large",
    ),
    PrivateName(
        f"{_STAGE_3}._get_norm_groups",
        "replaces it, to refuse a ZeRO-3 step whose gradient norm is too large",
    ),
    PrivateName(f"{_STAGE_2}.loss_scale", "divides the gradient norm by it"),
    PrivateName(f"{_STAGE_3}.loss_scale", "divides the gradient norm by it"),
    PrivateName(f"{_STAGE_3}.parameter_offload", "removes its hooks while the policy samples"),
    PrivateName(f"{_OFFLOAD}.destroy", "removes the hooks that gather and release weights"),
    PrivateName(f"{_OFFLOAD}.forward_hooks", "forgets the hooks that it has removed"),
    PrivateName(f"{_OFFLOAD}.backward_hooks", "forgets the hooks that it has removed"),
    PrivateName(f"{_OFFLOAD}.setup_zero_stage3_hooks", "puts the hooks back after sampling"),
    PrivateName(
        f"{_SHARDED}.ds_active_sub_modules",
        "clears it, because DeepSpeed does not release weights that it takes to be in use",
    ),
    PrivateName(f"{_SHARDED}.ds_id", "recognizes sharded weights by it"),
    PrivateName(
        f"{_ENGINE}.set_gradient_accumulation_boundary",
        "tells DeepSpeed which micro-batch is the last of a step",
        parameters=("is_boundary",),
    ),
    PrivateName(f"{_ENGINE}.optimizer", "reaches the ZeRO optimizer through it"),
    PrivateName(f"{_ENGINE}.destroy", "unwraps the module at the end of a run"),
    PrivateName("deepspeed.utils:logger", "silences the report of a refused step"),
    PrivateName("torch.nn:Module._parameters", "restores plain parameters at the end of a run"),
)
"""Checked by the DeepSpeed backend."""
