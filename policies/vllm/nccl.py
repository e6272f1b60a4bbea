"""Connects a trainer with the workers of an engine by NCCL, without a TCP store.

By default, the two sides of vLLM's transfer meet at a TCP store in the trainer's process. The store
demands no credential, and the workers unpickle what they find there. visenv sends NCCL's unique id
through the control connection to the engine instead, which is private or demands a token.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from functools import partial
from typing import Any

import torch

from visenv.private_names import check_private_names

from .job_queue import JobQueue
from .private_names import NCCL_NAMES


def nccl_sender(client: Any, source: Any, workers: int) -> Any:
    """Return vLLM's sender of weights by NCCL, connected to all workers of an engine.

    Args:
        client: Controls the engine's side: `EngineControl` or `ServerControl`.
        source: Provides the weights (vLLM's `WeightSource`).
        workers: Number of receiving processes.

    Raises:
        ConfigurationError: If vLLM lacks a private name that is used here.
        PolicyError: If the engine refuses.
    """
    check_private_names(NCCL_NAMES)
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
    from vllm.distributed.device_communicators.pynccl_wrapper import NCCLLibrary
    from vllm.distributed.weight_transfer.nccl_common import (
        NCCLWeightTransferInitInfo,
        worker_init_payload,
    )
    from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerWeightTransferEngine

    sender = NCCLTrainerWeightTransferEngine(client=client, source=source)
    unique_id = bytes(NCCLLibrary().ncclGetUniqueId())
    information = NCCLWeightTransferInitInfo(
        rank_offset=1,
        world_size=1 + workers,
        nccl_unique_id_b64=base64.b64encode(unique_id).decode(),
        packed=sender.packed,
        packed_buffer_size_bytes=sender.packed_buffer_size_bytes,
        packed_num_buffers=sender.packed_num_buffers,
    )
    join = partial(
        PyNcclCommunicator.from_unique_id_bytes,
        unique_id,
        rank=0,
        world_size=1 + workers,
        device=torch.cuda.current_device(),
    )
    inform = partial(client.init_weight_transfer_engine, worker_init_payload(information))
    _, sender.model_update_group = _together(inform, join)
    return sender


def _together(*functions: Callable[[], Any]) -> list[Any]:
    """Run functions in threads, because they wait for each other; return their results.

    The first error is raised at once. The other threads may then never end, so they are abandoned.
    """
    results: list[Future[Any]] = []
    for function in functions:
        results.append(Future())
        thread = JobQueue("visenv-vllm-nccl")
        thread.put(partial(_settle, results[-1], function))
        thread.stop(0)
    done, _ = wait(results, return_when=FIRST_EXCEPTION)
    for result in done:
        result.result()
    return [result.result() for result in results]


def _settle(result: Future[Any], function: Callable[[], Any]) -> None:
    try:
        result.set_result(function())
    except Exception as error:  # noqa: BLE001 - vLLM and NCCL may raise anything
        result.set_exception(error)
