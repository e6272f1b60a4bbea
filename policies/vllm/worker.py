"""Adds methods to vLLM's workers that return sums and the identity of their weights.

The sender of weights sets the identity. A restarted worker has none. If the weights were changed by
other means (another program, or a sleep that dropped them), the worker detects that the first
values of its weights differ from those for which the identity was set.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .adapter import sums
from .rules import rules_of
from .weights import bits_of, columns, part_of, plain_name, sum_of

_FIRST = 64
"""Number of values of each vector, or of each matrix's first row, that are compared."""


class WeightSums:
    """Extends vLLM's worker class, by ``worker_extension_cls``.

    Attributes:
        model_runner: The model runner of vLLM, which contains the model.
        model_config: The model configuration of vLLM.
        parallel_config: The parallel configuration of vLLM.
        visenv_identity: Name of the weights that were sent last; ``""`` before that.
        visenv_beginnings: A digest of the weights at that time.
    """

    model_runner: Any
    model_config: Any
    parallel_config: Any
    visenv_identity: str = ""
    visenv_beginnings: str = ""

    def visenv_mark(self, identity: str) -> None:
        """Set the name of the current weights."""
        self.visenv_identity = identity
        self.visenv_beginnings = beginnings(self.model_runner.get_model())

    def visenv_marked(self) -> dict[str, str]:
        """Return the name of this worker's weights, without reading them: they may be asleep."""
        return {"identity": self.visenv_identity}

    def visenv_holds(self, identity: str) -> dict[str, bool]:
        """Return whether this worker still computes with the weights of that name.

        Args:
            identity: The argument of `visenv_mark`; ``""`` is the checkpoint's own weights.
        """
        same = self.visenv_identity == identity
        if same and identity:
            same = self.visenv_beginnings == beginnings(self.model_runner.get_model())
        return {"same": same}

    def visenv_processor(self) -> dict[str, str]:
        """Return the fingerprint of the checkpoint's image processor, as this machine loads it."""
        return {"image_processor": rules_of(self.model_config).image_processor}

    @torch.inference_mode()
    def visenv_adapter_sums(self, number: int) -> dict[str, Any]:
        """Return the sums of an adapter's matrices, and their dtype.

        Args:
            number: The adapter's number (`LoRARequest.lora_int_id`).
        """
        adapter = self.model_runner.lora_manager._adapter_manager.get_adapter(number)  # noqa: SLF001
        layers = list(adapter.loras.values())
        found = {
            "lora_A": _matrices(layer.lora_a for layer in layers),
            "lora_B": _matrices(layer.lora_b for layer in layers),
        }
        dtype = str(found["lora_A"][0].dtype).removeprefix("torch.")
        return {"dtype": dtype, **{name: sums(each) for name, each in found.items()}}

    @torch.inference_mode()
    def visenv_sums(self) -> dict[str, int]:
        """Return the sums of this worker's weights, by part of the model.

        If a worker has a shard of each weight (tensor parallelism), only norms are summed, by their
        names, because they are not split.
        """
        whole = self.parallel_config.world_size == 1
        sums: dict[str, int] = defaultdict(int)
        for prefix, module in self.model_runner.get_model().named_modules():
            for name, total in _sums(module, self.model_config.dtype):
                # If adapters are enabled, a layer's own weight is that of its base layer.
                full = plain_name(f"{prefix}.{name}".replace(".base_layer.", "."))
                if whole or "norm" in full:
                    sums[part_of(full) if whole else full] += total
        return dict(sums)


def _matrices(given: Iterable[Any]) -> list[torch.Tensor]:
    """Return the matrices of layers; fused layers have a list of them, with None for some."""
    lists = [each if isinstance(each, list) else [each] for each in given]
    return [matrix for each in lists for matrix in each if matrix is not None]


@torch.inference_mode()
def beginnings(model: torch.nn.Module) -> str:
    """Return a digest of the first values of every weight; a training step changes some of them."""
    parts = [  # for each weight, the bytes of its first values, uint8 [bytes]
        (weight if weight.ndim == 1 else weight[0]).flatten()[:_FIRST].view(torch.uint8)
        for weight in model.parameters()
        if weight.numel() and weight.ndim
    ]
    return hashlib.sha256(torch.cat(parts).cpu().numpy().tobytes()).hexdigest()


def _sums(module: torch.nn.Module, dtype: torch.dtype) -> Iterator[tuple[str, int]]:
    for name, weight in module.named_parameters(recurse=False):
        if name == "weight" and _is_packed(module):
            yield name, _sum_by_use(module, weight.device, dtype)
        else:
            yield name, sum_of(weight.to(dtype))


def _is_packed(module: Any) -> bool:
    """Return whether the CPU build multiplies by a packed copy of the weight.

    A head keeps its own weight besides the copy; an embedding uses its own weight for look-ups.
    """
    packed = hasattr(module, "cpu_linear")
    return packed and (module.weight.numel() == 0 or "Head" in type(module).__name__)


def _sum_by_use(module: Any, device: torch.device, dtype: torch.dtype) -> int:
    """Return the sum of the selected columns, read exactly by multiplying unit vectors."""
    inputs = next(
        getattr(module, name)
        for name in ("input_size_per_partition", "input_size", "embedding_dim")
        if hasattr(module, name)
    )
    # [columns, inputs], a unit vector in each row.
    unit = torch.zeros(len(columns(inputs)), inputs, dtype=dtype, device=device)
    unit[torch.arange(len(unit)), columns(inputs)] = 1
    return bits_of(module.quant_method.apply(module, unit))
