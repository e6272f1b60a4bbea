"""Writes the results of `gpu.py` at once, keeps its time budget, and describes the machine."""

from __future__ import annotations

import gc
import importlib.util
import json
import platform
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_costs import MFU_FORMULA

WHEELS = Path(__file__).with_name("gpu_wheels.txt")
"""Packages of visenv's core that a machine with PyTorch may lack, with the module of each."""

OPTIONAL = ("vllm", "deepspeed", "trl", "liger_kernel", "flash_attn", "accelerate", "triton")


def missing_wheels() -> list[str]:
    """Return the requirements of `WHEELS` whose modules are not installed."""
    missing = []
    for line in WHEELS.read_text().splitlines():
        requirement, _, module = (word.strip() for word in line.partition("# import "))
        if module and not line.startswith("#") and importlib.util.find_spec(module) is None:
            missing.append(requirement)
    return missing


def versions(modules: Iterable[str]) -> dict[str, str | None]:
    """Return the version of the package of each module, or None if it is missing."""
    packages = packages_distributions()
    return {name: version(packages[name][0]) if name in packages else None for name in modules}


class Report:
    """Appends each result to ``gpu.jsonl`` and ``gpu.txt``, and prints it.

    Args:
        folder: Folder of both files.
        minutes: Time budget of all parts.

    Attributes:
        budget: The time budget in seconds.
    """

    def __init__(self, folder: Path, minutes: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._json, self._text = folder / "gpu.jsonl", folder / "gpu.txt"
        for path in (self._json, self._text):
            path.write_text("")
        self._begun = time.monotonic()
        self.budget = 60 * minutes

    @property
    def left(self) -> float:
        """Return the remaining seconds of the budget."""
        return self.budget - (time.monotonic() - self._begun)

    def add(self, part: str, **values: Any) -> None:
        """Write one result.

        Args:
            part: The part that measured it.
            values: Its values: texts, numbers, booleans, None, or lists and mappings of them.
        """
        row = {"part": part, "at": time.monotonic() - self._begun, **values}
        with self._json.open("a") as file:
            file.write(json.dumps(_rounded(row)) + "\n")
        shown = ", ".join(f"{name} {_text(value)}" for name, value in values.items())
        line = f"{row['at']:6.1f} s  {part:<10} {shown}"
        with self._text.open("a") as file:
            file.write(line + "\n")
        print(line, flush=True)

    @contextmanager
    def part(self, name: str, seconds: float, **values: Any) -> Iterator[bool]:
        """Yield whether a part has time; an error of the part is a result, and the next part runs.

        Args:
            name: The part.
            seconds: Seconds that the part needs on an H100. It is skipped if fewer are left.
            values: What the part measures, for the result of a part that is skipped or fails.
        """
        # Here and not after the part: an error holds the tensors of its frames until it is handled.
        free()
        if self.left < seconds:
            skipped = f"needs {seconds:.0f} s, {max(self.left, 0):.0f} s are left"
            self.add(name, **values, skipped=skipped)
            yield False
            return
        try:
            yield True
        except Exception as error:  # noqa: BLE001 - the other parts are worth their time
            self.add(name, **values, error=f"{type(error).__name__}: {str(error)[:300]}")


def describe(report: Report, device: str, peak: float) -> None:
    """Write the machine, the versions, and the packages that are missing."""
    cuda = device != "cpu"
    total = torch.cuda.get_device_properties(device).total_memory if cuda else 0
    optional = versions(OPTIONAL)
    report.add(
        "machine",
        device=torch.cuda.get_device_name(device) if cuda else platform.processor() or "cpu",
        memory_gib=total / 2**30,
        python=platform.python_version(),
        torch=torch.__version__,
        cuda=torch.version.cuda or "",
        transformers=version("transformers"),
        optional=optional,
        missing=[name for name, found in optional.items() if found is None],
        peak_tflops=peak / 1e12,
        mfu_formula=MFU_FORMULA,
    )


def free() -> None:
    """Return the memory of objects that are no longer used to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_text(one)}' for name, one in value.items())})"
    return " | ".join(map(_text, value)) if isinstance(value, list) else str(value)
