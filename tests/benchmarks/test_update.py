"""Tests the episodes of the update benchmark, and the hand-written loop it is compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.peer_loop import Loop
from benchmarks.random_vlm import SHAPES, Shape, group
from tests.tiny_models import tiny_model
from visenv.policies import transformers as package
from visenv.policies.transformers import trees

pytestmark = pytest.mark.component("torch", "transformers")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tiny_model(
        tmp_path_factory.mktemp("model"), architecture="qwen2_5_vl", patch_size=14,
        view_side=112, hidden_size=32, layers=2, heads=4, head_size=8, mlp_size=48,
        context=4096, vision_hidden_size=32, vision_layers=1,
        vision_heads=2, vision_mlp_size=48,
    )  # fmt: skip
    return package.TransformersPolicy(folder, threads=1, freeze_vision=True, max_pixels=448 * 448)


@pytest.mark.parametrize(
    ("shape", "whole", "one_level", "read"),
    [
        # 8 * (600 + 100 + 300); 600 + 8 * 400; nothing else is shared.
        (SHAPES[0], 8000, 3800, 3800),
        # Two first turns of 50 with 300 shown, and eight second turns: 600 + 2 * 350 + 8 * 50.
        (SHAPES[1], 8000, 3800, 1700),
        # 8 * (4 * 350 + 0 + 100 + 200 + 300); 300 + 8 * (4 * 50 + 600); 300 + 8 * (200 + 300).
        (SHAPES[2], 16000, 6700, 4300),
        (SHAPES[3], 5600, 1400, 1400),
        (SHAPES[4], 9600, 1900, 1900),
    ],
)
def test_shape_counts_the_tokens_of_its_segments_and_of_their_prefix_tree(
    policy: Any, shape: Shape, whole: int, one_level: int, read: int
) -> None:
    assert (shape.whole(8), shape.one_level(8), shape.read(8)) == (whole, one_level, read)
    segments, _ = group(policy, shape, 8)
    assert sum(map(len, segments)) == whole
    assert trees.size(trees.grow(segments)) == read


@pytest.mark.parametrize(
    "shape", [Shape(230, 1, 6, 270, alike=2), Shape(210, 1, 5, contexts=2, step=70)]
)
def test_loop_has_the_gradient_of_the_update(policy: Any, shape: Shape) -> None:
    """Check in float32 that gradients agree to 1e-5 of the largest number of each.

    In the loop, segments share only images.
    """
    segments, images = group(policy, shape, 2)
    head = policy.network.head
    head.banned = torch.zeros_like(head.banned)  # the loop bans nothing
    advantages = torch.linspace(-1, 1, len(segments))
    policy.network.model.zero_grad()
    scores = policy.score(segments, images)
    ratio = torch.exp(scores.logprobs - scores.logprobs.detach())
    (-(advantages[:, None] * ratio * scores.mask).sum() / scores.mask.sum()).backward()

    folder = Path(policy.codec.processor.tokenizer.name_or_path)
    loop = Loop(folder, policy, "cpu", torch.float32, checkpointing=False)
    loop.loss(loop.inputs(segments, images), advantages).backward()
    others = dict(loop.model.named_parameters())
    for name, weight in policy.network.model.named_parameters():
        if weight.grad is not None:
            scale = float(others[name].grad.abs().max())
            assert float((weight.grad - others[name].grad).abs().max()) < 1e-5 * scale, name
