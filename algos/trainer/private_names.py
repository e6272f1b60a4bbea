"""Lists the private names of PyTorch, accelerate and DeepSpeed that the trainer uses."""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName, members

_ZERO = "deepspeed.runtime.zero."
_ENGINE = "deepspeed.runtime.engine:DeepSpeedEngine."

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
"""Names that `DistributedContext` checks in every run."""

LAUNCHER_NAMES: Final = (
    PrivateName(
        "torch.distributed.launcher.api:LaunchConfig",
        "starts the processes of a run",
        parameters=(
            *("min_nodes", "max_nodes", "nproc_per_node", "run_id"),
            *("rdzv_backend", "rdzv_endpoint", "max_restarts"),
        ),
    ),
    PrivateName("torch.distributed.launcher.api:elastic_launch", "starts the processes of a run"),
    PrivateName(
        "torch.distributed.elastic.multiprocessing:SignalException", "ends when a signal arrives"
    ),
    PrivateName(
        "torch.distributed.elastic.multiprocessing.errors:ChildFailedError",
        "ends with the status of the process that failed",
    ),
)
"""Names that `launch` checks before it starts several processes."""

KERNEL_NAMES: Final = (
    PrivateName(
        "deepspeed.comm.torch:build_shm_op",
        "replaces it, because the compiled kernel is only used by DeepSpeed's inference on CPUs",
    ),
)
"""Names that `DistributedContext` checks if DeepSpeed trains on CPUs."""

LOCK_NAMES: Final = (
    PrivateName(
        "torch.utils.cpp_extension:get_default_build_root",
        "finds the locks of interrupted compilations in this folder",
    ),
)
"""Names that `clear_stale_locks` checks."""

TRACKER_NAMES: Final = members(
    "accelerate.tracking:",
    "sends metrics and example episodes to a tracker",
    "GeneralTracker",
    "MLflowTracker",
    "TensorBoardTracker",
    "TrackioTracker",
    "WandBTracker",
)
"""Names that `check_trackers` checks when a trainer is created."""

ZERO_NAMES: Final = (
    PrivateName(
        "accelerate.utils:DeepSpeedPlugin.deepspeed_config", "writes the settings of a run into it"
    ),
    *members(
        _ZERO,
        "replaces it, to refuse a step whose gradient norm is too large",
        "stage_1_and_2:DeepSpeedZeroOptimizer.scaled_global_norm",
        "stage3:DeepSpeedZeroOptimizer_Stage3._get_norm_groups",
    ),
    *members(
        _ZERO,
        "divides the gradient norm by it",
        "stage_1_and_2:DeepSpeedZeroOptimizer.loss_scale",
        "stage3:DeepSpeedZeroOptimizer_Stage3.loss_scale",
    ),
    *members(
        _ZERO,
        "keeps the weights gathered while the policy samples",
        "stage3:DeepSpeedZeroOptimizer_Stage3.parameter_offload",
        "parameter_offload:DeepSpeedZeRoOffload.destroy",
        "parameter_offload:DeepSpeedZeRoOffload.forward_hooks",
        "parameter_offload:DeepSpeedZeRoOffload.backward_hooks",
        "parameter_offload:DeepSpeedZeRoOffload.setup_zero_stage3_hooks",
        "partition_parameters:Init.ds_active_sub_modules",
    ),
    *members(
        _ZERO,
        "finds the optimizer's state of each parameter, for checkpoints",
        "stage_1_and_2:DeepSpeedZeroOptimizer._hp_mapping",
        "stage_1_and_2:DeepSpeedZeroOptimizer.single_partition_of_fp32_groups",
        "stage3:DeepSpeedZeroOptimizer_Stage3.fp32_partitioned_groups_flat",
        "stage3:DeepSpeedZeroOptimizer_Stage3.grad_position",
        "stage3:DeepSpeedZeroOptimizer_Stage3.get_param_id",
        "stage3:DeepSpeedZeroOptimizer_Stage3.checkpoint_event_prologue",
        "stage3:DeepSpeedZeroOptimizer_Stage3.checkpoint_event_epilogue",
    ),
    *members(
        "deepspeed.utils.tensor_fragment:",
        "finds the optimizer's state of each parameter, for checkpoints",
        *("tensor_fragment.lp_fragment_address", "tensor_fragment.hp_fragment_address"),
        *("tensor_fragment.param_group_index", "fragment_address.start", "fragment_address.numel"),
    ),
    PrivateName(_ZERO + "partition_parameters:Init.ds_id", "recognizes sharded weights by it"),
    PrivateName(
        _ENGINE + "set_gradient_accumulation_boundary",
        "tells DeepSpeed which micro-batch is the last of a step",
        parameters=("is_boundary",),
    ),
    PrivateName(_ENGINE + "optimizer", "reaches the ZeRO optimizer through it"),
    PrivateName(_ENGINE + "destroy", "unwraps the module at the end of a run"),
    PrivateName("deepspeed.utils:logger", "silences the report of a refused step"),
    PrivateName("torch.nn:Module._parameters", "restores plain parameters at the end of a run"),
)
"""Names that the DeepSpeed backend checks."""
