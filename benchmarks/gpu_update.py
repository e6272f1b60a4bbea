"""Measures and profiles updates of `gpu.py`: those of visenv, a padded loop, and those of TRL."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
import transformers

from benchmarks.gpu_costs import model_size, needed_flops, training_bytes
from benchmarks.gpu_policy import Machine, loss_of, make_policy, scored
from benchmarks.random_vlm import REAL, Shape, group
from visenv.algos.trainer.micro_batches import pinned
from visenv.policies.transformers.pack import pack


class Float32AdamW:
    """Optimizes weights by AdamW on a float32 copy, as DeepSpeed does for bfloat16 weights.

    The gradient of a weight is added to the float32 gradient of its copy as soon as it is complete,
    and freed.

    Args:
        weights: The trained weights.
        fused: Whether PyTorch computes a step in one kernel.
        lr: Learning rate.
    """

    def __init__(
        self, weights: Iterable[torch.nn.Parameter], *, fused: bool, lr: float = 0.0
    ) -> None:
        self._weights = list(weights)
        self._copies = [weight.detach().to(torch.float32, copy=True) for weight in self._weights]
        for weight, copy in zip(self._weights, self._copies, strict=True):
            copy.grad = torch.zeros_like(copy)
            weight.register_post_accumulate_grad_hook(_adds_to(copy.grad))
        self._adamw = torch.optim.AdamW(self._copies, lr=lr, fused=fused)

    @torch.no_grad()
    def step(self) -> None:
        """Update the copies and the weights, and set the gradients to 0."""
        self._adamw.step()
        for weight, copy in zip(self._weights, self._copies, strict=True):
            weight.copy_(copy)
        self._adamw.zero_grad(set_to_none=False)


def _adds_to(total: torch.Tensor) -> Callable[[torch.Tensor], None]:
    def add(weight: torch.Tensor) -> None:
        assert weight.grad is not None
        total.add_(weight.grad)
        weight.grad = None

    return add


def trl_problem() -> str | None:
    """Import TRL, and return why it does not load, or None.

    It is imported before a model exists: `datasets` keeps the error of an optional import, whose
    frames would keep the model of the first update on the device.
    """
    try:
        importlib.import_module("benchmarks.peer_trl")
    except ImportError as error:
        return f"trl does not load: {error}"
    return None


class Seconds(NamedTuple):
    """Holds the seconds of an update, and those of its optimizer alone."""

    whole: float
    optimizer: float


class Update:
    """Takes updates on one group in one way.

    Args:
        machine: The machine.
        size: Size of the model.
        shape: Shape of the episodes.
        way: ``"shared"`` or ``"unshared"`` (visenv), ``"loop"`` (a padded batch of the stock
            model), or ``"trl"``.
        attention: Attention of the stock model, for ``"loop"``.
    """

    def __init__(
        self, machine: Machine, size: str, shape: Shape, way: str, attention: str = "sdpa"
    ) -> None:
        self._machine = machine
        dtype = "bfloat16" if machine.device != "cpu" else "float32"
        self._policy = make_policy(machine, size, dtype, gradient_checkpointing=size in REAL)
        self._segments, self._images = group(self._policy, shape, machine.members)
        self._policy.network.head.banned.zero_()  # the peers ban nothing
        self._advantages = torch.linspace(-1, 1, machine.members).to(machine.device)
        self._policy.train_mode(True)
        self.model: Any = self._policy.network.model
        self.pack_seconds: float | None = None
        if way in ("shared", "unshared"):
            self._loss = self._loss_of_visenv(share=way == "shared")
        else:
            self._loss = self._loss_of_a_peer(way, attention)
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        self._optimizer = Float32AdamW(trained, fused=machine.device != "cpu")

    def _loss_of_visenv(self, *, share: bool) -> Callable[[], torch.Tensor]:
        """Return the loss of a batch that is packed once, as the trainer prefetches batches."""
        begun = self._machine.now()
        packed = pack(self._policy.codec, self._segments, self._images, share=share)
        self.pack_seconds = self._machine.now() - begun
        ready = pinned(packed)
        return lambda: loss_of(scored(self._policy, ready), self._advantages)

    def _loss_of_a_peer(self, way: str, attention: str) -> Callable[[], torch.Tensor]:
        """Return the loss of a peer, which uses the model of the policy with the stock head."""
        head = torch.nn.Linear(1, 1, bias=False)
        head.weight = self._policy.network.head.weight
        self.model.set_output_embeddings(head)
        parts = ((self.model.model.language_model, attention), (self.model.model.visual, "sdpa"))
        for part, name in parts:
            part.config._attn_implementation = name  # noqa: SLF001 - as transformers sets it
        folder = self._machine.scratch / "none"
        options: dict[str, Any] = {"checkpointing": False}  # the policy has set it
        dtype = self.model.dtype
        real = transformers.AutoModelForImageTextToText
        with mock.patch.object(real, "from_pretrained", return_value=self.model):
            if way == "loop":
                from benchmarks.peer_loop import Loop

                loop = Loop(folder, self._policy, self._machine.device, dtype, **options)
                batch = loop.inputs(self._segments, self._images)
                return lambda: loop.loss(batch, self._advantages)
            from benchmarks.peer_trl import Peer

            folder = Path(self._policy.codec.processor.tokenizer.name_or_path)
            trl = Peer(
                folder, self._policy, self._machine.device, dtype, self._machine.members,
                sampled_only=self._machine.device != "cpu", **options,
            )  # fmt: skip
            self.model = trl.model
            inputs = trl.inputs(self._segments, self._images, self._advantages)
            return lambda: trl.loss(inputs)

    def take(self) -> Seconds:
        """Take an update, and return its seconds."""
        begun = self._machine.now()
        self._loss().backward()
        ready = self._machine.now()
        self._optimizer.step()
        done = self._machine.now()
        return Seconds(done - begun, done - ready)


def measure_update(
    machine: Machine, size: str, turns: str, way: str, attention: str = "sdpa"
) -> dict[str, Any]:
    """Measure an update.

    Returns:
        Its median seconds; the tokens of all segments per second, in which a shared token counts
        once for each segment; MFU; memory of the trained state as computed, and the measured peak.
    """
    cuda = machine.device != "cpu"
    if cuda:
        torch.cuda.reset_peak_memory_stats(machine.device)
    shape = machine.turns[turns]
    update = Update(machine, size, shape, way, attention)
    update.take()  # compiles kernels, and allocates the moments
    taken = [update.take() for _ in range(machine.rounds)]
    seconds = statistics.median(one.whole for one in taken)
    model = model_size(size, machine.layers(size))
    flops = needed_flops(model, shape, machine.members)
    return {
        "size": size,
        "layers": model.layers,
        "layers_of_the_size": model_size(size).layers,
        "turns": turns,
        "members": machine.members,
        "way": way,
        "attention": "visenv" if way in ("shared", "unshared") else attention,
        "seconds": seconds,
        "optimizer_seconds": statistics.median(one.optimizer for one in taken),
        "pack_seconds": update.pack_seconds,
        "tokens_per_second": shape.whole(machine.members) / seconds,
        "needed_tflops": flops / 1e12,
        "mfu": flops / seconds / machine.peak,
        "state_gib": training_bytes(model) / 2**30,
        "peak_gib": torch.cuda.max_memory_allocated(machine.device) / 2**30 if cuda else None,
    }


def profile_update(machine: Machine, size: str) -> dict[str, Any]:
    """Return the kernels, launches and waits of the host of one update."""
    from torch.profiler import ProfilerActivity, profile

    update = Update(machine, size, machine.turns["two turns"], "shared")
    update.take()
    cuda = machine.device != "cpu"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as profiler:
        seconds = update.take().whole
    events = profiler.key_averages()
    return {"size": size, "seconds": seconds, **summarize(events, on_gpu=cuda)}


def summarize(events: Iterable[Any], *, on_gpu: bool, longest: int = 10) -> dict[str, Any]:
    """Summarize the averages of a profile.

    An operator on the host also has the time of the kernels that it launches, and an annotation
    (such as that of an optimizer step) has the time of all kernels inside of it. On a GPU, only the
    kernels themselves are counted. On a CPU, operators take the place of kernels.

    Args:
        events: The averages, as `key_averages` of PyTorch's profiler returns them.
        on_gpu: Whether kernels ran on a GPU.
        longest: Number of kernels in the list of the longest ones.
    """
    averages = list(events)
    field = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    where = "CUDA" if on_gpu else "CPU"

    def count(*names: str) -> int:
        return sum(event.count for event in averages if event.key.startswith(names))

    def microseconds(event: Any) -> float:
        return float(getattr(event, field))

    work = [
        event
        for event in averages
        if event.device_type.name == where and not event.is_user_annotation
    ]
    kernels = [event for event in work if not event.key.startswith(("Memcpy", "Memset"))]
    return {
        "busy_seconds": sum(map(microseconds, work)) / 1e6,
        "kernels": sum(event.count for event in kernels),
        "launches": count("cudaLaunchKernel", "cuLaunchKernel"),
        # `cudaDeviceSynchronize` is only called to measure the time.
        "host_syncs": count("cudaStreamSynchronize", "cudaEventSynchronize"),
        "copies": count("cudaMemcpyAsync"),
        "longest": [
            {"name": event.key[:80], "ms": microseconds(event) / 1e3, "count": event.count}
            for event in sorted(work, key=microseconds, reverse=True)[:longest]
        ],
    }
