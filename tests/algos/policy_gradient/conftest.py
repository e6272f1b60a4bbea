"""Provides batches and groups for tests of algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from visenv.algorithm import Batch
from visenv.types import Episode, Message, Segment, Turn, TurnSpan

LOG2 = 0.6931471805599453


def make_batch(seed: int, dtype: torch.dtype = torch.float64) -> Batch:
    """Return five segments of up to seven tokens, off-policy enough that ratios are clipped."""
    generator = torch.Generator().manual_seed(seed)
    shape = (5, 7)

    def normal(scale: float) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=dtype) * scale

    mask = torch.rand(shape, generator=generator) < 0.6
    mask[:, 0] = True
    logprobs = -normal(1.0).abs()
    old = logprobs + normal(0.4)
    return Batch(
        logprobs=logprobs,
        old_logprobs=old,
        sampling_logprobs=old + normal(0.3),
        reference_logprobs=logprobs + normal(0.4),
        entropy=normal(1.0).abs(),
        advantages=normal(1.0),
        mask=mask,
        episode_tokens=mask.sum(-1),
        total_tokens=int(mask.sum()),
        total_episodes=len(mask),
    )


def batch_by_hand() -> Batch:
    """Return two segments: tokens with ratios 1 and 2 and A = 1, and one with 1/2 and A = -1."""
    return Batch(
        logprobs=torch.tensor([[-1.0, -1.0], [-1.0, 9.0]]),
        old_logprobs=torch.tensor([[-1.0, -1.0 - LOG2], [-1.0 + LOG2, 9.0]]),
        sampling_logprobs=torch.tensor([[-1.0 - LOG2, -1.0 - LOG2], [-1.0 + 3 * LOG2, 9.0]]),
        reference_logprobs=torch.tensor([[-1.0, -1.0 + LOG2], [-1.0, 9.0]]),
        entropy=torch.tensor([[0.5, 1.0], [1.5, 9.0]]),
        advantages=torch.tensor([[1.0, 1.0], [-1.0, 9.0]]),
        mask=torch.tensor([[True, True], [True, False]]),
        episode_tokens=torch.tensor([2, 1]),
        total_tokens=3,
        total_episodes=2,
    )


def rows(batch: Batch, chosen: Any) -> Batch:
    """Return the chosen segments of a step as a micro-batch."""
    names = [each.name for each in fields(Batch) if not each.name.startswith("total_")]
    parts = {name: getattr(batch, name)[chosen] for name in names}
    return Batch(**parts, total_tokens=batch.total_tokens, total_episodes=batch.total_episodes)


def episode(
    rewards: Sequence[float],
    tokens: Sequence[int] = (),
    shown: Sequence[str] = (),
    finish: Any = "stop",
    status: Any = "terminated",
) -> Episode:
    """Return an episode with one turn per reward, and the given token counts and messages."""
    said = list(shown) or [f"turn {number}" for number in range(len(rewards))]
    turns = tuple(
        Turn((Message("user", (text,)),), "", reward, (), finish)
        for text, reward in zip(said, rewards, strict=True)
    )
    segments = (_segment(tokens),) if tokens else ()
    reason = "" if status == "terminated" else "turns"
    return Episode("e-v0", "s", "", 7, 0, 3, turns, status, reason, segments=segments)


def _segment(tokens: Sequence[int]) -> Segment:
    ends = np.cumsum([1 + count for count in tokens])  # an observation token before each turn
    mask = np.ones(ends[-1], np.bool_)
    mask[ends - 1 - np.asarray(tokens)] = False
    spans = tuple(
        TurnSpan(turn, int(end) - count, int(end), "stop")
        for turn, (end, count) in enumerate(zip(ends, tokens, strict=True))
    )
    zeros = np.zeros(len(mask), np.float32)
    ids = np.ones(len(mask), np.int32)
    return Segment(ids, mask, zeros, ids * 0, spans, (), (0,), 1.0, "none")


@pytest.fixture
def random_batch() -> Callable[..., Batch]:
    return make_batch


@pytest.fixture
def hand_batch() -> Batch:
    return batch_by_hand()


@pytest.fixture
def take_rows() -> Callable[[Batch, Any], Batch]:
    return rows


@pytest.fixture
def make_episode() -> Callable[..., Episode]:
    return episode
