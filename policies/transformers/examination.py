"""Examines a checkpoint without its weights: family, chat template, processor, paths, memory."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers

from visenv.garbage import heavy_imports
from visenv.types import Image

from ..tokens.codec import Codec
from ..tokens.config import read_config

_GIB = 2**30
_TRAINED_BYTES = 16
"""Bytes of a trained parameter: in float32 the weight, its gradient and two moments of AdamW; in
bfloat16 with ZeRO-2, the weight and gradient in 2 bytes each, and a float32 copy with moments."""

_SIDE = 448
"""Height and width of the image whose tokens are counted."""

_OTHERS = {"vLLM": ("vllm", False), "TRL": ("trl", True), "verl": ("verl", True)}
"""Other samplers and trainers: the package, and whether it needs the packed path."""


class Finding(NamedTuple):
    """Describes one property of a checkpoint, as one row of a table."""

    name: str
    value: str
    detail: str = ""


def examine(model: str) -> Iterator[Finding]:
    """Yield the properties of a checkpoint; a policy that loads it raises the same errors.

    Args:
        model: A checkpoint folder or a hub name.

    Raises:
        RunError: If there is no such checkpoint.
        PolicyError: If its architecture, processor, tokenizer or chat template is not supported;
            the message says why.
    """
    config = read_config(model)
    empty = _without_weights(config)
    yield Finding("model", config.model_type, type(empty).__name__)
    yield from _memory(config, empty)
    codec = Codec(model, empty.get_output_embeddings().weight.shape[0])
    family = codec.family
    yield Finding("family", type(family).__name__)
    yield _template(codec)
    yield _processor(codec)
    yield _image(codec)
    packs = family.packs
    yield Finding("packed path", _verdict(packs), "" if packs else "Qwen2.5-VL and Qwen3-VL only")
    yield Finding("padded path", _verdict(not packs), "packed instead" if packs else "")
    for name, (package, needs_packed) in _OTHERS.items():
        why = "" if find_spec(package) else f"the package {package} is not installed"
        possible = packs or not needs_packed
        detail = why if possible else "Qwen2.5-VL and Qwen3-VL only"
        yield Finding(name, _verdict(possible), detail)


def _verdict(possible: bool) -> str:
    return "possible" if possible else "no"


@heavy_imports()
def _without_weights(config: Any) -> Any:
    """Return the model with parameters that have shapes, but no memory."""
    with torch.device("meta"):
        return transformers.AutoModelForImageTextToText.from_config(config)


def _memory(config: Any, empty: Any) -> Iterator[Finding]:
    count = sum(weight.numel() for weight in empty.parameters())
    dtype = config.dtype or torch.float32
    loaded = count * dtype.itemsize / _GIB
    name = str(dtype).removeprefix("torch.")
    yield Finding("parameters", f"{count / 1e9:.3g} billion" if count > 1e8 else f"{count:,}")
    yield Finding("memory to sample", _gib(loaded), f"weights in {name}, without the cache")
    yield Finding(
        "memory to train",
        _gib(count * _TRAINED_BYTES / _GIB),
        "weights, gradients and AdamW, without activations; with LoRA little more than the weights",
    )


def _gib(size: float) -> str:
    return f"{size:.1f} GiB" if size >= 0.1 else f"{size * 1024:.1f} MiB"


def _template(codec: Codec) -> Finding:
    tokenizer = codec.processor.tokenizer
    detail = f"a turn ends with {tokenizer.convert_ids_to_tokens(codec.end_id)!r}"
    if codec.template.opening:
        detail += f" and begins with {codec.template.opening!r}"
    return Finding("chat template", "accepted", detail)


def _processor(codec: Codec) -> Finding:
    _, kind, backend = codec.family.fingerprint(with_videos=False).split(":")
    return Finding("image processor", backend or "unknown backend", kind)


def _image(codec: Codec) -> Finding:
    pixels = np.zeros((_SIDE, _SIDE, 3), np.uint8)
    token_ids, shown = codec.family.show(Image.from_pixels(pixels), 0)
    runs = sum(len(getattr(span, "runs", ())) for span in shown.spans)
    detail = f"of {_SIDE} x {_SIDE} pixels; {runs} run{'s' * (runs != 1)} of placeholders"
    return Finding("tokens of an image", str(len(token_ids)), detail)
