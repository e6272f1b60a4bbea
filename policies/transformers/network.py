"""The model as the policy uses it: vision, language and head apart, for Qwen2.5-VL and Qwen3-VL.

The model itself is transformers' own. Taking its parts one by one lets a batch run each distinct
image through the vision tower once, keep keys and values between turns, and project only those
positions to the vocabulary that are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from .attention import AttentionCall
from .cache import SlotCache
from .head import LogprobHead
from .lora import without
from .vision import ImageFeatures, VisionTower


class QwenVLParts:
    """The parts of a Qwen-VL model.

    Args:
        model: As `AutoModelForImageTextToText` loads it; its head is replaced by ours.
        banned: bool ``[vocabulary]``: tokens that have no probability.
        fp32_head: Whether logits are projected in float32 whatever the weights are.
        vision_cache: Bytes of image features kept while the vision tower is frozen.
        bare: Whether LoRA adapters, if there are any, are left out.

    Attributes:
        model: The whole model.
        vision: Its vision tower.
        head: Its projection to the vocabulary.
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
        self._placeholders: tuple[int, int] = (
            model.config.image_token_id,
            model.config.video_token_id,
        )

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        device: torch.device = self.model.device
        return device

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
            features: Of the spans whose placeholders are in `token_ids`, row by row.
            cache: Where keys and values go, its slots placed.
            visible: bool ``[rows, 1, tokens, slots]``: which slots a token sees. None is causal
                over these tokens alone.
            layout: Given, there is one row, and attention takes it apart so.

        Returns:
            ``[rows, tokens, width]``.
        """
        embedded = self._text.embed_tokens(token_ids)
        extra: dict[str, Any] = {} if layout is None else {"layout": layout}
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
                past_key_values=cache,
                use_cache=cache is not None,
                **extra,
            )
        hidden: torch.Tensor = read.last_hidden_state
        return hidden

    def logits(self, hidden: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        """Return float32 logits ``[rows, vocabulary]`` over `temperature`; banned: `IMPOSSIBLE`."""
        return self.head.possible(self.head(hidden), temperature)
