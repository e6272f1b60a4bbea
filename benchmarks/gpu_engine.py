"""Measures updates, their numerics and sampling of `gpu.py` with random weights of real shapes."""

from __future__ import annotations

import asyncio
import copy
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
import transformers

from benchmarks.model_costs import MFU_FORMULA, Architecture
from benchmarks.random_vlm import REAL, SIZES, Shape, build, group
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.transformers.pack import pack
from visenv.policy import TokenScores
from visenv.types import Image, Message, Sampling, Segment, TurnRequest

ACTIVATIONS = 10 * 2**30
"""Bytes that are left for activations and logits if the number of layers is chosen."""


@dataclass(frozen=True)
class Machine:
    """Describes where and how large the measurements are.

    Attributes:
        device: Device of PyTorch.
        scratch: Folder for checkpoints.
        peak: Peak of the device in FLOP/s for bfloat16.
        members: Members of a group.
        rounds: Updates that are measured; the median counts.
        turns: Shape of episodes with one turn, and with two turns and a tool image, by name.
        sessions: Conversations that are sampled at the same time.
        new_tokens: Sampled tokens of each conversation.
    """

    device: str
    scratch: Path
    peak: float
    members: int
    rounds: int
    turns: Mapping[str, Shape]
    sessions: int
    new_tokens: int

    @property
    def memory(self) -> int:
        """Return the bytes of the device, or 0 for a CPU."""
        if self.device == "cpu":
            return 0
        return int(torch.cuda.get_device_properties(self.device).total_memory)

    def now(self) -> float:
        """Return the time in seconds, after all work of the device."""
        if self.device != "cpu":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def layers(self, size: str) -> int:
        """Return the number of layers of a size whose training fits in the memory of the device."""
        whole = Architecture.of(size)
        if not self.memory:
            return whole.layers
        return whole.layers_that_fit(self.memory, ACTIVATIONS)


# ------------------------------------------------------------------------------------- models


def make_policy(machine: Machine, size: str, dtype: str, **options: Any) -> TransformersPolicy:
    """Return a policy of a size.

    Of a real size, only one layer is read from the disk; the others are made on the device.

    Args:
        machine: The machine.
        size: A key of `random_vlm.SIZES`.
        dtype: Type of the weights.
        options: Arguments of `TransformersPolicy`.
    """
    real = size in REAL
    folder = machine.scratch / size
    build(folder, size, layers=1 if real else None, depth=1 if real else None)
    policy = TransformersPolicy(
        folder,
        device=machine.device,
        dtype=dtype,
        freeze_vision=True,
        threads=None if machine.device != "cpu" else 1,
        **options,
    )
    if real:
        deepen(policy, machine.layers(size), int(SIZES[size]["vision"]["depth"]))
    return policy


def deepen(policy: TransformersPolicy, layers: int, depth: int) -> None:
    """Add copies of the first layer and block, with new random weights, on the device."""
    model: Any = policy.network.model
    text, vision = model.model.language_model, model.model.visual
    _grow(text.layers, layers)
    for number, layer in enumerate(text.layers):
        layer.self_attn.layer_idx = number
    _grow(vision.blocks, depth)
    for config in (model.config.text_config, text.config):
        config.num_hidden_layers = layers
        config.layer_types = ["full_attention"] * layers
    vision.fullatt_block_indexes = list(range(7, depth, 8))
    vision.config.depth = depth


def _grow(blocks: torch.nn.ModuleList, count: int) -> None:
    while len(blocks) < count:
        block = copy.deepcopy(blocks[0])
        for weight in block.parameters():
            if weight.dim() > 1:
                weight.data.normal_(0.0, 0.02)
        blocks.append(block)


def scored(
    policy: TransformersPolicy,
    segments: Sequence[Segment],
    images: Mapping[str, Image],
    share: bool,
) -> TokenScores:
    """Score segments in one pass, as the trainer does, after looking at the images again."""
    policy.network.vision.forget()
    scores: TokenScores = policy.module(pack(policy.codec, segments, images, share=share))
    return scores


def loss_of(scores: TokenScores, advantages: torch.Tensor) -> torch.Tensor:
    """Return the policy-gradient loss: the mean over all sampled tokens."""
    ratio = torch.exp(scores.logprobs - scores.logprobs.detach())
    return -(advantages[:, None] * ratio * scores.mask).sum() / scores.mask.sum()


# ------------------------------------------------------------------------------------- numerics


def parity(machine: Machine, folder: Path) -> dict[str, float]:
    """Compare the device with the CPU in float32 on a tiny model.

    Returns:
        The largest difference of the log-probabilities in nats, and the distance of the gradients
        relative to their norm.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    found: list[tuple[torch.Tensor, dict[str, torch.Tensor]]] = []
    for device in ("cpu", machine.device):
        policy = TransformersPolicy(folder, device=device, threads=1)
        segments, images = group(policy, Shape(450, 1, 40, 300), 4)
        scores = scored(policy, segments, images, share=True)
        loss_of(scores, torch.linspace(-1, 1, 4).to(device)).backward()
        named = policy.network.model.named_parameters()
        gradients = {name: one.grad.cpu() for name, one in named if one.grad is not None}
        found.append((scores.logprobs.detach().cpu(), gradients))
    (here, own), (there, other) = found
    apart = sum(float((own[name] - other[name]).square().sum()) for name in own)
    norm = sum(float(one.square().sum()) for one in own.values())
    return {
        "logprobs": float((here - there).abs().max()),
        "gradients": (apart / norm) ** 0.5,
    }


def bf16_gaps(machine: Machine, size: str) -> dict[str, dict[str, float]]:
    """Return the mean and the largest gap of log-probabilities in nats, of pairs of passes.

    Passes in bfloat16 have shared or unshared prefixes, and a head of the weights' type or of
    float32. The last pass is in float32.
    """
    policy = make_policy(machine, size, "bfloat16")
    segments, images = group(policy, machine.turns["two turns"], machine.members)
    head: Any = policy.network.head
    passes: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        for name, share, single in (
            ("shared", True, False),
            ("unshared", False, False),
            ("shared, float32 head", True, True),
            ("unshared, float32 head", False, True),
        ):
            head._single = single  # noqa: SLF001 - an option of the constructor
            scores = scored(policy, segments, images, share)
            passes[name] = scores.logprobs.float()[scores.mask]
        policy.network.model.float()
        scores = scored(policy, segments, images, share=True)
        passes["float32"] = scores.logprobs[scores.mask]
    pairs = [(name, "float32") for name in passes if name != "float32"]
    pairs += [("shared", "unshared"), ("shared, float32 head", "unshared, float32 head")]
    gaps = {}
    for one, other in pairs:
        gap = (passes[one] - passes[other]).abs()
        gaps[f"{one} - {other}"] = {"mean": float(gap.mean()), "most": float(gap.max())}
    return gaps


# ------------------------------------------------------------------------------------- updates


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
        self._loss = self._loss_of_a_peer(way, attention) or (
            lambda: loss_of(
                scored(self._policy, self._segments, self._images, share=way == "shared"),
                self._advantages,
            )
        )
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.AdamW(trained, lr=0.0, fused=machine.device != "cpu")

    def _loss_of_a_peer(self, way: str, attention: str) -> Callable[[], torch.Tensor] | None:
        """Return the loss of a peer, which uses the model of the policy with the stock head."""
        if way in ("shared", "unshared"):
            return None
        head = torch.nn.Linear(1, 1, bias=False)
        head.weight = self._policy.network.head.weight
        self.model.set_output_embeddings(head)
        for part in (self.model.model.language_model, self.model.model.visual):
            part.config._attn_implementation = attention  # noqa: SLF001 - as transformers sets it
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

    def take(self) -> float:
        """Take an update, and return its seconds."""
        self._optimizer.zero_grad()
        start = self._machine.now()
        self._loss().backward()
        self._optimizer.step()
        return self._machine.now() - start


def measure_update(
    machine: Machine, size: str, turns: str, way: str, attention: str = "sdpa"
) -> dict[str, Any]:
    """Return the median seconds of an update with tokens per second, MFU and peak memory."""
    gc.collect()
    if machine.device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(machine.device)
    shape = machine.turns[turns]
    update = Update(machine, size, shape, way, attention)
    update.take()  # compiles kernels, and allocates the moments
    seconds = statistics.median(update.take() for _ in range(machine.rounds))
    layers = machine.layers(size)
    flops = Architecture.of(size, layers).update_flops(shape, machine.members)
    cuda = machine.device != "cpu"
    return {
        "size": size,
        "layers": layers,
        "layers_of_the_size": Architecture.of(size).layers,
        "turns": turns,
        "members": machine.members,
        "way": way,
        "attention": "visenv" if way in ("shared", "unshared") else attention,
        "seconds": seconds,
        "tokens_per_second": shape.whole(machine.members) / seconds,
        "needed_tflops": flops / 1e12,
        "mfu": flops / seconds / machine.peak,
        "mfu_formula": MFU_FORMULA,
        "peak_gib": torch.cuda.max_memory_allocated(machine.device) / 2**30 if cuda else None,
    }


def profile_update(machine: Machine, size: str, kernels: int = 10) -> dict[str, Any]:
    """Return kernels, launches and waits of the host of one update, and the longest kernels."""
    from torch.profiler import ProfilerActivity, profile

    update = Update(machine, size, machine.turns["two turns"], "shared")
    update.take()
    cuda = machine.device != "cpu"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as profiler:
        seconds = update.take()
    events = profiler.key_averages()
    field = "self_device_time_total" if cuda else "self_cpu_time_total"

    def count(*names: str) -> int:
        return sum(event.count for event in events if event.key.startswith(names))

    longest = sorted(events, key=lambda event: -getattr(event, field))[:kernels]
    on_device = [event for event in events if str(event.device_type).endswith("CUDA")]
    return {
        "size": size,
        "seconds": seconds,
        "busy_seconds": sum(getattr(event, field) for event in events) / 1e6,
        "kernels": sum(event.count for event in (on_device or events)),
        "launches": count("cudaLaunchKernel", "cuLaunchKernel"),
        "host_syncs": count(
            "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"
        ),
        "copies": count("cudaMemcpyAsync"),
        "longest": [
            {"name": event.key[:80], "ms": getattr(event, field) / 1e3, "count": event.count}
            for event in longest
        ],
    }


# ------------------------------------------------------------------------------------- sampling


def measure_sampling(machine: Machine, policy: Any) -> dict[str, Any]:
    """Return the tokens per second of a policy that samples many conversations at the same time."""
    side = 392 if machine.device != "cpu" else 84
    pixels = np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)
    message = Message("user", (Image.from_pixels(pixels), "what is in the crop " * 4))

    async def talk() -> list[Any]:
        sessions = [policy.open(seed) for seed in range(machine.sessions)]
        for session in sessions:
            session.observe((message,))
        sampling = Sampling(1.0, machine.new_tokens)
        replies = (policy.respond(session, TurnRequest(), sampling) for session in sessions)
        return await asyncio.gather(*replies)

    asyncio.run(talk())  # compiles kernels
    start = machine.now()
    replies = asyncio.run(talk())
    seconds = machine.now() - start
    tokens = sum(len(reply.token_ids) for reply in replies)
    return {
        "sessions": machine.sessions,
        "tokens": tokens,
        "seconds": seconds,
        "tokens_per_second": tokens / seconds,
    }
