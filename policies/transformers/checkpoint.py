"""Reads and writes checkpoints of transformers models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open

from visenv.checksums import check_checksums
from visenv.decoding.files import check_folder
from visenv.disk import disk_errors
from visenv.errors import ConfigurationError, RunError
from visenv.files import check_no_links_in, output_folder
from visenv.garbage import heavy_imports
from visenv.policy import no_gather
from visenv.pretrained import load_pretrained
from visenv.private_names import check_private_names

from ..tokens.config import read_config
from . import lora, shards
from .attention import WINDOWS
from .private_names import MODEL_NAMES

ADAPTER = "adapter"
"""Name of the folder of the adapters inside a checkpoint."""


@heavy_imports()  # of the modules of the architecture
def load_model(name: str, dtype: torch.dtype, attention: str, *, sharded: bool = False) -> Any:
    """Return a vision-language model from a folder or the hub.

    Args:
        name: A folder or a hub name.
        dtype: Type of the weights.
        attention: Implementation for the language model of Qwen-VL, whose vision tower uses
            `WINDOWS`. Other models use the implementation that transformers chooses.
        sharded: Whether each process has a shard of every weight, also during loading.

    Raises:
        RunError: If there is no readable checkpoint, or a file differs from its checksum.
        PolicyError: If the architecture is not supported, or the model has no vision.
        ConfigurationError: If transformers lacks a private name that is used for this architecture.
    """
    try:
        check_folder(name)
        check_checksums(Path(name))
        with _quiet(), shards.in_shards(dtype) if sharded else nullcontext():
            config = read_config(name)
            check_private_names(MODEL_NAMES.get(config.model_type, ()))
            own = {"text_config": attention, "vision_config": "sdpa"}
            model: Any = load_pretrained(
                transformers.AutoModelForImageTextToText,
                name,
                dtype=dtype,
                **({"attn_implementation": own} if config.model_type in MODEL_NAMES else {}),
            )
    except ConfigurationError:  # a ValueError that is not about the checkpoint
        raise
    except (OSError, ValueError, SafetensorError) as error:
        broken = _broken_weights(Path(name))
        raise RunError(f"There is no model to load at {name}: {broken or error}") from error
    # Set after loading: while it loads a model, transformers searches for the package of an
    # implementation that it considers to be flash attention.
    if config.model_type in MODEL_NAMES:
        model.model.visual.config._attn_implementation = WINDOWS  # noqa: SLF001
    return model


def _broken_weights(folder: Path) -> str:
    """Return a sentence about the first file of weights that cannot be opened, or ``""``."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt"):
                pass
        except (OSError, SafetensorError) as error:
            return f"{path} is damaged ({error})."
    return ""


def named_weights(
    model: Any, gather_params: Callable[..., AbstractContextManager[None]], *, merge: bool
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all weights by their names in transformers; see `TrainablePolicy.named_weights`.

    Args:
        model: A model with or without adapters.
        gather_params: Returns a context in which all of the parameters are available.
        merge: Whether adapters are merged into the weights; otherwise they are omitted.
    """
    layers = lora.layers(model) if merge else {}
    for name, weight in own_weights(model).items():
        layer = layers.get(name)
        if layer is None:
            with gather_params([weight]):
                yield name, weight.detach()
        else:
            with gather_params([weight, *lora.parts(layer)]), torch.no_grad():
                yield name, lora.merged(weight, layer)


def own_weights(model: Any) -> dict[str, torch.nn.Parameter]:
    """Return a model's weights by their names in transformers, with or without adapters."""
    return {
        name.replace(".base_layer.", "."): weight
        for name, weight in model.state_dict(keep_vars=True).items()
        if ".lora_" not in name
    }


def read_weights(model: Any, folder: Path) -> dict[str, torch.Tensor]:
    """Return the weights of a checkpoint of the same model, in shards if the model is in shards.

    Raises:
        RunError: If the folder contains no checkpoint, or one of another model.
    """
    sharded = shards.is_sharded(model)
    other = load_model(str(folder), model.dtype, "sdpa", sharded=sharded)
    weights: dict[str, torch.Tensor] = dict(own_weights(other))
    shapes = {name: shards.shape_of(weight) for name, weight in weights.items()}
    if shapes != {name: shards.shape_of(weight) for name, weight in own_weights(model).items()}:
        raise RunError(
            f"{folder} holds the weights of {describe(other)}; this policy is {describe(model)}. "
            "Name a checkpoint of the same model."
        )
    return weights


def restore(model: Any, folder: Path) -> None:
    """Load a checkpoint that `save_model` wrote.

    If the checkpoint and the model both have adapters, these are loaded, and the weights below them
    must be equal. Weights without adapters are loaded, and the adapters are reset so that they
    change nothing.

    Raises:
        RunError: If the folder contains no checkpoint, or one of another model.
    """
    weights = read_weights(model, folder)
    adapted = lora.layers(model)
    if adapted and (folder / ADAPTER).is_dir():
        _check_beneath(model, weights, folder)
        lora.load_adapters(model, folder / ADAPTER)
        return
    with torch.no_grad():
        for name, weight in own_weights(model).items():
            shards.take(weight, weights[name])
    lora.forget(model)


def _check_beneath(model: Any, weights: Mapping[str, torch.Tensor], folder: Path) -> None:
    adapted = lora.layers(model)
    for name, weight in own_weights(model).items():
        if name not in adapted and not shards.equal(weight, weights[name]):
            raise RunError(
                f"The adapters in {folder} belong to a model with other weights: {name} differs. "
                "Start from the model that they were trained on."
            )


def holds(model: Any, folder: Path) -> bool:
    """Return whether a checkpoint contains exactly a model's weights, without adapters.

    Raises:
        RunError: If the folder contains no checkpoint, or one of another model.
    """
    weights = read_weights(model, folder)
    return all(shards.equal(weight, weights[name]) for name, weight in own_weights(model).items())


def describe(model: Any) -> str:
    """Return a description of the model: its type and its size."""
    text = model.config.text_config
    millions = sum(shards.shape_of(each).numel() for each in model.parameters()) / 1e6
    return (
        f"a {model.config.model_type} of {millions:.2f} M parameters ({text.num_hidden_layers} "
        f"layers, width {text.hidden_size}, vocabulary {text.vocab_size})"
    )


def save_model(model: Any, folder: Path, *, merge: bool = True) -> None:
    """Write weights (safetensors) and configuration in the format of stock transformers and vLLM.

    Args:
        model: A model with or without adapters.
        folder: The folder of the checkpoint, which is created if it does not exist.
        merge: Whether adapters, if there are any, are merged, and also written to a folder of their
            own; otherwise they are omitted.

    Raises:
        ConfigurationError: If the folder is or contains a link.
        DiskError: If the disk is full or fails.
    """
    check_no_links_in(output_folder(folder))
    adapted = bool(lora.layers(model))
    weights = dict(named_weights(model, no_gather, merge=merge)) if adapted else None
    with _quiet(), disk_errors(folder):
        model.save_pretrained(folder, state_dict=weights)
    if adapted and merge:
        with disk_errors(folder / ADAPTER):
            lora.save_adapters(model, folder / ADAPTER)


def frozen(model: Any) -> Any:
    """Return a copy of the model with the current weights, which is not trained."""
    return shards.deep_copy(model).requires_grad_(requires_grad=False).eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the progress bars of transformers, because visenv shows its own."""
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()
