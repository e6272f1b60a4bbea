"""Defines `VLLMPolicy`: vLLM in this process or a child of it, with weights from a trainer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import Adapter

from ..tokens.family import VideoMode
from . import launch
from .adapter import arguments as adapter_arguments
from .rules import share
from .sampler import RestartableSampler
from .settings import EngineSettings
from .thread import EngineThread
from .transfer import is_inside, is_split, own_arguments, resolve
from .weights import WeightUpdate


class VLLMPolicy(RestartableSampler[EngineThread]):
    """Samples from a checkpoint of any family that vLLM supports, with vLLM's engine.

    Turns are batched continuously, so that episodes do not wait for each other. Keys and values of
    shared prefixes are cached (prefix caching), and images are processed once by their hash. The
    sampled distribution and the recorded log-probabilities are those of `TransformersPolicy` with
    the same weights, up to rounding.

    An engine that died is restarted for the next turn. If weights had been sent to it, it is
    restarted for the next `load`: until then `stale` is True, and turns are refused.

    Args:
        model: A checkpoint folder or a hub name.
        dtype: Type of the weights: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        max_batch: Maximum number of turns that are sampled at the same time.
        context: Maximum number of tokens in a conversation; None is the checkpoint's own limit.
        max_images: Maximum number of images in a conversation, including frames of videos that are
            shown as images.
        max_videos: Maximum number of videos in a conversation that are shown natively.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit.
        video: See `TransformersPolicy`.
        transfer: How weights are sent to the engine: ``"direct"``, ``"ipc"``, ``"nccl"``,
            ``"folder"`` (see `transfer`). ``"auto"`` is direct for an engine in this process,
            otherwise ipc with a GPU and folder without one.
        sleep_level: See `EngineSettings`.
        timeout: Maximum number of seconds of one step of the engine.
        transfer_timeout: Maximum number of seconds of a weight transfer.
        lora_rank: Rank of the LoRA adapters that a trainer sends instead of merged weights; None
            expects merged weights.
        options: Further arguments of vLLM's `EngineArgs`, which override those of visenv.

    If several processes are launched (``accelerate launch``), each makes its own engine on the GPU
    of its local rank, before or after the trainer initializes its process group.

    Attributes:
        codec: Converts between messages and tokens.
        manifest: Names and shapes of the weights that `load` expects.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If its architecture, tokenizer or chat template is not supported, or vLLM does
            not start with it; the message says why.
        ConfigurationError: If an option has an invalid value.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        dtype: str = "float32",
        max_batch: int = 128,
        context: int | None = None,
        max_images: int = 8,
        max_videos: int = 4,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        video: VideoMode | None = None,
        transfer: str = "auto",
        sleep_level: int = 2,
        timeout: float = 300.0,
        transfer_timeout: float = 600.0,
        lora_rank: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        settings = EngineSettings(
            model=model,
            dtype=dtype,
            max_batch=max_batch,
            context=context,
            max_images=max_images,
            max_videos=max_videos,
            min_pixels=min_pixels,
            max_pixels=max_pixels,
            video=video,
            sleep_level=sleep_level,
            options=options or {},
        )
        on_cpu, split = not torch.cuda.is_available(), is_split(settings.options)
        launch.prepare(on_cpu, inside=not split)
        transfer = resolve(transfer, settings.options)
        launch.prepare(on_cpu, ipc=transfer == "ipc")
        if not is_inside(settings.options):
            launch.prepare_queues()
        codec = settings.codec()
        super().__init__(str(model), codec, max_images, max_videos, patience=min(1.0, timeout))
        arguments = own_arguments(settings.options) | settings.arguments(codec, transfer)
        self.takes_adapters = lora_rank is not None
        if lora_rank is not None:
            arguments |= adapter_arguments(lora_rank)
        share(str(model), self.rules)
        gpu = None if split else launch.own_gpu()
        build = partial(_engine, arguments, codec.end_id, transfer, sleep_level, gpu)
        tokens = arguments["max_model_len"]
        self._gpu = gpu
        self._new = partial(EngineThread, build, tokens, timeout, transfer_timeout)
        self._start()

    @override
    def load_adapter(
        self,
        adapter: Adapter,
        version: int,
        weights: Iterable[tuple[str, torch.Tensor]] | None = None,
    ) -> None:
        client = self._alive(restart=True)
        if weights is None and (client.stale or not self._loaded):
            raise PolicyError(
                "The engine lacks the weights that the adapter changes: pass weights to "
                "load_adapter."
            )
        delivery = None if weights is None else self._delivery(weights)
        self._loaded = True
        client.load_adapter(adapter, version, delivery)
        self.version = version

    @override
    def _begin(self, previous: EngineThread | None) -> EngineThread:
        if self._gpu is not None and previous is not None and previous.left_behind:
            raise PolicyError(
                "An engine hangs in this process and holds its GPU memory until the process ends, "
                "so no other engine can be started: start the run again with resume. An engine in "
                "a process of its own (VLLM_ENABLE_V1_MULTIPROCESSING=1) can be killed."
            )
        return self._new()

    @override
    def _is_dead(self) -> bool:
        with suppress(PolicyError):
            self._present.check()
        return self._present.dead is not None

    @override
    def _delivery(self, weights: Iterable[tuple[str, torch.Tensor]]) -> WeightUpdate:
        engine = self._present.engine
        return self.manifest.deliver(weights, engine.dtype, engine.packs)


def _engine(
    arguments: Mapping[str, Any], end_id: int, transfer: str, sleep_level: int, gpu: int | None
) -> Any:
    from .engine import Engine

    return Engine(arguments, end_id, transfer, sleep_level, gpu)
