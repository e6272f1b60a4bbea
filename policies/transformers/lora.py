"""Adds LoRA adapters with peft, so that only few weights are trained (Hu et al., 2021, 2106.09685).

Adapters are added to the model in place: ``W + alpha/rank B A``. Checkpoints contain whole weights,
into which the adapters are merged when they are written. An engine gets the same, or only the
adapters (`read_adapter`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from visenv.decoding.files import check_folder
from visenv.errors import ConfigurationError, RunError
from visenv.files import output_folder
from visenv.policy import Adapter

from . import shards

# peft takes seconds to import, so that it is imported in the functions that use it.

_NAME = "default"
_PREFIX = "base_model.model."


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Sets which weights of the language model are trained.

    There is no dropout, so scores are exact.

    Attributes:
        rank: Rank of each change.
        alpha: The change is multiplied by ``alpha / rank``.
        targets: Names of the linear layers that get an adapter.
        seed: Seed of the initial weights of the adapters.
    """

    rank: int = 16
    alpha: float = 32.0
    targets: tuple[str, ...] = (
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    )  # fmt: skip
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ConfigurationError(f"rank must be at least 1, got {self.rank}.")


def adapt(model: Any, settings: LoraSettings) -> None:
    """Add new adapters to a model, which change no output yet, and freeze all other weights.

    Adapters are float32 (or wider) for all types of the model, because their updates are small.

    Raises:
        ConfigurationError: If no layer has one of the names.
    """
    import peft

    config = peft.LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]  # a float works
        lora_dropout=0.0,
        target_modules=rf"{re.escape(_language(model))}\..*\.({'|'.join(settings.targets)})",
    )
    try:
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            peft.inject_adapter_in_model(config, model, _NAME)
    except ValueError as error:
        raise ConfigurationError(f"LoRA cannot be applied: {error}") from error
    for weight in adapters(model).values():
        weight.data = weight.data.to(torch.promote_types(weight.dtype, torch.float32))


def _language(model: Any) -> str:
    """Return the name of the language model in the whole model."""
    decoder = model.get_decoder()
    name: str = next(name for name, module in model.named_modules() if module is decoder)
    return name


def adapters(model: Any) -> dict[str, torch.nn.Parameter]:
    """Return the weights of the adapters, by their names in files of peft."""
    return {
        _PREFIX + name.replace(f".{_NAME}.", "."): weight
        for name, weight in model.named_parameters()
        if ".lora_" in name
    }


def read_adapter(
    model: Any,
    gather_params: Callable[[Sequence[torch.nn.Parameter]], AbstractContextManager[None]],
) -> Adapter:
    """Return a copy of the adapters.

    Args:
        model: A model with adapters.
        gather_params: Returns a context in which all of the parameters are available.
    """
    weights: dict[str, torch.Tensor] = {}
    for name, weight in adapters(model).items():
        with gather_params([weight]):
            weights[name] = weight.detach().to("cpu", copy=True)
    config = model.peft_config[_NAME].to_dict()
    return Adapter(json.loads(json.dumps(config, default=_as_json)), weights)


def _as_json(value: Any) -> Any:
    return sorted(value) if isinstance(value, set) else str(value)


def layers(model: Any) -> dict[str, Any]:
    """Return the layers with an adapter, by the name of the weight that the adapter changes."""
    if not hasattr(model, "peft_config"):
        return {}
    from peft.tuners.lora import LoraLayer

    return {
        f"{name}.weight": module
        for name, module in model.named_modules()
        if isinstance(module, LoraLayer)
    }


def parts(layer: Any) -> list[torch.nn.Parameter]:
    """Return the weights of a layer's adapter."""
    return [layer.lora_A[_NAME].weight, layer.lora_B[_NAME].weight]


def merged(weight: torch.Tensor, layer: Any) -> torch.Tensor:
    """Return a weight plus the change of its adapter, as a new tensor."""
    change: torch.Tensor = layer.get_delta_weight(_NAME)
    return (weight.to(change.dtype) + change).to(weight.dtype)


def forget(model: Any) -> None:
    """Reset the adapters such that they change nothing."""
    for name, weight in adapters(model).items():
        if ".lora_B." in name:
            torch.nn.init.zeros_(weight)


@contextmanager
def without(model: Any) -> Iterator[None]:
    """Disable the adapters of the model inside the block."""
    all_layers = layers(model).values()
    for layer in all_layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in all_layers:
            layer.enable_adapters(True)


# ----------------------------------------------------------------------------------------- files


def save_adapters(model: Any, folder: Path) -> None:
    """Write the adapters in peft's format; `peft.PeftModel.from_pretrained` reads it."""
    output_folder(folder)
    weights = {name: weight.detach().contiguous() for name, weight in adapters(model).items()}
    safetensors.torch.save_file(weights, folder / "adapter_model.safetensors")
    model.peft_config[_NAME].save_pretrained(str(folder))


def load_adapters(model: Any, folder: Path) -> None:
    """Load adapters that `save_adapters` wrote.

    Raises:
        RunError: If the adapters have other layers, another rank or another scale.
    """
    check_folder(folder)
    weights = safetensors.torch.load_file(folder / "adapter_model.safetensors")
    ours = adapters(model)
    scale = json.loads((folder / "adapter_config.json").read_text())["lora_alpha"]
    if _shapes(weights) != _shapes(ours) or scale != model.peft_config[_NAME].lora_alpha:
        raise RunError(
            f"The adapters in {folder} differ from those of this policy: rank, alpha and targets "
            "of LoRA must be the same."
        )
    with torch.no_grad():
        for name, weight in ours.items():
            shards.assign(weight, weights[name])


def _shapes(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: shards.shape_of(weight) for name, weight in weights.items()}
