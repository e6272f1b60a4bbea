"""Defines the settings of an engine, in this process or in a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from visenv.errors import ConfigurationError

from ..tokens.codec import Codec
from ..tokens.config import read_config
from ..tokens.family import VideoMode
from .images import ImageMeter

PROCESSOR = "visenv.policies.vllm.processor:TurnProcessor"
EXTENSION = "visenv.policies.vllm.worker.WeightSums"

_DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Holds the options of every engine that visenv starts.

    Attributes:
        model: A checkpoint folder or a hub name.
        dtype: Type of the weights: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        max_batch: Maximum number of turns that are sampled at the same time.
        context: Maximum number of tokens in a conversation; None is the checkpoint's own limit.
        max_images: Maximum number of images in a conversation, including frames of videos that are
            shown as images.
        max_videos: Maximum number of videos in a conversation that are shown natively.
        min_pixels: Smaller images are enlarged to this; None keeps the checkpoint's own limit.
        max_pixels: Larger images are shrunk to this; None keeps the checkpoint's own limit.
        video: How videos are shown: ``"native"`` or ``"frames"``; None is native if the checkpoint
            supports it, otherwise frames.
        sleep_level: What `sleep` does with a GPU's memory: 0 keeps it, 1 moves the weights to the
            CPU, 2 drops them, so that they must be loaded again. vLLM's CPU build always keeps it.
        options: Further arguments of vLLM's `EngineArgs`, which override those of visenv.
    """

    model: str | Path
    dtype: str = "float32"
    max_batch: int = 128
    context: int | None = None
    max_images: int = 8
    max_videos: int = 4
    min_pixels: int | None = None
    max_pixels: int | None = None
    video: VideoMode | None = None
    sleep_level: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise ConfigurationError(f"dtype must be one of {_DTYPES}, got {self.dtype!r}.")
        if self.sleep_level not in (0, 1, 2):
            raise ConfigurationError(f"sleep_level must be 0, 1 or 2, got {self.sleep_level}.")

    def codec(self) -> Codec:
        """Return the codec.

        It computes the sizes of images without processing them for Qwen-VL; for other families, it
        runs the processor.

        Raises:
            RunError: If there is no such checkpoint.
            PolicyError: If the checkpoint is not supported; the message says why.
        """
        rows = read_config(self.model).text_config.vocab_size
        return Codec(
            str(self.model),
            rows,
            self.min_pixels,
            self.max_pixels,
            self.video,
            image_encoder=ImageMeter,
        )

    def arguments(self, codec: Codec, transfer: str) -> dict[str, Any]:
        """Return the arguments of vLLM's `EngineArgs`.

        Args:
            codec: The codec of the same settings.
            transfer: How weights will be sent; see `transfer`.
        """
        text = read_config(self.model).text_config
        videos = self.max_videos if codec.family.takes_videos else 0
        given: dict[str, Any] = {
            "model": str(self.model),
            "dtype": self.dtype,
            "max_model_len": self.context or text.max_position_embeddings,
            "max_num_seqs": self.max_batch,
            "limit_mm_per_prompt": {"image": self.max_images, "video": videos},
            "logits_processors": [PROCESSOR],
            "logprobs_mode": "processed_logprobs",
            "worker_extension_cls": EXTENSION,
            "enable_prefix_caching": True,
            "disable_log_stats": True,
        }
        processing: dict[str, Any] = {"do_sample_frames": False} if videos else {}
        if self.min_pixels is not None or self.max_pixels is not None:
            limits = {"size": dict(codec.processor.image_processor.size)}
            # As top-level values, they would also apply to videos.
            processing |= {"images_kwargs": limits} if videos else limits
        if processing:
            given["mm_processor_kwargs"] = processing
        if transfer in ("ipc", "nccl"):
            given["weight_transfer_config"] = {"backend": transfer}
        if torch.cuda.is_available():
            given["enable_sleep_mode"] = self.sleep_level > 0
        else:
            # Compiling for a CPU takes minutes; one GiB suffices for the models that a CPU can
            # sample.
            given |= {"enforce_eager": True, "kv_cache_memory_bytes": 2**30}
        return given | dict(self.options)


def as_flags(arguments: Mapping[str, Any]) -> list[str]:
    """Return the arguments of `EngineArgs` as flags of vLLM's command line."""
    flags: list[str] = []
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            flags.append(flag if value else "--no-" + flag[2:])
        elif isinstance(value, list):
            flags += [flag, *map(str, value)]
        else:
            flags += [flag, json.dumps(value) if isinstance(value, dict) else str(value)]
    return flags
