"""Loads and saves processors; those of Qwen-VL with or without torchvision.

The stock processors of transformers require a video processor, which only exists with torchvision,
and the CUDA build of torchvision does not work with a CPU build of torch. Without torchvision, this
module uses the stock class without its video part. Saved processors name the stock classes, so that
any machine can load them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import transformers
from transformers import ProcessorMixin
from transformers.utils.import_utils import is_torchvision_available

from visenv.disk import disk_errors
from visenv.errors import ConfigurationError, PolicyError
from visenv.pretrained import load_pretrained

from .config import needs_own_code, read_config

_TOKENS = {
    "image": "<|image_pad|>",
    "video": "<|video_pad|>",
    "vision_start": "<|vision_start|>",
    "vision_end": "<|vision_end|>",
}
_VIDEO_PROCESSORS = {
    "qwen2_5_vl": {"video_processor_type": "Qwen2VLVideoProcessor", "do_sample_frames": False},
    "qwen3_vl": {
        "video_processor_type": "Qwen3VLVideoProcessor",
        "do_sample_frames": True,
        "fps": 2,
    },
}


_WITHOUT_VIDEO = ("Qwen2_5_VLProcessor", "Qwen3VLProcessor")
"""The processors that this module may have loaded without their video part."""


def load_processor(name: str) -> Any:
    """Return the processor of a folder or a hub name.

    Raises:
        FileRefusedError: If the folder contains a pipe, a device or a socket.
        RunError: If there is no readable configuration.
        PolicyError: If the architecture of the model is not supported, or it has no processor of
            texts and images.
    """
    model_type = read_config(name).model_type
    own = not is_torchvision_available() and model_type in _VIDEO_PROCESSORS
    try:
        loaded = load_pretrained(
            processor_class(model_type) if own else transformers.AutoProcessor, name
        )
    except ConfigurationError:  # a ValueError that is not about the processor
        raise
    except (OSError, ValueError, AttributeError) as error:  # a tokenizer may lack a named token
        reason = str(error).partition(". ")[0]
        if needs_own_code(error):
            reason = "it needs Python files of its own, which visenv never runs"
        raise PolicyError(f"The processor of {name} cannot be loaded: {reason}.") from error
    for part in ("tokenizer", "image_processor"):
        if not hasattr(loaded, part):
            raise PolicyError(
                f"{name} has a {type(loaded).__name__}, but no processor with a {part}. Copy the "
                "processor of its model into the folder."
            )
    return loaded


def save_processor(processor: Any, folder: Path) -> None:
    """Save a processor such that stock `AutoProcessor` can load the folder.

    Raises:
        DiskError: If the disk is full or fails.
    """
    with disk_errors(folder):
        _save_processor(processor, folder)


def _save_processor(processor: Any, folder: Path) -> None:
    processor.save_pretrained(folder)
    file = folder / "processor_config.json"
    config = json.loads(file.read_text())
    if "video_processor" not in config and type(processor).__name__ in _WITHOUT_VIDEO:
        video = dict(config["image_processor"])
        del video["image_processor_type"]
        model_type = "qwen3_vl" if "Qwen3" in type(processor).__name__ else "qwen2_5_vl"
        limits = {"min_frames": 4, "max_frames": 768, "return_metadata": False}
        config["video_processor"] = video | limits | _VIDEO_PROCESSORS[model_type]
        file.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def processor_class(model_type: str) -> Any:
    """Return the stock processor class of an architecture, without its video processor.

    Raises:
        PolicyError: If the architecture of the model is not supported.
    """
    stock: dict[str, Any] = {
        "qwen2_5_vl": transformers.Qwen2_5_VLProcessor,
        "qwen3_vl": transformers.Qwen3VLProcessor,
    }
    if model_type not in stock:
        raise PolicyError(
            f"Models of type {model_type!r} are not supported; known are {sorted(stock)}."
        )
    return _without_video(stock[model_type])


def _without_video(stock: Any) -> Any:
    class ImageOnly(stock):  # type: ignore[misc]
        # ProcessorMixin reads the names of the parts from this signature.
        def __init__(
            self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None
        ) -> None:
            for name, token in _TOKENS.items():
                setattr(self, f"{name}_token", token)
                setattr(self, f"{name}_token_id", tokenizer.convert_tokens_to_ids(token))
            ProcessorMixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    ImageOnly.__name__ = stock.__name__  # save_pretrained writes this name
    return ImageOnly
