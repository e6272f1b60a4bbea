"""Tests packed rows against hand-worked values, and attention over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import PolicyError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.transformers import naive
from visenv.policies.transformers import attention
from visenv.policies.transformers import pack as pack_module

pytestmark = pytest.mark.component("torch", "transformers")

A, B, C = (5,), (6,), (7,)


def test_row_of_a_tree_and_another_segment(qwen3: Any, talk: Any) -> None:
    """Check three members that share 64 tokens and a 4 x 4 image, two of them also a turn of 70.

    Roots come first, the longest first: 64 + 16 = 80 shared tokens, and the 72 of a separate fourth
    segment. Their lengths are within a factor of 3/4, so they share one call. Then come the
    children of the tree: the shared turn, and 4 tokens, too few for the same call. Last are the
    children of the turn, with 3 tokens each.
    """
    image = talk.picture(1, 64, 64)
    small = image.__class__.from_pixels(image.pixels[:32, :32])
    prompt, turn = [A * 64, image], naive.Said(B * 70)
    segments = [
        naive.segment_of(qwen3.codec, [*prompt, turn, B, naive.Said(B * 2)]),
        naive.segment_of(qwen3.codec, [B * 64, small, C * 2, naive.Said(A * 2)]),  # image of 4
        naive.segment_of(qwen3.codec, [*prompt, naive.Said(C * 4)]),
        naive.segment_of(qwen3.codec, [*prompt, turn, A, naive.Said(C * 2)]),
    ]
    images = {image.sha256: image, small.sha256: small}
    packed = pack_module.pack(qwen3.codec, segments, images)
    pad = qwen3.codec.image_id
    row = packed.token_ids[0].tolist()
    assert row[:80] == [5] * 64 + [pad] * 16  # shared by three members
    assert row[80:152] == [6] * 64 + [pad] * 4 + [7, 7] + [5, 5]  # the separate segment
    assert row[152:226] == [6] * 70 + [7] * 4  # the shared turn and the other member
    assert sorted([row[226:229], row[229:]]) == [[5, 7, 7], [6, 6, 6]]
    assert packed.layout == (
        attention.AttentionCall((80, 72)),
        attention.AttentionCall((70,), (0,)),
        attention.AttentionCall((4,), (0,)),
        attention.AttentionCall((3, 3), (0, 2)),
    )
    assert [span.sha256 for span in packed.shown] == [image.sha256, small.sha256]
    assert [*packed.images] == [image.sha256, small.sha256]
    # A turn follows the last token before it, at any index of the row.
    own, other = (226, 229) if row[226] == 6 else (229, 226)
    assert packed.before.tolist() == [
        *[79, *range(152, 221), own, own + 1],
        *[149, 150],
        *[79, 222, 223, 224],
        *[79, *range(152, 221), other, other + 1],
    ]
    assert packed.places.tokens.tolist() == [6] * 72 + [5] * 2 + [7] * 4 + [6] * 70 + [7] * 2
    assert packed.mask.sum(1).tolist() == [72, 2, 4, 72]
    assert packed.mask.shape == (4, 153)
    # Text has 0..63, the image's rows and columns start at 64, and text continues at 64 + 4 = 68.
    assert packed.positions[:, 0, 79].tolist() == [64, 67, 67]
    for after in (152, 222):
        assert packed.positions[:, 0, after].tolist() == [68, 68, 68]
    for after in (226, 229):
        assert packed.positions[:, 0, after].tolist() == [138, 138, 138]


def test_segments_are_packed_completely_without_sharing(qwen3: Any) -> None:
    segments = [naive.segment_of(qwen3.codec, [A * 20, naive.Said(B * n)]) for n in (3, 2)]
    packed = pack_module.pack(qwen3.codec, segments, {}, share=False)
    assert packed.layout == (attention.AttentionCall((23, 22)),)
    assert packed.before.tolist() == [19, 20, 21, 42, 43]


def test_image_in_several_places_is_there_once(qwen3: Any, talk: Any) -> None:
    image = talk.picture(1)
    segments = [
        naive.segment_of(qwen3.codec, [first, image, B * 2, image, naive.Said(C)])
        for first in (A * 3, C * 3)
    ]
    packed = pack_module.pack(qwen3.codec, segments, {image.sha256: image})
    assert [*packed.images] == [image.sha256]
    assert [span.sha256 for span in packed.shown] == [image.sha256] * 4


@pytest.mark.parametrize(
    ("parts", "why"),
    [([], "at least one token, got none"), ([("said", 2), A], "no token precedes it")],
)
def test_segment_that_cannot_be_scored_is_refused(qwen3: Any, parts: Any, why: str) -> None:
    parts = [naive.Said(B * part[1]) if part[0] == "said" else part for part in parts]
    with pytest.raises(PolicyError, match=why):
        qwen3.score([naive.segment_of(qwen3.codec, parts)], {})


def test_segment_with_a_video_needs_a_policy_that_shows_videos_natively(
    qwen3: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = talk.clip(1, 3)
    filmed = naive.segment_of(qwen3.codec, [A * 4, clip, naive.Said(B)])
    with pytest.raises(PolicyError, match=f"image or video {clip.sha256}"):
        qwen3.score([filmed], {frame.sha256: frame for frame in clip.frames})
    with pytest.raises(PolicyError, match="image processor another"):
        qwen3.score([replace(filmed, processor="another")], {clip.sha256: clip})
    monkeypatch.setattr(qwen3.codec.family, "videos", None)
    with pytest.raises(PolicyError, match="same option `video`"):
        qwen3.score([filmed], {clip.sha256: clip})


def test_pack_refuses_no_segments(qwen3: Any) -> None:
    with pytest.raises(PolicyError, match="at least one segment"):
        qwen3.collate([], {})


@pytest.mark.parametrize("length", [1, 30])
def test_segment_in_which_nothing_was_sampled_has_no_gradient_but_a_graph(
    fresh: Any, length: int
) -> None:
    """Check that a process without sampled tokens still takes part in the backward pass."""
    scores = fresh.score([naive.segment_of(fresh.codec, [A * length])], {})
    assert scores.logprobs.tolist() == [[0.0] * length]
    assert not scores.mask.any()
    scores.logprobs.sum().backward()
    for gradient in naive.gradients(fresh.network.model).values():
        assert not gradient.any()
    assert fresh.network.model.lm_head.weight.grad is not None


def test_silent_segments_among_others_change_nothing(qwen3: Any) -> None:
    spoken = naive.segment_of(qwen3.codec, [A * 20, naive.Said(B * 3)])
    silent = naive.segment_of(qwen3.codec, [A * 20, B * 2])
    alone = qwen3.score([spoken], {}).logprobs
    both = qwen3.score([silent, spoken, silent], {})
    torch.testing.assert_close(both.logprobs[1:2], alone)
    assert both.mask.sum(1).tolist() == [0, 3, 0]


# -------------------------------------------------------------------------------------- attention


def attend_alone(query: Any, key: Any, value: Any) -> Any:
    """Return causal attention of one stream, ``[tokens, heads, size]``, by its definition."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = torch.einsum("qhs,khs->hqk", query, key) * 0.25
    tokens = len(query)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return torch.einsum("hqk,khs->qhs", weights, value)


Siblings = list[tuple[int, Any]]
"""Streams with the same predecessors: the length and the children of each."""

FORESTS: st.SearchStrategy[Siblings] = st.recursive(
    st.just([]),
    lambda children: st.lists(st.tuples(st.integers(1, 5), children), min_size=1, max_size=3),
    max_leaves=8,
)


def laid(forest: Siblings) -> tuple[list[Any], list[list[int]]]:
    """Return the calls of a forest, one for siblings, and the tokens on the path to each stream."""
    calls: list[Any] = []
    paths: list[list[int]] = []
    tokens = 0
    pending: list[tuple[Siblings, tuple[int, ...]]] = [(forest, ())]
    while pending:
        siblings, before = pending.pop()
        if siblings:
            calls.append(attention.AttentionCall(tuple(length for length, _ in siblings), before))
        for length, children in siblings:
            pending.append((children, (*before, len(paths))))
            begun = paths[before[-1]] if before else []
            paths.append([*begun, *range(tokens, tokens + length)])
            tokens += length
    return calls, paths


@given(FORESTS.filter(bool))
def test_streams_see_their_path_from_the_root_and_nothing_else(forest: Siblings) -> None:
    """Check in float64 that values and gradients equal those of separate paths, to 1e-13."""
    calls, paths = laid(forest)
    tokens = sum(sum(call.lengths) for call in calls)
    generator = torch.Generator().manual_seed(tokens)
    row = [
        torch.randn(1, heads, tokens, 8, generator=generator, dtype=torch.float64)
        for heads in (4, 2, 2)
    ]
    weights = torch.randn(tokens, 4, 8, generator=generator, dtype=torch.float64)
    states = [each.clone().requires_grad_() for each in row]
    q, k, v = states
    found, _ = attention.attend(torch.nn.Identity(), q, k, v, None, scaling=0.25, layout=calls)
    (found[0] * weights).sum().backward()

    alone = [each.clone().requires_grad_() for each in row]
    query, key, value = (each[0].transpose(0, 1) for each in alone)
    lengths = [length for call in calls for length in call.lengths]
    expected = torch.cat([
        attend_alone(query[path], key[path], value[path])[-length:]
        for path, length in zip(paths, lengths, strict=True)
    ])  # fmt: skip
    (expected * weights).sum().backward()
    torch.testing.assert_close(found[0], expected, rtol=1e-13, atol=1e-13)
    for ours, theirs in zip(states, alone, strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("lengths", "batches"),
    [
        ([], []),
        ([5], [[0]]),
        ([10, 100, 80, 8, 74], [[1, 2], [4], [0, 3]]),  # 80 >= 75 > 74; 74 * 3 / 4 = 55.5 > 10
    ],
)
def test_streams_of_like_length_attend_together(
    lengths: Sequence[int], batches: list[list[int]]
) -> None:
    assert attention.alike(lengths) == batches
