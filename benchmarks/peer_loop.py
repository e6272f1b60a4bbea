"""Implements a hand-written training loop with the stock model, as a baseline.

It uses one padded batch, runs each distinct image through the vision tower once, and computes
log-probabilities only for the sampled tokens, in chunks whose logits are recomputed for the
gradient. Segments share only images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils.checkpoint import checkpoint

from visenv.policies.tokens.qwen_vl import require_qwen_vl
from visenv.policies.transformers import TransformersPolicy
from visenv.types import Image, Segment

_CHUNK = 1024
"""Number of sampled tokens whose logits are in memory at the same time."""


class Loop:
    """Holds a stock model, and computes the loss of a group with it.

    Args:
        folder: The checkpoint.
        policy: The policy of visenv, for its image processor.
        device: Device of the model.
        dtype: Type of the weights.
        checkpointing: Whether activations are recomputed for the gradient.
    """

    def __init__(
        self,
        folder: Path,
        policy: TransformersPolicy,
        device: str,
        dtype: torch.dtype,
        *,
        checkpointing: bool,
    ) -> None:
        model: Any = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=dtype)
        model.model.visual.requires_grad_(requires_grad=False)
        if checkpointing:
            model.gradient_checkpointing_enable({"use_reentrant": False})
        self.model = model.to(device).train()
        self._encoder = require_qwen_vl(policy.codec.family).images
        self._placeholder = policy.codec.image_id
        self._device = device

    def inputs(self, segments: Sequence[Segment], images: Mapping[str, Image]) -> dict[str, Any]:
        """Return the padded batch, its images, and the images of each row."""
        ids = torch.zeros(len(segments), max(map(len, segments)), dtype=torch.int64)
        own, sampled = torch.zeros_like(ids), torch.zeros(ids.shape, dtype=torch.bool)
        for row, segment in enumerate(segments):
            ids[row, : len(segment)] = torch.from_numpy(segment.token_ids).long()
            own[row, : len(segment)] = 1
            sampled[row, : len(segment)] = torch.from_numpy(segment.loss_mask)
        names = list(images)
        patches = self._encoder.encode([images[name] for name in names])
        shown = [names.index(span.sha256) for segment in segments for span in segment.images]
        grids = torch.tensor([each.grid for each in patches])
        positions, _ = self.model.model.get_rope_index(
            input_ids=ids,
            mm_token_type_ids=(ids == self._placeholder).int(),
            image_grid_thw=grids[shown],
            attention_mask=own,
        )
        tensors = {
            "ids": ids,
            "sampled": sampled,
            "positions": positions,
            "values": torch.cat([each.values for each in patches]),
            "grids": grids,
        }
        return {name: each.to(self._device) for name, each in tensors.items()} | {"shown": shown}

    def loss(self, inputs: Mapping[str, Any], advantages: torch.Tensor) -> torch.Tensor:
        """Return the loss (DAPO: the mean over all sampled tokens)."""
        inner, ids, sampled = self.model.model, inputs["ids"], inputs["sampled"]
        with torch.no_grad():
            looked = inner.get_image_features(inputs["values"], inputs["grids"], return_dict=True)
        seen = torch.cat([looked.pooler_output[image] for image in inputs["shown"]])
        embedded = inner.language_model.embed_tokens(ids)  # [rows, tokens, width]
        embedded = embedded.masked_scatter((ids == self._placeholder)[..., None], seen)
        # Padded on the right, a row needs only the causal mask.
        hidden = inner.language_model(
            inputs_embeds=embedded, position_ids=inputs["positions"], use_cache=False
        ).last_hidden_state
        before = hidden[:, :-1][sampled[:, 1:]]  # [places, width]
        logprobs = torch.cat([
            checkpoint(self._logprobs, states, drawn, use_reentrant=False)
            for states, drawn in zip(
                before.split(_CHUNK), ids[sampled].split(_CHUNK), strict=True
            )
        ])  # fmt: skip
        ratio = torch.exp(logprobs - logprobs.detach())
        weights = advantages[:, None].expand(sampled.shape)[sampled]  # [places]
        loss: torch.Tensor = -(weights * ratio).sum() / sampled.sum()
        return loss

    def _logprobs(self, states: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        logits = self.model.lm_head(states).float()  # [places, vocabulary]
        picked: torch.Tensor = logits.log_softmax(-1).gather(1, drawn[:, None])[:, 0]
        return picked
