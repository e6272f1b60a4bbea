"""Builds Qwen2.5-VL models of any size with random weights, and episodes of any shape.

They are used to measure training; the measurements do not depend on the values of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
import transformers
from safetensors import safe_open
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.policies.tokens.processor import save_processor
from visenv.policies.transformers import (
    TinyConfig,
    TransformersPolicy,
    build_tiny,
    collect_texts,
)
from visenv.policies.transformers.checkpoint import save_model
from visenv.types import Image, ImageSpan, Segment, TurnSpan

SIZES: dict[str, dict[str, dict[str, Any]]] = {
    # The proportions of the 3B, so that the same parts dominate the cost: an MLP 5.4 times as wide
    # as the rest, heads of 128 with few keys, an output head with 11 % of the layers' weights.
    "22m": {
        "text": {
            "hidden_size": 640, "num_hidden_layers": 2, "num_attention_heads": 5,
            "num_key_value_heads": 1, "intermediate_size": 3440, "vocab_size": 2560,
        },
        "vision": {"depth": 2, "hidden_size": 320, "num_heads": 4, "intermediate_size": 856},
    },
    # The same proportions, but with an output head of 18 %, and a larger share of attention.
    "8m": {
        "text": {
            "hidden_size": 384, "num_hidden_layers": 2, "num_attention_heads": 3,
            "num_key_value_heads": 1, "intermediate_size": 2064, "vocab_size": 2560,
        },
        "vision": {"depth": 2, "hidden_size": 192, "num_heads": 4, "intermediate_size": 516},
    },
    # Qwen/Qwen2.5-VL-3B-Instruct
    "3b": {
        "text": {
            "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16,
            "num_key_value_heads": 2, "intermediate_size": 11008, "vocab_size": 151936,
        },
        "vision": {"depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420},
    },
    # Qwen/Qwen2.5-VL-7B-Instruct
    "7b": {
        "text": {
            "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28,
            "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064,
            "tie_word_embeddings": False,
        },
        "vision": {"depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420},
    },
}  # fmt: skip

REAL = ("3b", "7b")
"""Sizes of published models, whose weights are stored in bfloat16."""

IMAGE_TOKENS = 196
"""Tokens of an image of a prompt: 14 by 14."""
RESULT_TOKENS = 256
"""Tokens of the image of a tool result: 16 by 16."""


def full_blocks(depth: int) -> list[int]:
    """Return the blocks of a vision tower that attend to the whole image; the others to windows."""
    return list(range(7, depth, 8)) or [depth - 1]


def build(folder: Path, size: str, *, layers: int | None = None, depth: int | None = None) -> Path:
    """Write a checkpoint with the tiny tokenizer; the other rows of the output head are padding.

    Args:
        folder: Folder of the checkpoint, which is not written again if it exists.
        size: A key of `SIZES`.
        layers: Number of layers of the language model, if not that of the size.
        depth: Number of blocks of the vision tower, if not that of the size.
    """
    if (folder / "config.json").exists():
        return folder
    texts = collect_texts(lambda: gym.make("visenv/ZoomVQA-v0", preset="tiny"), episodes=16)
    tiny = build_tiny(folder / "tiny", texts, TinyConfig("qwen2_5_vl", patch_size=14))
    config = transformers.AutoConfig.from_pretrained(tiny)
    text, vision = config.text_config, config.vision_config
    for part, values in ((text, SIZES[size]["text"]), (vision, SIZES[size]["vision"])):
        for name, value in values.items():
            setattr(part, name, value)
    text.num_hidden_layers, vision.depth = layers or text.num_hidden_layers, depth or vision.depth
    config.tie_word_embeddings = text.tie_word_embeddings
    text.layer_types = ["full_attention"] * text.num_hidden_layers
    half = text.hidden_size // text.num_attention_heads // 2
    text.rope_parameters["mrope_section"] = [half // 4, half * 3 // 8, half * 3 // 8]
    vision.out_hidden_size = text.hidden_size
    vision.fullatt_block_indexes = full_blocks(vision.depth)
    text.max_position_embeddings, text.initializer_range = 32768, 0.02
    torch.manual_seed(0)
    model: Any = transformers.Qwen2_5_VLForConditionalGeneration(config)
    save_model(model.to(torch.bfloat16) if size in REAL else model, folder)
    save_processor(transformers.AutoProcessor.from_pretrained(tiny), folder)
    return folder


def weights(folder: Path) -> dict[str, int]:
    """Return the number of weights of the parts: text layers, output head, vision tower."""
    counts = {"layers": 0, "head": 0, "vision": 0}
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as stored:
            for name in stored.keys():  # noqa: SIM118 - no mapping
                size = math.prod(stored.get_slice(name).get_shape())
                if "visual" in name:
                    counts["vision"] += size
                elif ".layers." in name:
                    counts["layers"] += size
                elif "embed_tokens" in name:  # tied to the head
                    counts["head"] += size
    return counts


@dataclass(frozen=True)
class Shape:
    """Describes the segments of one group; lengths in tokens.

    Attributes:
        prompt: Length of the shared prompt, with its images.
        images: Images in the prompt, of 196 tokens each.
        sampled: Sampled tokens of each segment, in two turns if there are tokens between them.
        shown: Tokens of the environment between the turns: an image of 256 tokens, the rest text.
        alike: Number of members that sample the same first turn, and thus get the same result.
        contexts: Segments of each member, for contexts that are rebuilt.
        step: Tokens of the history that each further context keeps in addition to the previous one.
    """

    prompt: int
    images: int
    sampled: int
    shown: int = 0
    alike: int = 1
    contexts: int = 1
    step: int = 0

    @override
    def __str__(self) -> str:
        tool = f" + {self.shown} shown" if self.shown else ""
        alike = f", {self.alike} members alike" if self.alike > 1 else ""
        rebuilt = f", {self.contexts} contexts + {self.step} each" if self.contexts > 1 else ""
        return f"({self.prompt}, {self.sampled}{tool}{alike}{rebuilt})"

    def whole(self, members: int) -> int:
        """Return the tokens of all segments, one by one."""
        history = self.step * self.contexts * (self.contexts - 1) // 2
        return members * (self.contexts * (self.prompt + self._own) + history)

    def one_level(self, members: int) -> int:
        """Return the number of tokens if only the prompt is read once."""
        return self.whole(members) - self.prompt * (members * self.contexts - 1)

    def read(self, members: int) -> int:
        """Return the number of tokens if every common prefix is read once."""
        history = self.step * (self.contexts - 1)
        turns = (members - members // self.alike) * (self.sampled // 2 + self.shown)
        repeated = turns if self.alike > 1 else 0
        return self.prompt + members * (self.contexts * self._own + history) - repeated

    def ceiling(self, members: int) -> float:
        """Return the ratio of the tokens without sharing to the tokens with sharing."""
        return self.whole(members) / self.read(members)

    @property
    def _own(self) -> int:
        return self.sampled + self.shown


SHAPES = (
    Shape(600, 2, 100, 300),
    Shape(600, 2, 100, 300, alike=4),
    Shape(300, 1, 50, contexts=4, step=100),
    Shape(600, 2, 100),
    Shape(1100, 4, 100),
)
"""Shapes, starting with those with tools."""


def group(
    policy: TransformersPolicy, shape: Shape, members: int
) -> tuple[list[Segment], dict[str, Image]]:
    """Return the segments of a group, and their images."""
    rng = np.random.default_rng(0)
    words = np.flatnonzero(~policy.codec.banned)
    images: list[Image] = []

    def text(length: int) -> list[int]:
        chosen: list[int] = rng.choice(words, length).tolist()
        return chosen

    def picture(side: int) -> Image:
        images.append(
            Image.from_pixels(rng.integers(0, 256, (28 * side, 28 * side, 3), dtype=np.uint8))
        )
        return images[-1]

    prompt: list[Any] = [text(10)]
    for _ in range(shape.images):
        prompt += [picture(14), text(2)]
    prompt.append(text(shape.prompt - 10 - shape.images * (IMAGE_TOKENS + 2)))
    segments = []
    begun: list[Any] = []
    for member in range(members):
        if shape.shown and member % shape.alike == 0:
            turn = _Turn(text(shape.sampled // 2))
            begun = [turn, text(2), picture(16), text(shape.shown - RESULT_TOKENS - 2)]
        history: list[int] = []
        for _ in range(shape.contexts):
            rest = shape.sampled - (shape.sampled // 2 if shape.shown else 0)
            segments.append(_segment(policy, [*prompt, history, *begun, _Turn(text(rest))]))
            history = history + text(shape.step)
    return segments, {image.sha256: image for image in images}


class _Turn(list[int]):
    """Holds sampled tokens."""


def _segment(policy: TransformersPolicy, parts: Sequence[Any]) -> Segment:
    codec = policy.codec
    tokens: list[int] = []
    spans: list[ImageSpan] = []
    turns: list[TurnSpan] = []
    for part in parts:
        start = len(tokens)
        if isinstance(part, Image):
            own, shown = codec.family.show(part, start)
            spans += [span for span in shown.spans if isinstance(span, ImageSpan)]
            tokens += own
            continue
        tokens += part
        if isinstance(part, _Turn):
            turns.append(TurnSpan(len(turns), start, len(tokens), "stop"))
    mask = np.zeros(len(tokens), np.bool_)
    for turn in turns:
        mask[turn.start : turn.end] = True
    return Segment(
        token_ids=np.array(tokens, np.int32),
        loss_mask=mask,
        logprobs=np.zeros(len(tokens), np.float32),
        policy_version=np.zeros(len(tokens), np.int32),
        turns=tuple(turns),
        images=tuple(spans),
        placeholder_ids=codec.family.placeholder_ids,
        temperature=1.0,
        processor=codec.family.fingerprint(with_videos=False),
    )
