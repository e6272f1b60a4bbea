"""Tests that padded rows give the log-probabilities and gradients of the packed path.

The models are those that are packed; here their family is replaced by the generic one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tiny_models import smaller_model
from visenv.types import Segment, Visual

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.transformers import naive
from visenv.policies.tokens.generic import generic
from visenv.policies.transformers import TransformersPolicy

pytestmark = [pytest.mark.component("torch", "transformers", "outlines-core"), pytest.mark.slow]

BOUND = 1e-12
"""Largest difference in float64, relative to the largest value of a parameter's gradient."""


@pytest.fixture(scope="module", params=["qwen3_vl", "qwen2_5_vl"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    return smaller_model(folder, request.param)


@pytest.fixture
def policies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[TransformersPolicy]:
    """Return a packed policy and one with the generic family, both in float64."""
    packed = TransformersPolicy(folder, threads=1)
    monkeypatch.setattr("visenv.policies.tokens.codec.load_family", lambda _: generic)
    padded = TransformersPolicy(folder, threads=1)
    padded.network.model.set_attn_implementation("sdpa")  # as for models that are not packed
    assert (packed.codec.family.packs, padded.codec.family.packs) == (True, False)
    for policy in (packed, padded):
        policy.network.model.double()
        policy.train_mode(True)
    return [packed, padded]


def test_padded_rows_have_the_scores_and_gradients_of_packed_ones(
    policies: list[TransformersPolicy], talk: Any
) -> None:
    """Check a group of three and one of two, with images and videos before and between turns.

    Qwen2.5-VL has images in place of the videos, because visenv counts the positions of its videos
    otherwise than transformers (`rope_positions`).
    """
    rng = np.random.default_rng(0)
    words = np.flatnonzero(~policies[0].codec.banned)

    def text(length: int) -> tuple[int, ...]:
        return tuple(rng.choice(words, length).tolist())

    first, second, third = (
        talk.picture(seed, 112, side) for seed, side in enumerate((56, 84, 112))
    )
    film, later = talk.clip(1, 3, 112, 56, 0.7), talk.clip(2, 2, 56, 84)
    if policies[0].codec.family.name == "qwen2_5_vl":
        film, later = talk.picture(3, 84, 112), talk.picture(4, 84, 84)
    items: list[Visual] = [first, second, third, film, later]
    matched = naive.Said(tuple(policies[0].codec.vocabulary.encode("left")), "[a-z]+")
    prompts = [[text(20), first, text(9), film, text(4)], [text(7), third, text(3)]]
    conversations = [
        [*prompts[0], naive.Said(text(10)), text(3), second, text(2), naive.Said(text(6))],
        [*prompts[0], naive.Said(text(8)), text(1), later, text(2), matched],
        [*prompts[0], naive.Said(text(13))],
        [*prompts[1], naive.Said(text(4)), text(2), first, text(2), naive.Said(text(9))],
        [*prompts[1], naive.Said(text(1))],
    ]
    segments: list[Segment] = []
    for parts in conversations:
        one, other = (naive.segment_of(policy.codec, parts) for policy in policies)
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert one.images == other.images
        segments.append(one)
    shown = {item.sha256: item for item in items}
    weights = torch.from_numpy(rng.normal(size=sum(int(one.loss_mask.sum()) for one in segments)))
    scores = []
    with naive.in_full():
        for policy in policies:
            found = policy.score(segments, shown)
            scores.append(found.logprobs[found.mask])
            (scores[-1] * weights).sum().backward()
    assert torch.isfinite(scores[0]).all()
    torch.testing.assert_close(scores[1], scores[0], rtol=0, atol=BOUND)
    packed, padded = (naive.gradients(policy.network.model) for policy in policies)
    assert packed.keys() == padded.keys()
    for name, gradient in packed.items():
        apart = float((padded[name] - gradient).abs().max())
        assert apart <= BOUND * float(gradient.abs().max()), name
