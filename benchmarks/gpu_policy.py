"""Builds policies with random weights of real shapes, and measures their numerics and sampling."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_costs import layers_that_fit, model_size
from benchmarks.random_vlm import REAL, SIZES, Shape, build, full_blocks, group
from visenv.policies.transformers import TransformersPolicy
from visenv.policies.transformers.pack import PackedBatch, pack
from visenv.policy import TokenScores
from visenv.types import Image, Message, Sampling, TurnRequest

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
        whole = model_size(size)
        if not self.memory:
            return whole.layers
        return layers_that_fit(whole, self.memory, ACTIVATIONS)


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
    vision.fullatt_block_indexes = full_blocks(depth)
    vision.config.depth = depth


def _grow(blocks: torch.nn.ModuleList, count: int) -> None:
    # Copies share the configuration of the model, which selects the attention of all layers.
    configs = [module.config for module in blocks[0].modules() if hasattr(module, "config")]
    while len(blocks) < count:
        block = copy.deepcopy(blocks[0], {id(config): config for config in configs})
        for weight in block.parameters():
            if weight.dim() > 1:
                weight.data.normal_(0.0, 0.02)
        blocks.append(block)


def scored(policy: TransformersPolicy, packed: PackedBatch) -> TokenScores:
    """Score a batch as the trainer does, and run the vision tower on its images again."""
    policy.network.forget()
    scores: TokenScores = policy.module(packed)
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
        scores = scored(policy, pack(policy.codec, segments, images))
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
            scores = scored(policy, pack(policy.codec, segments, images, share=share))
            passes[name] = scores.logprobs.float()[scores.mask]
        policy.network.model.float()
        scores = scored(policy, pack(policy.codec, segments, images))
        passes["float32"] = scores.logprobs[scores.mask]
    pairs = [(name, "float32") for name in passes if name != "float32"]
    pairs += [("shared", "unshared"), ("shared, float32 head", "unshared, float32 head")]
    gaps = {}
    for one, other in pairs:
        gap = (passes[one] - passes[other]).abs()
        gaps[f"{one} - {other}"] = {"mean": float(gap.mean()), "most": float(gap.max())}
    return gaps


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
