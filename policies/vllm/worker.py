"""Adds to vLLM's workers sums and the identity of the weights they compute with.

The identity is set by the sender of weights. A worker that was restarted has none, and one whose
weights were changed by other means (another program's, or a sleep that dropped them) notices that
the beginnings of its weights are no longer those that the identity was set for.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from .adapter import sums
from .weights import bits_of, columns, part_of, plain_name, sum_of

_FIRST = 64
"""How many values of each vector, or of each matrix's first row, tell whether it is another."""


class WeightSums:
    """Extends vLLM's worker class by ``worker_extension_cls``.

    Attributes:
        model_runner: vLLM's; holds the model.
        model_config: vLLM's.
        parallel_config: vLLM's.
        visenv_identity: What the weights were called when they were sent; ``""`` before that.
        visenv_beginnings: A digest of the weights at that time.
    """

    model_runner: Any
    model_config: Any
    parallel_config: Any
    visenv_identity: str = ""
    visenv_beginnings: str = ""

    def visenv_mark(self, identity: str) -> None:
        """Call the present weights `identity`."""
        self.visenv_identity = identity
        self.visenv_beginnings = beginnings(self.model_runner.get_model())

    def visenv_marked(self) -> dict[str, str]:
        """Return what this worker's weights were called; does not touch them, as they may sleep."""
        return {"identity": self.visenv_identity}

    def visenv_holds(self, identity: str) -> dict[str, bool]:
        """Return whether this worker still computes with the weights called `identity`.

        Args:
            identity: The argument of `visenv_mark`; ``""`` stands for the checkpoint's own.
        """
        same = self.visenv_identity == identity
        if same and identity:
            same = self.visenv_beginnings == beginnings(self.model_runner.get_model())
        return {"same": same}

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

        Of a worker that holds a share of each weight (tensor parallelism), only norms are summed,
        by their names: they are whole.
        """
        whole = self.parallel_config.world_size == 1
        sums: dict[str, int] = defaultdict(int)
        for prefix, module in self.model_runner.get_model().named_modules():
            for name, total in _sums(module, self.model_config.dtype):
                # Where adapters are taken, a layer holds its own weight as that of its base layer.
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
    """Return a digest of the first values of every weight: a training step changes some of them."""
    parts = [  # of each weight the bytes of its first values, uint8 [bytes]
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

    A head's own weight stays beside the copy; an embedding looks rows up in its own weight.
    """
    packed = hasattr(module, "cpu_linear")
    return packed and (module.weight.numel() == 0 or "Head" in type(module).__name__)


def _sum_by_use(module: Any, device: torch.device, dtype: torch.dtype) -> int:
    """Return the sum of the columns that count, read exactly by multiplying unit vectors."""
    inputs = next(
        getattr(module, name)
        for name in ("input_size_per_partition", "input_size", "embedding_dim")
        if hasattr(module, name)
    )
    # [columns, inputs], a unit vector in each row.
    unit = torch.zeros(len(columns(inputs)), inputs, dtype=dtype, device=device)
    unit[torch.arange(len(unit)), columns(inputs)] = 1
    return bits_of(module.quant_method.apply(module, unit))
