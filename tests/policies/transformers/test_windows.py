"""Tests batched attention within windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.tiny_models import tiny_model
from visenv.policies import transformers as package
from visenv.policies.tokens.qwen_vl import require_qwen_vl
from visenv.policies.transformers import attention, network

pytestmark = pytest.mark.component("torch", "transformers")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_attend_windows_gives_each_window_what_it_would_get_alone(lengths: list[int]) -> None:
    """Check in float64 that values and gradients equal those of a softmax per window, to 1e-13."""
    generator = torch.Generator().manual_seed(len(lengths))
    drawn = torch.randn(4, 2, sum(lengths), 8, generator=generator, dtype=torch.float64)
    weights = drawn[3].transpose(0, 1)  # [patches, heads, size]
    ours, theirs = drawn[:3].clone().requires_grad_(), drawn[:3].clone().requires_grad_()
    borders = torch.tensor([0, *lengths]).cumsum(0)
    q, k, v = (each[None] for each in ours)
    found, _ = attention.attend_windows(torch.nn.Identity(), q, k, v, None, 0.25, borders)
    (found[0] * weights).sum().backward()
    expected = torch.cat([
        torch.einsum("hqk,khs->qhs", torch.einsum("hqs,hks->hqk", q, k).mul(0.25).softmax(-1),
                     v.transpose(0, 1))
        for q, k, v in (part for part in theirs.split(lengths, 2))
    ])  # fmt: skip
    (expected * weights).sum().backward()
    torch.testing.assert_close(found[0], expected, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-13, atol=1e-13)


def test_attend_windows_without_borders_attends_within_all_patches() -> None:
    q, k, v = torch.randn(3, 1, 2, 6, 8, generator=torch.Generator().manual_seed(0))
    borders = torch.tensor([0, 6])
    expected, _ = attention.attend_windows(torch.nn.Identity(), q, k, v, None, 0.25, borders)
    found, _ = attention.attend_windows(torch.nn.Identity(), q, k, v, None, 0.25)
    assert torch.equal(found, expected)


def test_vision_tower_attends_once_for_each_size_of_window(
    tmp_path: Path, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check two images of 20 x 12 patches: windows have 8 x 8, 4 x 8, 8 x 4 and 4 x 4 patches.

    These are 3 sizes in the first layer, where each image has 2 x 3 windows. The second layer
    attends within whole images, which have one size.
    """
    folder = tiny_model(
        tmp_path, architecture="qwen2_5_vl", patch_size=14, view_side=280, hidden_size=32,
        layers=1, heads=4, head_size=8, mlp_size=48,
        vision_hidden_size=32, vision_layers=2, vision_heads=2, vision_mlp_size=48,
    )  # fmt: skip
    policy = package.TransformersPolicy(folder, threads=1)
    policy.network.model.model.visual.fullatt_block_indexes = [1]
    shapes: list[tuple[int, ...]] = []
    original = torch.nn.functional.scaled_dot_product_attention

    def spy(query: Any, *arguments: Any, **options: Any) -> Any:
        shapes.append(tuple(query.shape))
        return original(query, *arguments, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    pictures = [talk.picture(seed, 12 * 14, 20 * 14) for seed in range(2)]
    patches = require_qwen_vl(policy.codec.family).images.encode(pictures)
    assert [each.grid for each in patches] == [(1, 20, 12)] * 2
    assert isinstance(policy.network, network.QwenVLParts)
    policy.network.vision.look({str(place): each for place, each in enumerate(patches)})
    assert shapes == [(4, 2, 64, 16), (6, 2, 32, 16), (2, 2, 16, 16), (2, 2, 240, 16)]
