"""Sends LoRA adapters to an engine: as files of peft, with a new name each time.

vLLM stores keys and values by the name of the adapter with which they were computed. With a new
name, cached values of an earlier version are never used for a later one.
"""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from visenv.errors import ConfigurationError, PolicyError
from visenv.policy import Adapter

from .weights import bits_of

RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""The values that vLLM accepts as the largest rank of an engine."""


def arguments(rank: int) -> dict[str, Any]:
    """Return the arguments of vLLM's `EngineArgs` for one adapter at a time, of up to this rank.

    Raises:
        ConfigurationError: If vLLM does not support the rank.
    """
    room = next((each for each in RANKS if each >= rank), None)
    if rank < 1 or room is None:
        raise ConfigurationError(f"lora_rank must be from 1 to {RANKS[-1]}, got {rank}.")
    return {"enable_lora": True, "max_lora_rank": room, "max_loras": 1, "max_cpu_loras": 1}


class AdapterSlot:
    """Holds the adapter with which one engine samples.

    Args:
        engine: vLLM's `LLMEngine`, started with `arguments`.

    Attributes:
        request: The argument of vLLM for each prompt; None before the first adapter.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._numbers = itertools.count(1)
        self.request: Any = None

    def put(self, adapter: Adapter) -> None:
        """Replace the adapter, and compare the new one with the adapter in vLLM.

        Raises:
            PolicyError: If vLLM rejects the adapter, or contains another one afterwards.
        """
        from vllm.lora.request import LoRARequest

        self.clear()
        number = next(self._numbers)
        folder = Path(tempfile.mkdtemp(prefix="visenv-adapter-"))
        try:
            _write(adapter, folder)
            request = LoRARequest(f"visenv-{folder.name}-{number}", number, str(folder))
            try:
                taken = self._engine.add_lora(request)
            except Exception as error:
                raise PolicyError(f"vLLM rejects this adapter: {error!r}") from error
            if not taken:
                raise PolicyError(f"vLLM did not load the adapter in {folder}, and gave no reason.")
            for held in self._engine.collective_rpc("visenv_adapter_sums", args=(number,)):
                _compare(adapter, held)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self.request = request

    def clear(self) -> None:
        """Remove the adapter; the engine then samples with the weights alone."""
        if self.request is not None:
            self._engine.remove_lora(self.request.lora_int_id)
            self.request = None


def sums(matrices: Iterable[torch.Tensor]) -> int:
    """Return the sum of the bit patterns of several tensors."""
    return sum(bits_of(each) for each in matrices)


def _write(adapter: Adapter, folder: Path) -> None:
    weights = {name: weight.contiguous() for name, weight in adapter.weights.items()}
    save_file(weights, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps(dict(adapter.config)), "utf-8")


def _compare(adapter: Adapter, held: dict[str, Any]) -> None:
    """Compare an adapter with that of a worker: its A as sent, its B multiplied by the scale."""
    dtype = getattr(torch, held["dtype"])
    scale = adapter.config["lora_alpha"] / adapter.config["r"]
    parts: dict[str, list[torch.Tensor]] = {"lora_A": [], "lora_B": []}
    for name, weight in adapter.weights.items():
        part = "lora_A" if ".lora_A." in name else "lora_B"
        given = weight.to(dtype)
        parts[part].append(given * scale if part == "lora_B" and scale != 1 else given)
    for part, matrices in parts.items():
        if held[part] != sums(matrices):
            raise PolicyError(f"The engine does not hold the adapter it was sent: {part} differs.")
