"""Measures trained episodes per second: with shared prefixes read once, against other ways.

    python benchmarks/update.py
    python benchmarks/update.py --device cuda --dtype bfloat16 --size 3b --checkpointing --at-once 1

One group is one optimizer step: forward, backward, AdamW. There are five ways, on the same
episodes, with all segments in one pass:

shared   as the trainer: every common prefix and each image once
padded   the same code without sharing: each segment whole (each image still once)
loop     a hand-written loop: the stock model, a padded batch, each image once,
         log-probabilities of the sampled tokens in chunks (`peer_loop.py`)
trl      `GRPOTrainer._compute_loss` of TRL with its own fused head, on the stock model; its head
         scores only the completion, as on a GPU
trl-cpu  the same with TRL's default: on a CPU its head scores every place (only run on request)

Each way runs in a separate process, and the ways alternate for three rounds. The medians count, and
every ratio is of two medians of the same run. On a CPU, times are processor seconds of one thread,
which depend little on other load, with wall seconds beside them; on a GPU, all times are wall
seconds. The vision tower is frozen and timed separately; "text" is the step without it.

Shapes with tools come first: an image for each member between its turns; the same, with four
members that make the same call; contexts that are rebuilt each turn and contain the previous
history.

The ceiling is the largest possible gain of reading shared tokens once: the tokens of all segments
divided by those of their prefix tree. It is compared with the text times of padded and of loop.
Memory is the peak of a step besides weights and optimizer. "Gradient" is the distance from the
gradient of the shared way, relative to its norm.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple
from unittest import mock

import torch

from benchmarks.meter import most, now, rest
from benchmarks.peer_loop import Loop
from benchmarks.peer_trl import Peer
from benchmarks.random_vlm import SHAPES, Shape, build, group, weights
from visenv.policies.tokens.config import read_config
from visenv.policies.tokens.families import load_family
from visenv.policies.tokens.generic import generic
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.transformers.pack import pack
from visenv.policy import TokenScores

WAYS = ("shared", "padded", "loop", "trl", "trl-cpu", "generic")
"""The ways; `generic_path.py` measures the last, the computation of models that are not packed."""


class Taken(NamedTuple):
    """Holds the cost of a step: seconds in total, in the vision tower and wall time; MiB."""

    whole: float
    vision: float
    wall: float
    memory: float

    @property
    def text(self) -> float:
        return self.whole - self.vision


# ---------------------------------------------------------------------- a way, in its own process


class Step:
    """Takes optimizer steps on a group in one way, or only scores it."""

    def __init__(self, way: str, options: argparse.Namespace, shape: Shape, members: int) -> None:
        self._device = options.device
        self.policy = policy_of(way, options)
        segments, images = group(self.policy, shape, members)
        self.policy.network.head.banned.zero_()  # TRL bans nothing
        self.policy.train_mode(True)
        advantages = torch.linspace(-1, 1, len(segments)).to(options.device)
        self.model: Any = self.policy.network.model
        peer: Any
        dtype = getattr(torch, options.dtype)
        if way == "loop":
            peer = Loop(
                options.folder, self.policy, options.device, dtype,
                checkpointing=options.checkpointing,
            )  # fmt: skip
            batch = peer.inputs(segments, images)
            self.model = peer.model
            self._loss: Callable[[], torch.Tensor] = lambda: peer.loss(batch, advantages)
            del self.policy.network, self.policy.module, self.policy.decoder
        elif way.startswith("trl"):
            peer = Peer(
                options.folder, self.policy, options.device, dtype, len(segments),
                checkpointing=options.checkpointing, sampled_only=way == "trl",
            )  # fmt: skip
            inputs = peer.inputs(segments, images, advantages)
            self.model = peer.model
            self._loss = lambda: peer.loss(inputs)
            self._scores: Callable[[], Any] = lambda: peer.scores(inputs)
            del self.policy.network, self.policy.module, self.policy.decoder
        else:
            padded = self.policy.collate(segments, images) if way == "generic" else None

            def score() -> TokenScores:
                self.policy.network.forget()  # otherwise its cost is 0 from the second step
                batch = padded or pack(self.policy.codec, segments, images, share=way == "shared")
                found: TokenScores = self.policy.module(batch)
                return found

            def loss() -> torch.Tensor:
                scores = score()
                ratio = torch.exp(scores.logprobs - scores.logprobs.detach())
                value: torch.Tensor = -(advantages[:, None] * ratio * scores.mask).sum()
                return value / scores.mask.sum()

            self._loss, self._scores = loss, score
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(trained, lr=0.0)
        for weight in trained:
            weight.grad = torch.zeros_like(weight)
        self._optimizer.step()  # allocates the optimizer's moments
        self._looking = 0.0
        self._watch(self.model.model.visual)

    def _watch(self, tower: torch.nn.Module) -> None:
        def before(*_: Any) -> None:
            self._looking -= now(self._device)

        def after(*_: Any) -> None:
            self._looking += now(self._device)

        tower.register_forward_pre_hook(before)
        tower.register_forward_hook(after)

    def take(self, work: str = "update") -> Taken:
        """Return the cost of an optimizer step (``"update"``), or only of scores (``"score"``)."""
        self._optimizer.zero_grad()
        self._looking = 0.0
        held = rest(self._device)
        wall, start = time.perf_counter(), now(self._device)
        if work == "score":
            with torch.no_grad():
                self._scores()
        else:
            self._loss().backward()
            self._optimizer.step()
        whole = now(self._device) - start
        wall = time.perf_counter() - wall
        return Taken(whole, self._looking, wall, most(self._device) - held)

    def gradient(self) -> dict[str, torch.Tensor]:
        """Return the gradient of the latest step.

        The weights are unchanged, because the rate is 0.
        """
        named: Iterable[tuple[str, Any]] = self.model.named_parameters()
        return {name: weight.grad.cpu() for name, weight in named if weight.grad is not None}


def policy_of(way: str, options: argparse.Namespace) -> TransformersPolicy:
    """Return the policy of a way; the generic one has the family of models that are not packed."""
    family = (
        generic if way == "generic" else load_family(read_config(str(options.folder)).model_type)
    )
    with mock.patch("visenv.policies.tokens.codec.load_family", return_value=family):
        policy = TransformersPolicy(
            options.folder,
            device=options.device,
            dtype=options.dtype,
            freeze_vision=True,
            gradient_checkpointing=options.checkpointing,
            threads=options.threads,
        )
    if way == "generic":  # the attention of transformers, as for models that are not packed
        policy.network.model.set_attn_implementation("sdpa")
    return policy


_STEP: list[Step] = []
"""The step of this process, at most one."""


def prepare(way: str, options: argparse.Namespace, shape: Shape, members: int) -> None:
    _STEP.clear()
    gc.collect()
    _STEP.append(Step(way, options, shape, members))


def take(work: str = "update") -> Taken:
    return _STEP[0].take(work)


def keep_gradient(file: Path) -> None:
    torch.save(_STEP[0].gradient(), file)


# --------------------------------------------------------------------------------------- measuring


Processes = Mapping[str, ProcessPoolExecutor]


def measure(
    processes: Processes,
    options: argparse.Namespace,
    shape: Shape,
    members: int,
    work: Sequence[str] = ("update",),
    summary: Callable[[Iterable[float]], float] = statistics.median,
) -> tuple[dict[str, dict[str, Taken]], dict[str, float]]:
    """Return the costs of each way, and the distance of its gradient from the first way.

    Args:
        processes: A process for each way.
        options: The options of the command.
        shape: The shape of the group.
        members: Number of members of the group.
        work: What is measured, see `Step.take`; the last is ``"update"``.
        summary: Reduces the numbers of all rounds to one number.
    """
    for way, process in processes.items():
        process.submit(prepare, way, options, shape, members).result()
    taken: dict[str, dict[str, list[Taken]]] = {
        name: {way: [] for way in processes} for name in work
    }
    for _ in range(options.rounds):
        for name, way in product(work, processes):
            taken[name][way].append(processes[way].submit(take, name).result())
    apart = {}
    with tempfile.TemporaryDirectory() as scratch:
        for way, process in processes.items():
            process.submit(keep_gradient, Path(scratch) / way).result()
        first = torch.load(Path(scratch) / "shared")
        for way in processes:
            apart[way] = difference(torch.load(Path(scratch) / way), first)
    costs = {
        name: {way: Taken(*map(summary, zip(*each, strict=True)))
               for way, each in ways.items()}
        for name, ways in taken.items()
    }  # fmt: skip
    return costs, apart


def difference(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """Return the distance of two gradients, relative to the norm of the second."""
    assert one.keys() == other.keys()
    apart = sum(float((one[name] - other[name]).double().square().sum()) for name in other)
    return math.sqrt(apart / sum(float(each.double().square().sum()) for each in other.values()))


def mfu(options: argparse.Namespace, tokens: int, seconds: float) -> float:
    """Return the model FLOPs utilization: 6 N T / (t F).

    N: weights of the language model's layers, T: tokens read, t: seconds, F: peak of the device.
    Attention, the output head and recomputation by checkpointing are not counted, so that the true
    utilization is higher.
    """
    layers = weights(options.folder)["layers"]
    return float(6 * layers * tokens / seconds / options.peak_tflops / 1e12)


def report(
    processes: Processes, options: argparse.Namespace, shape: Shape, members: int
) -> Iterator[str]:
    """Yield the lines of one shape."""
    measured, apart = measure(processes, options, shape, members)
    taken = measured["update"]
    shared = taken["shared"]
    yield (
        f"\n{shape}, G = {members}: {shape.read(members)} tokens read of {shape.whole(members)}"
        f" (with one level of sharing {shape.one_level(members)})"
    )
    yield f"{'':60}times as much as shared takes"
    yield (
        "           text s  vision s    wall s  episodes/s  MiB  gradient  "
        " text  with vision  memory"
    )
    for way, one in taken.items():
        times = (one.text / shared.text, one.whole / shared.whole, one.memory / shared.memory)
        yield (
            f"{way:8} {one.text:8.2f} {one.vision:9.2f} {one.wall:9.2f} "
            f"{members / one.whole:11.3f} {one.memory:4.0f} {apart[way]:9.1e} "
            "{:6.2f} {:12.2f} {:7.2f}".format(*times)
        )
    ceiling = shape.ceiling(members)
    for way in ("padded", "loop"):
        if way in taken:
            gain = taken[way].text / shared.text
            yield f"ceiling {ceiling:.2f}, reached against {way} {gain:.2f} = {gain / ceiling:.0%}"
    if options.peak_tflops:
        used = mfu(options, shape.read(members), shared.text)
        yield f"MFU of shared, text: {used:.1%}"


def heading(options: argparse.Namespace) -> str:
    """Return the versions and sizes."""
    names = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "trl"))
    sizes = ", ".join(f"{part} {one / 1e6:.2f} M" for part, one in weights(options.folder).items())
    return (
        f"python {platform.python_version()}, {names}; {options.dtype}, {options.device}, "
        f"{options.threads} thread(s), {options.rounds} rounds, "
        f"checkpointing {options.checkpointing}, load {os.getloadavg()[0]:.1f}\n"
        f"{options.size} Qwen2.5-VL: {sizes}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument(
        "--size", default="22m", help="8m, 22m, or 3b: Qwen2.5-VL-3B's architecture"
    )
    parser.add_argument("--members", type=int, nargs="+", default=[8])
    parser.add_argument("--shapes", type=int, nargs="+", default=range(len(SHAPES)))
    parser.add_argument("--ways", nargs="+", default=list(WAYS[:4]), choices=WAYS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--at-once", type=int, default=1, help="shapes measured at the same time")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--peak-tflops", type=float, default=0, help="peak of the device")
    parser.add_argument("--folder", type=Path, help="folder of the model")
    options = parser.parse_args()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options.folder = build(options.folder or scratch / "model", options.size)
        print(heading(options), flush=True)
        free: SimpleQueue[Processes] = SimpleQueue()
        for _ in range(options.at_once):
            free.put({
                way: stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
                for way in options.ways
            })  # fmt: skip

        def cell(shape: Shape, members: int) -> str:
            processes = free.get()
            try:
                return "\n".join(report(processes, options, shape, members))
            finally:
                free.put(processes)

        cells = [(SHAPES[number], each) for number in options.shapes for each in options.members]
        with ThreadPoolExecutor(options.at_once) as pool:
            for lines in pool.map(cell, *zip(*cells, strict=True)):
                print(lines, flush=True)


if __name__ == "__main__":
    main()
