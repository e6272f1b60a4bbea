"""What our policy adds to vLLM's workers: sums of the weights they compute with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch

from .weights import bits_of, columns, part_of, plain_name, sum_of


class WeightSums:
    """Mixed into vLLM's worker class by ``worker_extension_cls``.

    Attributes:
        model_runner: vLLM's; holds the model.
        model_config: vLLM's.
        parallel_config: vLLM's.
    """

    model_runner: Any
    model_config: Any
    parallel_config: Any

    @torch.inference_mode()
    def visenv_sums(self) -> dict[str, int]:
        """Sums of this worker's weights, by part of the model.

        Of a worker that holds a share of each weight (tensor parallelism), only norms are summed,
        by their names: they are whole.
        """
        whole = self.parallel_config.world_size == 1
        sums: dict[str, int] = defaultdict(int)
        for prefix, module in self.model_runner.get_model().named_modules():
            for name, total in _sums(module, self.model_config.dtype):
                full = plain_name(f"{prefix}.{name}")
                if whole or "norm" in full:
                    sums[part_of(full) if whole else full] += total
        return dict(sums)


def _sums(module: torch.nn.Module, dtype: torch.dtype) -> Iterator[tuple[str, int]]:
    for name, weight in module.named_parameters(recurse=False):
        if name == "weight" and _is_packed(module):
            yield name, _sum_by_use(module, weight.device, dtype)
        else:
            yield name, sum_of(weight.to(dtype))


def _is_packed(module: Any) -> bool:
    """Whether the CPU build multiplies by a packed copy of the weight, which is what counts.

    A head's own weight stays beside the copy; an embedding looks rows up in its own weight.
    """
    packed = hasattr(module, "cpu_linear")
    return packed and (module.weight.numel() == 0 or "Head" in type(module).__name__)


def _sum_by_use(module: Any, device: torch.device, dtype: torch.dtype) -> int:
    """The columns that count, read off by multiplying unit vectors: exact, w times 1 plus zeros."""
    inputs = next(
        getattr(module, name)
        for name in ("input_size_per_partition", "input_size", "embedding_dim")
        if hasattr(module, name)
    )
    unit = torch.zeros(len(columns(inputs)), inputs, dtype=dtype, device=device)
    unit[torch.arange(len(unit)), columns(inputs)] = 1
    return bits_of(module.quant_method.apply(module, unit))
