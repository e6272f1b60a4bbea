"""Lets torchvision's CUDA build be imported beside PyTorch's CPU build.

Its compiled operators cannot be loaded there, and the first thing it imports registers shapes for
two of them. They are declared here when torchvision is first looked for, which leaves its
transforms, all that image processors use, in working order. Where PyTorch has CUDA this does
nothing. `make .venv` puts this file into the environment, and the .pth that starts it, because
every process of vLLM needs it before its first import.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_kept: list[Any] = []  # a torch.library.Library takes its operators with it when it is collected


class _BeforeTorchvision:
    """A finder that finds nothing, and declares the operators when torchvision is looked for."""

    def find_spec(
        self, name: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            _declare()
        return None


def _declare() -> None:
    import torch

    if torch.version.cuda is not None:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    _kept.append(library)
    for operator in _OPERATORS:
        library.define(operator)


sys.meta_path.insert(0, _BeforeTorchvision())
