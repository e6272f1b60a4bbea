"""Measures the peak memory of the log-prob step, by vocabulary and number of places.

    python benchmarks/logprob_memory.py
    python benchmarks/logprob_memory.py --device cuda --width 2048

The step computes, from the last hidden states, log-probabilities and entropy of sampled tokens, and
the gradient of states and weight. The reported memory is the peak besides states, weight and their
gradients, measured in a new process each time. The baselines, omitted if all logits together exceed
1 GiB, are the kernel of TRL's fused head, and all logits at once with PyTorch's own functions.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import torch

from benchmarks.meter import most, now, rest
from visenv.policies.transformers.head import CHUNK, ExcludedTokens, LogprobHead, TokenPositions

WAYS = ("ours", "trl", "plain")
POINTS = [(vocabulary, places) for vocabulary in (32768, 131072) for places in (2048, 8192)]
_LARGEST = 2**30


def ours(hidden: torch.Tensor, linear: torch.nn.Linear, tokens: torch.Tensor) -> torch.Tensor:
    none = torch.zeros(len(linear.weight), dtype=torch.bool, device=hidden.device)
    weight: Any = linear.weight  # torch types it as a tensor
    head = LogprobHead(weight, none)
    exclusions = ExcludedTokens(none[None], torch.zeros_like(tokens))
    places = TokenPositions(tokens, torch.ones(len(tokens), device=hidden.device), exclusions)
    picked: torch.Tensor = head(hidden, places)[0]
    return picked


def trl(hidden: torch.Tensor, linear: torch.nn.Linear, tokens: torch.Tensor) -> torch.Tensor:
    from importlib import import_module

    utils: Any = import_module("trl.trainer.utils")
    outputs: Any = utils._ChunkedLogProbFunction.apply(  # noqa: SLF001
        hidden,
        linear.weight,
        None,
        tokens,
        1.0,
        utils._CHUNKED_LOGPROB_CHUNK_SIZE,  # noqa: SLF001
        None,
        1.0,
        ("log_probs", "entropy"),
    )
    picked: torch.Tensor = outputs[0]
    return picked


def plain(hidden: torch.Tensor, linear: torch.nn.Linear, tokens: torch.Tensor) -> torch.Tensor:
    logprobs = linear(hidden).float().log_softmax(-1)
    with torch.no_grad():
        _ = -(logprobs.exp() * logprobs).sum(-1)
    picked: torch.Tensor = logprobs.gather(1, tokens[:, None])[:, 0]
    return picked


def measure(options: argparse.Namespace, way: str, vocabulary: int, places: int) -> list[float]:
    """Return MiB besides states, weight and gradients; seconds.

    The sum of the log-probabilities.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    device, dtype = options.device, getattr(torch, options.dtype)
    linear = torch.nn.Linear(options.width, vocabulary, bias=False, device=device, dtype=dtype)
    hidden = torch.randn(places, options.width, device=device, dtype=dtype, requires_grad=True)
    tokens = torch.randint(vocabulary, (places,), device=device)
    step: Callable[..., torch.Tensor] = {"ours": ours, "trl": trl, "plain": plain}[way]
    step(hidden[:8], linear, tokens[:8]).sum().backward()  # warm-up
    hidden.grad, linear.weight.grad = torch.zeros_like(hidden), torch.zeros_like(linear.weight)
    before, start = rest(device), now(device)
    picked = step(hidden, linear, tokens)
    picked.sum().backward()
    total = float(picked.detach().double().sum())
    return [most(device) - before, now(device) - start, total]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--width", type=int, default=64, help="width of the hidden states")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options, *json.loads(options.one))))
        return
    names = ", ".join(f"{name} {version(name)}" for name in ("torch", "trl"))
    print(
        f"python {platform.python_version()}, {names}; {options.dtype}, {options.device}, width "
        f"{options.width}, chunks of {CHUNK / 2**20:.0f} MiB, load {os.getloadavg()[0]:.2f}"
    )
    print("vocabulary   places  logits MiB         ours           trl         plain  (peak MiB; s)")
    for vocabulary, places in POINTS:
        logits = 4 * vocabulary * places
        cells, totals = [], []
        for way in WAYS:
            if way != "ours" and logits > _LARGEST:
                cells.append("-")
                continue
            command = [sys.executable, __file__, *sys.argv[1:]]
            command += ["--one", json.dumps([way, vocabulary, places])]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            memory, seconds, total = json.loads(done.stdout.splitlines()[-1])
            cells.append(f"{memory:.0f}; {seconds:.1f}")
            totals.append(total)
        assert max(totals) - min(totals) < 1e-5 * abs(totals[0]), totals
        row = "  ".join(f"{cell:>12}" for cell in cells)
        print(f"{vocabulary:10} {places:8} {logits / 2**20:11.0f} {row}", flush=True)


if __name__ == "__main__":
    main()
