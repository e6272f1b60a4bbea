"""Runs vision tower, language model and head of Qwen2.5-VL and Qwen3-VL as separate parts.

The model is that of transformers. With separate parts, a batch runs each distinct image through the
vision tower once, keeps keys and values between turns, and computes logits only for the required
positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from .attention import AttentionCall
from .cache import CACHE_NAMES, SlotCache
from .head import LogprobHead
from .lora import without
from .vision import ImageFeatures, VisionTower


class QwenVLParts:
    """Holds the parts of a Qwen-VL model.

    Args:
        model: A model from `AutoModelForImageTextToText`; its head is replaced by `LogprobHead`.
        banned: bool ``[vocabulary]``: tokens with probability 0.
        fp32_head: Whether logits are computed in float32 for all types of the weights.
        vision_cache: Maximum number of bytes of cached image features while the vision tower is
            frozen.
        bare: Whether LoRA adapters, if there are any, are disabled.

    Attributes:
        model: The whole model.
        vision: The vision tower of the model.
        head: The output projection of the model.
    """

    def __init__(
        self,
        model: Any,
        banned: torch.Tensor,
        *,
        fp32_head: bool = False,
        vision_cache: int = 2**30,
        bare: bool = False,
    ) -> None:
        self.model = model
        self.vision = VisionTower(model, vision_cache)
        if not isinstance(model.get_output_embeddings(), LogprobHead):
            weight = model.get_output_embeddings().weight
            model.set_output_embeddings(LogprobHead(weight, banned, single=fp32_head))
        self.head: LogprobHead = model.get_output_embeddings()
        self._bare = bare
        self._text = model.model.language_model
        parameters = inspect.signature(self._text.forward).parameters
        self._cache_name = next(name for name in CACHE_NAMES if name in parameters)
        self._placeholders: tuple[int, int] = (
            model.config.image_token_id,
            model.config.video_token_id,
        )

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        device: torch.device = self.model.device
        return device

    def check(self) -> None:
        """Check the form of the features that transformers returns; see `VisionTower.check`."""
        self.vision.check()

    def forget(self) -> None:
        """Drop the cached features of images, because the weights changed."""
        self.vision.forget()

    def cache(self, rows: int) -> SlotCache:
        """Return an empty cache for a batch of `rows`."""
        config = self._text.config
        head_size = getattr(config, "head_dim", None)
        head_size = head_size or config.hidden_size // config.num_attention_heads
        like = self._text.embed_tokens.weight
        layers = config.num_hidden_layers
        return SlotCache(rows, layers, config.num_key_value_heads, head_size, like.detach())

    def read(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        features: Sequence[ImageFeatures] = (),
        cache: SlotCache | None = None,
        visible: torch.Tensor | None = None,
        layout: Sequence[AttentionCall] | None = None,
    ) -> torch.Tensor:
        """Return the language model's last hidden states.

        Args:
            token_ids: int64 ``[rows, tokens]``, padded on the right.
            positions: int64 ``[3, rows, tokens]``, M-RoPE.
            features: Features of the spans whose placeholders are in `token_ids`, row by row.
            cache: The cache for keys and values, with the slots already set.
            visible: bool ``[rows, 1, tokens, slots]``: the slots to which a token attends. None is
                causal attention over these tokens only.
            layout: The attention calls of a packed row; if given, there is one row.

        Returns:
            ``[rows, tokens, width]``.
        """
        embedded = self._text.embed_tokens(token_ids)
        extra: dict[str, Any] = {self._cache_name: cache}
        if layout is not None:
            extra["layout"] = layout
        if features:
            first, second = self._placeholders
            seen = (token_ids == first) | (token_ids == second)  # [rows, tokens]
            # [placeholders of all images and videos, width], in the order of the True cells.
            stacked = torch.cat([one.embedded for one in features]).to(embedded.dtype)
            embedded = embedded.masked_scatter(seen[..., None], stacked)  # [rows, tokens, width]
            layers = range(len(features[0].deep))
            if layers:
                extra["visual_pos_masks"] = seen
                extra["deepstack_visual_embeds"] = [  # of each layer [placeholders, width]
                    torch.cat([one.deep[layer] for one in features]) for layer in layers
                ]
        with without(self.model) if self._bare else nullcontext():
            read = self._text(
                inputs_embeds=embedded,
                position_ids=positions,
                attention_mask=visible,
                use_cache=cache is not None,
                **extra,
            )
        hidden: torch.Tensor = read.last_hidden_state
        return hidden

    def logits(self, hidden: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        """Return float32 logits ``[rows, vocabulary]`` over `temperature`; banned: `IMPOSSIBLE`."""
        return self.head.possible(self.head(hidden), temperature)
