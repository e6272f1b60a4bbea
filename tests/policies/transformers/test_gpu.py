"""Tests the transformers policy on a GPU against the same policy on a CPU; CI has no GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.policies.transformers import naive
from tests.policies.transformers.test_sampling import mixed_conversations

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.algos.trainer.micro_batches import pinned
from visenv.policies.transformers import TransformersPolicy

pytestmark = pytest.mark.component("gpu", "torch", "transformers")


@pytest.fixture(params=["qwen3_folder", "qwen2_5_folder"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def test_policy_on_a_gpu_scores_what_it_recorded(folder: Path, talk: Any) -> None:
    policy = TransformersPolicy(folder, threads=1, device="cuda")
    segments, images = mixed_conversations(policy, talk)
    scores = policy.score(segments, images)
    assert scores.logprobs.is_cuda
    for row, segment in enumerate(segments):
        found = scores.logprobs[row, : len(segment)].detach().cpu()
        torch.testing.assert_close(found, torch.from_numpy(segment.logprobs), rtol=0, atol=1e-4)


def test_gradients_on_a_gpu_are_those_on_a_cpu(folder: Path, talk: Any) -> None:
    """Check log-probabilities and gradients to 1e-6 in float64.

    The rotary embedding of the text computes its cosines in float32, and their last bit depends on
    the device: on an H200 the log-probabilities differ by up to 6e-8.
    """
    here = TransformersPolicy(folder, threads=1)
    there = TransformersPolicy(folder, threads=1, device="cuda", gradient_checkpointing=True)
    segments, images = mixed_conversations(here, talk)
    scored = []
    for policy in (here, there):
        policy.network.model.double()
        policy.train_mode(True)
        with naive.in_full():
            scores = policy.score(segments, images)
            scores.logprobs[scores.mask].sum().backward()
        scored.append(scores.logprobs[scores.mask].detach().cpu())
    torch.testing.assert_close(scored[1], scored[0], rtol=1e-6, atol=1e-6)
    found = naive.gradients(there.network.model)
    for name, gradient in naive.gradients(here.network.model).items():
        torch.testing.assert_close(found[name].cpu(), gradient, rtol=1e-6, atol=1e-6)


def test_row_in_pinned_memory_is_scored_alike(folder: Path, talk: Any) -> None:
    policy = TransformersPolicy(folder, threads=1, device="cuda")
    packed = policy.collate(*mixed_conversations(policy, talk))
    copy = pinned(packed)
    assert copy.token_ids.is_pinned()
    assert copy.mask.is_pinned()
    assert copy.places.tokens.is_pinned()
    assert all(patches.values.is_pinned() for patches in copy.images.values())
    assert torch.equal(policy.module(copy).logprobs, policy.module(packed).logprobs)
