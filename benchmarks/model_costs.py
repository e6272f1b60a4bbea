"""Counts weights, FLOPs and memory of a Qwen2.5-VL from its shapes, without a model or a GPU.

The FLOPs are those that an update needs: the forward pass of every distinct token and image, and
twice as much for the gradient of the language model. The vision tower is frozen and has no
gradient. Softmax, norms and activations are not counted, nor is what gradient checkpointing
computes again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from benchmarks.random_vlm import SIZES, Shape

MERGE = 4
"""Patches of an image that the vision tower merges into one token."""

PATCH_VALUES = 3 * 2 * 14 * 14
"""Numbers of a patch: colors, frames, height, width."""

IMAGE_TOKENS = 196
RESULT_TOKENS = 256
"""Tokens of an image of the prompt and of a tool result (`random_vlm.group`)."""

MFU_FORMULA = "MFU = FLOPs needed by the shared pass / (seconds * peak FLOP/s of the device)"

_FULL_BLOCKS = 4
"""Blocks of the vision tower that attend over the whole image; the others use windows."""
_WINDOW = 64
"""Patches of a window."""


@dataclass(frozen=True)
class Architecture:
    """Holds the shapes of a Qwen2.5-VL.

    Attributes:
        hidden: Width of the language model.
        layers: Layers of the language model.
        heads: Query heads.
        kv_heads: Key-value heads.
        mlp: Width of the feed-forward.
        vocabulary: Rows of the output head.
        tied: Whether the output head is the embedding.
        vision_hidden: Width of the vision tower.
        depth: Blocks of the vision tower.
        vision_mlp: Width of the feed-forward of the vision tower.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    mlp: int
    vocabulary: int
    tied: bool
    vision_hidden: int
    depth: int
    vision_mlp: int

    @classmethod
    def of(cls, size: str, layers: int | None = None) -> Architecture:
        """Return the architecture of a size of `random_vlm`, with another number of layers."""
        text: dict[str, Any] = SIZES[size]["text"]
        vision: dict[str, Any] = SIZES[size]["vision"]
        return cls(
            hidden=text["hidden_size"],
            layers=layers or text["num_hidden_layers"],
            heads=text["num_attention_heads"],
            kv_heads=text["num_key_value_heads"],
            mlp=text["intermediate_size"],
            vocabulary=text["vocab_size"],
            tied=text.get("tie_word_embeddings", True),
            vision_hidden=vision["hidden_size"],
            depth=vision["depth"],
            vision_mlp=vision["intermediate_size"],
        )

    # ------------------------------------------------------------------------ weights

    @property
    def layer_matrices(self) -> int:
        """Return the weights of the matrices of one layer: q, k, v, o and the feed-forward."""
        key_width = self.hidden // self.heads * self.kv_heads
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * key_width
        return attention + 3 * self.hidden * self.mlp

    @property
    def layer_weights(self) -> int:
        """Return all weights of one layer: matrices, biases of q, k and v, and two norms."""
        key_width = self.hidden // self.heads * self.kv_heads
        return self.layer_matrices + self.hidden + 2 * key_width + 2 * self.hidden

    @property
    def text_weights(self) -> int:
        """Return the trained weights: embedding, layers, last norm, and the head if not tied."""
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return embeddings + self.layers * self.layer_weights + self.hidden

    @property
    def block_matrices(self) -> int:
        """Return the weights of the matrices of one block of the vision tower."""
        return 4 * self.vision_hidden**2 + 3 * self.vision_hidden * self.vision_mlp

    @property
    def vision_weights(self) -> int:
        """Return all weights of the vision tower with its merger."""
        width = self.vision_hidden
        biases = 3 * width + width + 2 * self.vision_mlp + width
        block = self.block_matrices + biases + 2 * width
        merged = MERGE * width
        merger = width + merged * merged + merged + merged * self.hidden + self.hidden
        return PATCH_VALUES * width + self.depth * block + merger

    # ------------------------------------------------------------------------ FLOPs

    def text_flops(self, tokens: int, pairs: int, places: int) -> int:
        """Return the FLOPs of a forward pass of the language model.

        Args:
            tokens: Tokens that are read.
            pairs: Pairs of a token and a token to which it attends.
            places: Tokens whose log-probabilities are computed.
        """
        matrices = 2 * self.layers * self.layer_matrices * tokens
        attention = 4 * self.layers * self.hidden * pairs  # scores and weighted sums
        return matrices + attention + 2 * self.hidden * self.vocabulary * places

    def vision_flops(self, images: list[int]) -> int:
        """Return the FLOPs of a forward pass of the vision tower.

        Args:
            images: The number of patches of each image.
        """
        patches = sum(images)
        full = min(_FULL_BLOCKS, self.depth)
        pairs = full * sum(count * count for count in images)
        pairs += (self.depth - full) * patches * _WINDOW
        matrices = (
            2 * patches * (PATCH_VALUES * self.vision_hidden + self.depth * self.block_matrices)
        )
        merged = MERGE * self.vision_hidden
        merger = 2 * (patches // MERGE) * (merged * merged + merged * self.hidden)
        return matrices + 4 * self.vision_hidden * pairs + merger

    def update_flops(self, shape: Shape, members: int) -> int:
        """Return the FLOPs that an update on a group needs, with every shared prefix read once.

        Args:
            shape: One prompt for the group; each member has its own turns.
            members: Members of the group.
        """
        own = shape.sampled + shape.shown
        tokens = shape.prompt + members * own
        prompt_pairs = shape.prompt * (shape.prompt + 1) // 2
        own_pairs = own * shape.prompt + own * (own + 1) // 2
        text = self.text_flops(tokens, prompt_pairs + members * own_pairs, members * shape.sampled)
        results = members if shape.shown else 0
        images = [IMAGE_TOKENS * MERGE] * shape.images + [RESULT_TOKENS * MERGE] * results
        return 3 * text + self.vision_flops(images)

    # ------------------------------------------------------------------------ memory

    def training_bytes(self, weight: int = 2, gradient: int = 2, moments: int = 4) -> int:
        """Return the bytes of weights, gradients and AdamW's moments; the tower has only weights.

        Args:
            weight: Bytes of a weight.
            gradient: Bytes of a gradient.
            moments: Bytes of the two moments of a weight together, and of its master copy.
        """
        trained = self.text_weights * (weight + gradient + moments)
        return trained + self.vision_weights * weight

    def layers_that_fit(self, available: int, reserve: int) -> int:
        """Return the largest number of layers whose training (`training_bytes`) fits in memory.

        Args:
            available: Bytes of the device.
            reserve: Bytes that activations and logits need.
        """
        one, two = (replace(self, layers=layers).training_bytes() for layers in (1, 2))
        return max(1, min(self.layers, 1 + (available - reserve - one) // (two - one)))
