"""Reading and writing checkpoints of transformers models."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers

from visenv.errors import RunError


def load_model(name: str, dtype: torch.dtype, attention: str) -> Any:
    """A model for images and text, from a folder or the hub.

    Args:
        name: A folder or a hub name.
        dtype: Of the weights.
        attention: Implementation for the language model; the vision tower keeps PyTorch's own.

    Raises:
        RunError: If there is no checkpoint that can be read.
    """
    try:
        with _quiet():
            return transformers.AutoModelForImageTextToText.from_pretrained(
                name,
                dtype=dtype,
                attn_implementation={"text_config": attention, "vision_config": "sdpa"},
            )
    except (OSError, ValueError) as error:
        raise RunError(f"There is no model to load at {name}: {error}") from error


def restore(model: Any, folder: Path) -> None:
    """Read a checkpoint's weights into a model.

    Raises:
        RunError: If the folder holds no checkpoint, or one of another model.
    """
    other = load_model(str(folder), model.dtype, "sdpa")
    weights = other.state_dict()
    shapes = {name: weight.shape for name, weight in weights.items()}
    if shapes != {name: weight.shape for name, weight in model.state_dict().items()}:
        raise RunError(
            f"{folder} holds the weights of {describe(other)}; this policy is {describe(model)}. "
            "Name a checkpoint of the same model."
        )
    model.load_state_dict(weights)


def describe(model: Any) -> str:
    """The model in words: its type and what its size is made of."""
    text = model.config.text_config
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    return (
        f"a {model.config.model_type} of {millions:.2f} M parameters ({text.num_hidden_layers} "
        f"layers, width {text.hidden_size}, vocabulary {text.vocab_size})"
    )


def save_model(model: Any, folder: Path) -> None:
    """Write weights (safetensors) and configuration."""
    with _quiet():
        model.save_pretrained(folder)


def frozen(model: Any) -> Any:
    """A copy with the present weights, not to be trained."""
    return copy.deepcopy(model).requires_grad_(requires_grad=False).eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars of transformers: we show our own."""
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()
