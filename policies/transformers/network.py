"""The model as the policy uses it: vision, language and head apart, for Qwen2.5-VL and Qwen3-VL.

The model itself is transformers' own. Taking its parts one by one lets a batch run each distinct
image through the vision tower once, keep keys and values between turns, and project only those
positions to the vocabulary that are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import transformers

from .cache import SlotCache
from .vision import Patches

ATTENTION = "visenv_grouped"
IMPOSSIBLE = -1e9
"""The logit of a banned token: probability 0 without the NaNs of infinity in gradients."""


class Features(NamedTuple):
    """What the vision tower made of one image.

    Attributes:
        embedded: ``[placeholders, width]``, in place of the placeholders' embeddings.
        deep: The same shape for each of the first language layers, added to their output
            (DeepStack, Qwen3-VL only).
    """

    embedded: torch.Tensor
    deep: tuple[torch.Tensor, ...]


class Network:
    """The parts of a Qwen-VL model.

    Args:
        model: As `AutoModelForImageTextToText` loads it.
        banned: bool ``[vocabulary]``: tokens that have no probability.
    """

    def __init__(self, model: Any, banned: torch.Tensor) -> None:
        self.model = model
        self._text = model.model.language_model
        self._banned = banned.to(model.device)
        self._placeholder: int = model.config.image_token_id

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.model.device
        return device

    @property
    def vocabulary_size(self) -> int:
        """Rows of the head, padding included."""
        return len(self._banned)

    def cache(self, rows: int) -> SlotCache:
        """An empty cache for a batch of `rows`."""
        config = self._text.config
        head_size = getattr(config, "head_dim", None)
        head_size = head_size or config.hidden_size // config.num_attention_heads
        like = self._text.embed_tokens.weight
        layers = config.num_hidden_layers
        return SlotCache(rows, layers, config.num_key_value_heads, head_size, like.detach())

    def look(self, images: Sequence[Patches]) -> list[Features]:
        """Run images through the vision tower."""
        if not images:
            return []
        device = self.device
        values = torch.cat([image.values for image in images]).to(device)
        grids = torch.tensor([image.grid for image in images], device=device)
        seen = self.model.model.get_image_features(values, grids, return_dict=True)
        embedded = seen.pooler_output
        sizes = [len(one) for one in embedded]
        deep = [torch.split(layer, sizes) for layer in getattr(seen, "deepstack_features", ())]
        return [Features(one, tuple(layer[k] for layer in deep)) for k, one in enumerate(embedded)]

    def read(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        features: Sequence[Features] = (),
        cache: SlotCache | None = None,
        visible: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The language model's last hidden states.

        Args:
            token_ids: int64 ``[rows, tokens]``, padded on the right.
            positions: int64 ``[3, rows, tokens]``, M-RoPE.
            features: Of the images whose placeholders are in `token_ids`, row by row.
            cache: Where keys and values go, its slots placed.
            visible: bool ``[rows, 1, tokens, slots]``: which slots a token sees. None is causal
                over these tokens alone.

        Returns:
            ``[rows, tokens, width]``.
        """
        embedded = self._text.embed_tokens(token_ids)
        extra: dict[str, Any] = {}
        if features:
            seen = token_ids == self._placeholder
            stacked = torch.cat([one.embedded for one in features]).to(embedded.dtype)
            embedded = embedded.masked_scatter(seen[..., None], stacked)
            layers = range(len(features[0].deep))
            if layers:
                extra["visual_pos_masks"] = seen
                extra["deepstack_visual_embeds"] = [
                    torch.cat([one.deep[layer] for one in features]) for layer in layers
                ]
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

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """float32 ``[..., vocabulary]``; banned tokens are `IMPOSSIBLE`."""
        logits: torch.Tensor = self.model.lm_head(hidden).float()
        return logits.masked_fill(self._banned, IMPOSSIBLE)


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """PyTorch's attention with shared key-value heads left shared.

    Transformers copies them for each query head where there is a mask; on a CPU the copy costs
    several times the attention of one new token.
    """
    attended = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        is_causal=attention_mask is None and query.shape[2] > 1,
        scale=scaling,
        enable_gqa=True,
    )
    return attended.transpose(1, 2).contiguous(), None


transformers.AttentionInterface.register(ATTENTION, grouped_attention)
