"""Scores each segment separately with the stock model and all logits, as a reference for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl
from transformers.models.qwen3_vl import modeling_qwen3_vl

from visenv.types import Image, ImageSpan, Segment, TurnSpan, Video, VideoSpan, Visual


@dataclass(frozen=True)
class Said:
    """Holds a sampled turn."""

    token_ids: tuple[int, ...]
    regex: str | None = None


Part = tuple[int, ...] | Image | Video | Said
"""Observed tokens, an observed image or video, or a sampled turn."""


def segment_of(codec: Any, parts: Sequence[Part], temperature: float = 1.0) -> Segment:
    """Return a segment of these parts, in order."""
    tokens: list[int] = []
    sampled: list[bool] = []
    turns: list[TurnSpan] = []
    spans: list[Any] = []
    for part in parts:
        start = len(tokens)
        if isinstance(part, Image | Video):
            own, shown = codec.family.show(part, start)
            spans += shown.spans
            tokens += own
        elif isinstance(part, Said):
            tokens += part.token_ids
            turns.append(TurnSpan(len(turns), start, len(tokens), "stop", part.regex))
        else:
            tokens += part
        sampled += [isinstance(part, Said)] * (len(tokens) - start)
    length = len(tokens)
    videos = tuple([span for span in spans if isinstance(span, VideoSpan)])
    return Segment(
        token_ids=np.array(tokens, np.int32),
        loss_mask=np.array(sampled, np.bool_),
        logprobs=np.zeros(length, np.float32),
        policy_version=np.zeros(length, np.int32),
        turns=tuple(turns),
        images=tuple([span for span in spans if isinstance(span, ImageSpan)]),
        placeholder_ids=codec.family.placeholder_ids,
        temperature=temperature,
        processor=codec.family.fingerprint(with_videos=bool(videos)),
        videos=videos,
    )


def stock(folder: Any, dtype: torch.dtype) -> Any:
    """Return the model as transformers loads it, with its own attention and head."""
    model: Any = transformers.AutoModelForImageTextToText.from_pretrained(
        folder, attn_implementation="sdpa"
    )
    return model.to(dtype).train()


def logprobs(
    model: Any, codec: Any, segment: Segment, images: Mapping[str, Visual]
) -> torch.Tensor:
    """Return the log-probabilities of the sampled tokens of a segment, ``[sampled]``."""
    ids = torch.from_numpy(segment.token_ids).long()[None]
    shown = codec.family.images.encode([images[span.sha256] for span in segment.images])
    seen: dict[str, Any] = {"mm_token_type_ids": (ids == codec.image_id).long()}
    if shown:
        seen["pixel_values"] = torch.cat([each.values for each in shown])
        seen["image_grid_thw"] = torch.tensor([each.grid for each in shown])
    if segment.videos:
        seen |= videos_seen(codec, segment, images)
    logits = model(input_ids=ids, use_cache=False, **seen).logits[0]
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    allowed = torch.ones(logits.shape, dtype=torch.bool)
    for turn in segment.turns:
        if turn.regex is not None:
            constraint = codec.constraints.get(turn.regex)
            states = constraint.states(segment.token_ids[turn.start : turn.end].tolist())
            for place, state in zip(range(turn.start, turn.end), states, strict=True):
                allowed[place - 1] = constraint.allowed(state)
    allowed &= ~torch.from_numpy(codec.banned)
    logits = (logits / (segment.temperature or 1.0)).masked_fill(~allowed, -torch.inf)
    at = torch.from_numpy(np.flatnonzero(segment.loss_mask))
    picked: torch.Tensor = logits.log_softmax(-1)[at - 1, ids[0, at]]
    return picked


def videos_seen(codec: Any, segment: Segment, images: Mapping[str, Visual]) -> dict[str, Any]:
    """Return inputs from the model's own video processor, one copy each time a video is shown.

    Positions are from our code: tests/policies/tokens/test_video.py compares them with the models'.
    """
    firsts = [span for span in segment.videos if span.first_step == 0]
    processor = codec.processor.video_processor
    made = []
    for span in firsts:
        video = images[span.sha256]
        assert isinstance(video, Video)
        frames = [frame.pixels.transpose(2, 0, 1).copy() for frame in video.frames]
        frames *= 1 + (len(frames) == 1)  # Qwen3-VL needs two frames
        made.append(processor([np.stack(frames)], do_sample_frames=False, return_tensors="pt"))
    return {
        "pixel_values_videos": torch.cat([each["pixel_values_videos"] for each in made]),
        "video_grid_thw": torch.cat([each["video_grid_thw"] for each in made]),
        "position_ids": torch.from_numpy(
            codec.family.positions(len(segment), segment.spans, images)
        )[:, None],
    }


def gradients(model: Any) -> dict[str, torch.Tensor]:
    """Return the gradient of every parameter by name, with 0 for parameters without a gradient."""
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in model.named_parameters()
    }


@contextmanager
def in_full() -> Iterator[None]:
    """Let the models compute in the dtype of their input throughout.

    The original norms and the vision tower's rotation round to float32 in between. If two
    computations of the same number differ by 1e-16, they may then round to different float32
    numbers, 6e-8 apart.
    """

    def norm(self: Any, hidden: torch.Tensor) -> torch.Tensor:
        variance = hidden.pow(2).mean(-1, keepdim=True)
        normed: torch.Tensor = self.weight * (
            hidden * torch.rsqrt(variance + self.variance_epsilon)
        )
        return normed

    def turned(each: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        one, other = each.chunk(2, -1)
        return each * cos[:, None] + torch.cat((-other, one), -1) * sin[:, None]

    def rotate(
        query: torch.Tensor, key: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return turned(query, cos, sin), turned(key, cos, sin)

    with pytest.MonkeyPatch.context() as patch:
        for norms in (modeling_qwen3_vl.Qwen3VLTextRMSNorm, modeling_qwen2_5_vl.Qwen2_5_VLRMSNorm):
            patch.setattr(norms, "forward", norm)
        for modeling in (modeling_qwen3_vl, modeling_qwen2_5_vl):
            patch.setattr(modeling, "apply_rotary_pos_emb_vision", rotate)
        yield
