"""The private names of vLLM, PyTorch and transformers that the vLLM policies use.

`ENGINE_NAMES` and `SENDER_NAMES` are those of the process that steps an engine, `WORKER_NAMES`
those of the processes that hold the model, whoever has started them.
"""

from __future__ import annotations

from typing import Final

from visenv.private_names import PrivateName

_CLIENT = "vllm.v1.engine.core_client"
_ENGINE = "vllm.v1.engine.llm_engine:LLMEngine"
_LAYERS = "vllm.model_executor.layers"
_STATE = "vllm.v1.engine.output_processor:RequestState"
_TORCH = "torch.distributed.distributed_c10d"
_TRANSFER = "vllm.distributed.weight_transfer"

WORLD_NAMES: Final = (
    PrivateName(f"{_TORCH}:_world", "gives engines process groups of their own through it"),
    PrivateName(f"{_TORCH}:_World.pg_map", "finds the process groups that vLLM has made"),
    PrivateName(f"{_TORCH}:_World.default_pg", "exchanges it while an engine starts"),
    PrivateName(f"{_TORCH}:_World.group_count", "exchanges it while an engine starts"),
    PrivateName(
        f"{_TORCH}:_update_default_pg",
        "exchanges the default process group while an engine starts",
        parameters=("pg",),
    ),
)
"""Checked by `World`, before an engine starts in this process."""

PROCESSOR_NAMES: Final = (
    PrivateName("vllm.v1.sample.logits_processor:LogitsProcessor.apply", "masks logits in it"),
    PrivateName(
        "vllm.v1.sample.logits_processor:LogitsProcessor.update_state",
        "follows the requests of a batch in it",
        parameters=("batch_update",),
    ),
    PrivateName(
        "vllm.v1.sample.logits_processor:LogitsProcessor.is_argmax_invariant",
        "says in it that greedy sampling is masked too",
    ),
    PrivateName(
        "vllm.v1.sample.logits_processor.builtin:process_dict_updates",
        "follows the requests of a batch with it",
        parameters=("req_entries", "batch_update", "new_state"),
    ),
)
"""Checked before `TurnProcessor` is defined."""

WORKER_NAMES: Final = (
    PrivateName("vllm.v1.worker.worker_base:WorkerBase.model_runner", "reads weights through it"),
    PrivateName("vllm.v1.worker.worker_base:WorkerBase.model_config", "reads the dtype from it"),
    PrivateName("vllm.v1.worker.worker_base:WorkerBase.parallel_config", "reads the size from it"),
    PrivateName("vllm.config:ParallelConfig.world_size", "tells split weights from whole ones"),
    PrivateName("vllm.v1.worker.gpu_model_runner:GPUModelRunner.get_model", "sums its weights"),
    PrivateName(
        "vllm.v1.worker.gpu_worker:Worker.reload_weights",
        "loads weights with it, from tensors or from a folder",
    ),
    PrivateName(
        "vllm.v1.worker.gpu_model_runner:GPUModelRunner.reload_weights",
        "loads weights with it, from tensors or from a folder",
        parameters=("weights_iterator", "weights_path"),
    ),
    PrivateName(
        f"{_LAYERS}.linear:UnquantizedLinearMethod.cpu_linear",
        "recognizes weights that the CPU build has packed by it",
    ),
    PrivateName(f"{_LAYERS}.linear:LinearBase.quant_method", "multiplies by packed weights"),
    PrivateName(
        f"{_LAYERS}.vocab_parallel_embedding:VocabParallelEmbedding.quant_method",
        "multiplies by the packed weights of a head",
    ),
)
"""Checked by `TurnProcessor`, in every worker."""

ENGINE_NAMES: Final = (
    PrivateName(f"{_ENGINE}.from_engine_args", "makes the engine"),
    PrivateName(f"{_ENGINE}.step", "samples with it"),
    PrivateName(f"{_ENGINE}.renderer", "has images processed by it"),
    PrivateName("vllm.renderers.base:BaseRenderer.render_cmpl", "has images processed by it"),
    PrivateName(f"{_ENGINE}.add_request", "adds turns with it"),
    PrivateName(
        f"{_ENGINE}.abort_request", "ends turns with it", parameters=("request_ids", "internal")
    ),
    PrivateName(f"{_ENGINE}.vllm_config", "reads dtype and device from it"),
    PrivateName("vllm.config:VllmConfig.device_config", "reads the kind of device from it"),
    PrivateName("vllm.config:DeviceConfig.device_type", "reads the kind of device from it"),
    PrivateName("vllm.config:ParallelConfig.world_size", "tells split weights from whole ones"),
    PrivateName(
        f"{_ENGINE}.collective_rpc", "calls the workers with it", parameters=("method", "kwargs")
    ),
    PrivateName(f"{_ENGINE}.reset_prefix_cache", "forgets the keys and values of old weights"),
    PrivateName(f"{_ENGINE}.reset_encoder_cache", "forgets the image features of old weights"),
    PrivateName(f"{_ENGINE}.reset_mm_cache", "empties the cache of processed images"),
    PrivateName(f"{_ENGINE}.sleep", "releases GPU memory with it", parameters=("level",)),
    PrivateName(f"{_ENGINE}.wake_up", "takes GPU memory again with it"),
    PrivateName(f"{_ENGINE}.output_processor", "reads what interrupted turns have sampled"),
    PrivateName(
        "vllm.v1.engine.output_processor:OutputProcessor.request_states",
        "reads what interrupted turns have sampled",
    ),
    PrivateName(f"{_STATE}.prompt_token_ids", "reads the prompt of an interrupted turn"),
    PrivateName(f"{_STATE}.detokenizer", "reads the tokens of an interrupted turn"),
    PrivateName(
        "vllm.v1.engine.detokenizer:IncrementalDetokenizer.output_token_ids",
        "reads the tokens of an interrupted turn",
    ),
    PrivateName(f"{_STATE}.logprobs_processor", "reads the log-probabilities of such a turn"),
    PrivateName(
        "vllm.v1.engine.logprobs:LogprobsProcessor.logprobs",
        "reads the log-probabilities of an interrupted turn",
    ),
    PrivateName("vllm.logprobs:FlatLogprobs.logprobs", "reads the log-probabilities of a turn"),
    PrivateName(f"{_ENGINE}.engine_core", "reaches the engine core through its client"),
    PrivateName(f"{_CLIENT}:EngineCoreClient.shutdown", "ends the engine's processes"),
    PrivateName(f"{_CLIENT}:MPClient.resources", "asks whether the engine's process has ended"),
    PrivateName(
        f"{_CLIENT}:BackgroundResources.engine_dead", "asks whether the engine's process has ended"
    ),
    PrivateName(f"{_CLIENT}:InprocClient.engine_core", "reaches an engine core in this process"),
    PrivateName(
        f"{_CLIENT}:InprocClient._finalizer",
        "detaches it, because it destroys the trainer's process groups",
        since="0.31",
    ),
    PrivateName("vllm.v1.engine.core:EngineCore.model_executor", "reaches the worker through it"),
    PrivateName(
        "vllm.v1.executor.uniproc_executor:UniProcExecutor.driver_worker",
        "hands weights to the worker in this process",
    ),
    PrivateName(
        "vllm.v1.executor.uniproc_executor:UniProcExecutor._distributed_args",
        "overrides it, so that the worker computes on this process's GPU",
    ),
    PrivateName("vllm.v1.executor.uniproc_executor:UniProcExecutor.shutdown", "ends the worker"),
    PrivateName(
        "vllm.v1.worker.worker_base:WorkerWrapperBase.worker",
        "hands weights to the worker in this process",
    ),
    PrivateName(
        f"{_LAYERS}.rotary_embedding:_ROPE_DICT",
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
        f"{_TRANSFER}.factory:WeightTransferTrainerFactory.trainer_init",
        "connects to the engine with it",
        parameters=("client", "source"),
    ),
    PrivateName(
        f"{_TRANSFER}.base:TrainerWeightTransferEngine.send_weights", "sends weights with it"
    ),
    PrivateName(f"{_TRANSFER}.base:ParamMeta", "describes weights by it"),
    PrivateName(
        f"{_TRANSFER}.ipc_engine:IPCTrainerInitInfo",
        "connects over CUDA IPC with it",
        parameters=("rank", "packed"),
    ),
    PrivateName(
        f"{_TRANSFER}.nccl_engine:NCCLTrainerInitInfo",
        "connects over NCCL with it",
        parameters=("master_address", "master_port", "world_size", "rank"),
    ),
    PrivateName(
        f"{_TRANSFER}.clients:HTTPVLLMWeightSyncClient",
        "tells a server about weights with it",
        parameters=("base_url", "timeout"),
    ),
)
"""Checked where weights are sent by ``ipc`` or ``nccl``: vLLM 0.28 or newer has them."""

SERVER_NAMES: Final = (
    PrivateName("vllm.entrypoints.openai.api_server", "runs it as the server"),
    *PROCESSOR_NAMES,
)
"""Checked in the process of `VLLMServer`."""

IMAGE_NAMES: Final = (
    PrivateName(
        "transformers.models.qwen2_vl.image_processing_qwen2_vl:smart_resize",
        "computes how many tokens an image takes with it",
        parameters=("height", "width", "factor", "min_pixels", "max_pixels"),
    ),
)
"""Checked by `ImageMeter`."""
