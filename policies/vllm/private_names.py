"""Lists the private names of vLLM, PyTorch and transformers that the vLLM policies use.

`ENGINE_NAMES` and `SENDER_NAMES` are those of the process that steps an engine. `WORKER_NAMES` are
those of the processes with the model, which the trainer need not have started.
"""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName, members

_CLIENT = "vllm.v1.engine.core_client:"
_ENGINE = "vllm.v1.engine.llm_engine:LLMEngine."
_LAYERS = "vllm.model_executor.layers."
_PROCESSOR = "vllm.v1.sample.logits_processor"
_TORCH = "torch.distributed.distributed_c10d:"
_TRANSFER = "vllm.distributed.weight_transfer."
_WORKER = "vllm.v1.worker."

WORLD_NAMES: Final = (
    *members(_TORCH, "gives engines process groups of their own", "_world", "_World.pg_map"),
    *members(
        _TORCH + "_World.", "exchanges it while an engine starts", "default_pg", "group_count"
    ),
    PrivateName(_TORCH + "_update_default_pg", "exchanges the default process group", ("pg",)),
)
"""Checked by `EngineProcessGroups`, before an engine starts in this process."""

PROCESSOR_NAMES: Final = (
    *members(f"{_PROCESSOR}:LogitsProcessor.", "overrides it", "apply", "is_argmax_invariant"),
    PrivateName(
        f"{_PROCESSOR}:LogitsProcessor.update_state", "overrides it", parameters=("batch_update",)
    ),
    PrivateName(
        f"{_PROCESSOR}.builtin:process_dict_updates",
        "follows the requests of a batch with it",
        parameters=("req_entries", "batch_update", "new_state"),
    ),
)
"""Checked before `TurnProcessor` is defined."""

WORKER_NAMES: Final = (
    *members(
        _WORKER + "worker_base:WorkerBase.",
        "reads the weights that a worker holds",
        *("model_runner", "model_config", "parallel_config"),
    ),
    PrivateName(_WORKER + "gpu_model_runner:GPUModelRunner.get_model", "sums the model's weights"),
    PrivateName(_WORKER + "gpu_worker:Worker.reload_weights", "loads weights with it"),
    PrivateName(
        _WORKER + "gpu_model_runner:GPUModelRunner.reload_weights",
        "loads weights with it, from tensors or from a folder",
        parameters=("weights_iterator", "weights_path"),
    ),
    PrivateName(
        _WORKER + "lora_model_runner_mixin:LoRAModelRunnerMixin.lora_manager",
        "reads the LoRA adapter that a worker holds",
    ),
    *members(
        "vllm.lora.",
        "reads the LoRA adapter that a worker holds",
        "worker_manager:WorkerLoRAManager._adapter_manager",
        "model_manager:LoRAModelManager.get_adapter",
        "lora_model:LoRAModel.loras",
        "lora_weights:LoRALayerWeights.lora_a",
        "lora_weights:LoRALayerWeights.lora_b",
    ),
    *members(
        _LAYERS,
        "reads weights that the CPU build has packed",
        "linear:UnquantizedLinearMethod.cpu_linear",
        "linear:LinearBase.quant_method",
        "vocab_parallel_embedding:VocabParallelEmbedding.quant_method",
    ),
)
"""Checked by `TurnProcessor`, in every worker."""

ENGINE_NAMES: Final = (
    *members(_ENGINE, "samples with it", "from_engine_args", "add_request", "step", "renderer"),
    PrivateName("vllm.renderers.base:BaseRenderer.render_cmpl", "has images processed by it"),
    PrivateName(_ENGINE + "abort_request", "ends turns with it", ("request_ids", "internal")),
    PrivateName(_ENGINE + "collective_rpc", "calls the workers with it", ("method", "kwargs")),
    *members(
        _ENGINE,
        "forgets what was computed with old weights",
        *("reset_prefix_cache", "reset_encoder_cache", "reset_mm_cache"),
    ),
    *members(_ENGINE, "exchanges LoRA adapters with it", "add_lora", "remove_lora"),
    PrivateName(
        "vllm.lora.request:LoRARequest",
        "names the LoRA adapter that a turn is sampled with",
        parameters=("lora_name", "lora_int_id", "lora_path"),
    ),
    *members(_ENGINE, "releases and takes GPU memory with it", "sleep", "wake_up"),
    PrivateName(_ENGINE + "vllm_config", "reads dtype and devices from it"),
    *members(
        "vllm.config:",
        "reads dtype and devices from it",
        *("VllmConfig.device_config", "DeviceConfig.device_type", "ParallelConfig.world_size"),
    ),
    *members(
        "vllm.v1.engine.",
        "reads what interrupted turns have sampled",
        "llm_engine:LLMEngine.output_processor",
        "output_processor:OutputProcessor.request_states",
        "output_processor:RequestState.prompt_token_ids",
        "output_processor:RequestState.detokenizer",
        "output_processor:RequestState.logprobs_processor",
        "detokenizer:IncrementalDetokenizer.output_token_ids",
        "logprobs:LogprobsProcessor.logprobs",
    ),
    PrivateName("vllm.logprobs:FlatLogprobs.logprobs", "reads log-probabilities from it"),
    PrivateName(_ENGINE + "engine_core", "reaches the engine core through its client"),
    *members(
        _CLIENT,
        "watches and ends the engine's processes",
        *("EngineCoreClient.shutdown", "MPClient.resources", "MPClient.utility_results"),
        "BackgroundResources.engine_dead",
    ),
    PrivateName(
        _CLIENT + "InprocClient._finalizer",
        "detaches it, because it destroys the trainer's process groups",
        since="0.31",
    ),
    PrivateName(
        "vllm.v1.executor.uniproc_executor:UniProcExecutor._distributed_args",
        "overrides it, so that the worker computes on this process's GPU",
    ),
    *members(
        "vllm.v1.",
        "hands weights to the worker in this process, and ends it",
        "engine.core_client:InprocClient.engine_core",
        "engine.core:EngineCore.model_executor",
        "executor.uniproc_executor:UniProcExecutor.driver_worker",
        "executor.uniproc_executor:UniProcExecutor.shutdown",
        "worker.worker_base:WorkerWrapperBase.worker",
    ),
    PrivateName(
        _LAYERS + "rotary_embedding:_ROPE_DICT",
        "empties it, because a broken transfer of weights would spoil the modules it shares",
    ),
    PrivateName(
        "vllm.distributed.parallel_state:GroupCoordinator",
        "recognizes by it what vLLM must forget when its process groups end",
    ),
    *PROCESSOR_NAMES,
)
"""Checked by `Engine` before it starts."""

SENDER_NAMES: Final = (
    PrivateName(
        _TRANSFER + "factory:WeightTransferTrainerFactory.trainer_init",
        "connects to the engine with it",
        parameters=("client", "source"),
    ),
    *members(
        _TRANSFER + "base:",
        "describes and sends weights with it",
        *("ParamMeta", "TrainerWeightTransferEngine.send_weights"),
    ),
    PrivateName(
        _TRANSFER + "ipc_engine:IPCTrainerInitInfo", "connects over CUDA IPC", ("rank", "packed")
    ),
    PrivateName(
        _TRANSFER + "ipc_engine:IPCWeightTransferUpdateInfo",
        "tells a server the handles of GPU memory",
        parameters=("ipc_handles", "ipc_handles_pickled"),
    ),
)
"""Checked if weights are sent by ``ipc`` or ``nccl``; vLLM 0.28 or newer has them."""

NCCL_NAMES: Final = (
    PrivateName(
        _TRANSFER + "nccl_engine:NCCLTrainerWeightTransferEngine",
        "sends weights over NCCL with it",
        parameters=("client", "source"),
    ),
    *members(
        _TRANSFER + "nccl_engine:NCCLTrainerWeightTransferEngine.",
        "connects it without a TCP store",
        *("model_update_group", "packed", "packed_buffer_size_bytes", "packed_num_buffers"),
    ),
    PrivateName(
        _TRANSFER + "nccl_common:NCCLWeightTransferInitInfo",
        "tells the workers NCCL's unique id",
        parameters=(
            *("rank_offset", "world_size", "nccl_unique_id_b64"),
            *("packed", "packed_buffer_size_bytes", "packed_num_buffers"),
        ),
    ),
    PrivateName(_TRANSFER + "nccl_common:worker_init_payload", "tells the workers the unique id"),
    PrivateName(
        "vllm.distributed.device_communicators.pynccl:PyNcclCommunicator.from_unique_id_bytes",
        "joins the workers with it",
        parameters=("rank", "world_size", "device"),
    ),
    PrivateName(
        "vllm.distributed.device_communicators.pynccl_wrapper:NCCLLibrary.ncclGetUniqueId",
        "makes the unique id with it",
    ),
)
"""Checked before a connection by NCCL."""

SERVER_NAMES: Final = (PrivateName("vllm.entrypoints.openai.api_server", "runs it as the server"),)
"""Checked in the process of `VLLMServer`."""

VIDEO_NAMES: Final = (
    PrivateName(
        "vllm.multimodal.video:VIDEO_LOADER_REGISTRY",
        "registers a loader of videos, whose frames and times a server then takes as they are",
    ),
)
"""Checked when the loader is registered, in the process of a server."""

IMAGE_NAMES: Final = (
    PrivateName(
        "transformers.models.qwen2_vl.image_processing_qwen2_vl:smart_resize",
        "computes how many tokens an image takes with it",
        parameters=("height", "width", "factor", "min_pixels", "max_pixels"),
    ),
)
"""Checked by `ImageMeter`."""
