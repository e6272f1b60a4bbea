"""The packed row, by hand; and attention over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.errors import PolicyError
from visenv.types import VideoSpan

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.transformers import naive
from visenv.policies.transformers import attention
from visenv.policies.transformers import pack as pack_module

pytestmark = pytest.mark.component("torch", "transformers")

A, B, C = (5,), (6,), (7,)


def test_the_row_of_a_group_and_another_segment(qwen3: Any, talk: Any) -> None:
    """Two members share 16 tokens of text and an image of 4 by 4; a third segment shares nothing.

    Beginnings first, the longest first: 16 + 16 = 32 shared tokens, then 34 alone: within 3/4 of
    each other, so one call, the longer one first. Then the members' own: 3 and 4 tokens.
    """
    image = talk.picture(1, 64, 64)
    prompt = [A * 16, image]
    segments = [
        naive.segment_of(qwen3.codec, [*prompt, naive.Said(B * 3)]),
        naive.segment_of(qwen3.codec, [B * 30, image.__class__.from_pixels(image.pixels[:32, :32]),
                                       C * 2, naive.Said(A * 2)]),  # 4 tokens of image
        naive.segment_of(qwen3.codec, [*prompt, naive.Said(C * 4)]),
    ]  # fmt: skip
    images = {image.sha256: image}
    small = image.__class__.from_pixels(image.pixels[:32, :32])
    images[small.sha256] = small
    packed = pack_module.pack(qwen3.codec, segments, images)
    pad = qwen3.codec.image_id
    assert packed.token_ids.tolist() == [
        [6] * 30 + [pad] * 4 + [7, 7] + [5, 5]  # 0..37: the segment alone
        + [5] * 16 + [pad] * 16  # 38..69: what the members share
        + [7] * 4 + [6] * 3  # 70..73 and 74..76
    ]  # fmt: skip
    assert packed.layout == (
        attention.Call(0, (38, 32)),
        attention.Call(70, (4, 3), (38, 70)),
    )
    assert packed.shown == (small.sha256, image.sha256)
    assert [*packed.images] == [small.sha256, image.sha256]
    # The first member's turn follows the prompt's last token, 69; then its own first two.
    assert packed.before.tolist() == [69, 74, 75, 35, 36, 69, 70, 71, 72]
    assert packed.places.tokens.tolist() == [6, 6, 6, 5, 5, 7, 7, 7, 7]
    assert packed.mask.sum(1).tolist() == [3, 2, 4]
    assert packed.mask.shape == (3, 38)
    # Text 0..15, the image's rows and columns from 16, and text on from 16 + 4 = 20.
    assert packed.positions[:, 0, 69].tolist() == [16, 19, 19]
    for member in (70, 74):
        assert packed.positions[:, 0, member].tolist() == [20, 20, 20]
    assert packed.positions[0, 0, :30].tolist() == [*range(30)]


def test_without_sharing_each_segment_stands_whole(qwen3: Any) -> None:
    segments = [naive.segment_of(qwen3.codec, [A * 20, naive.Said(B * n)]) for n in (3, 2)]
    packed = pack_module.pack(qwen3.codec, segments, {}, share=False)
    assert packed.layout == (attention.Call(0, (23, 22)),)
    assert packed.before.tolist() == [19, 20, 21, 42, 43]


def test_an_image_in_several_places_is_there_once(qwen3: Any, talk: Any) -> None:
    image = talk.picture(1)
    segments = [
        naive.segment_of(qwen3.codec, [first, image, B * 2, image, naive.Said(C)])
        for first in (A * 3, C * 3)
    ]
    packed = pack_module.pack(qwen3.codec, segments, {image.sha256: image})
    assert [*packed.images] == [image.sha256]
    assert packed.shown == (image.sha256,) * 4


@pytest.mark.parametrize(
    ("parts", "why"),
    [([], "without tokens"), ([("said", 2), A], "nothing stands before it")],
)
def test_what_cannot_be_scored_is_refused(qwen3: Any, parts: Any, why: str) -> None:
    parts = [naive.Said(B * part[1]) if part[0] == "said" else part for part in parts]
    with pytest.raises(PolicyError, match=why):
        qwen3.score([naive.segment_of(qwen3.codec, parts)], {})


def test_a_segment_with_a_video_is_refused(qwen3: Any) -> None:
    shown = naive.segment_of(qwen3.codec, [A * 4, naive.Said(B)])
    tokens = shown.token_ids.copy()
    tokens[1] = 9
    span = VideoSpan(1, 1, "0" * 64, (1, 2, 2), 9, 0.5)
    filmed = replace(shown, token_ids=tokens, placeholder_ids=(9,), videos=(span,))
    with pytest.raises(PolicyError, match="no video tokens"):
        qwen3.score([filmed], {})


def test_no_segments_are_refused(qwen3: Any) -> None:
    with pytest.raises(PolicyError, match="no segments"):
        qwen3.collate([], {})


@pytest.mark.parametrize("length", [1, 30])
def test_a_segment_in_which_nothing_was_sampled_has_no_gradient_but_a_graph(
    fresh: Any, length: int
) -> None:
    """A process without sampled tokens must still take part in the backward pass."""
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
    """Causal attention of one stream, ``[tokens, heads, size]``, by its definition."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = torch.einsum("qhs,khs->hqk", query, key) * 0.25
    tokens = len(query)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    return torch.einsum("hqk,khs->qhs", weights, value)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(1, 9), max_size=4),
)
def test_each_stream_sees_what_it_would_see_alone(alone: list[int], own: list[int]) -> None:
    """Streams alone in one call; and remainders that continue the first of them."""
    generator = torch.Generator().manual_seed(len(alone) + 10 * len(own))
    tokens = sum(alone) + sum(own)
    row = [
        torch.randn(1, heads, tokens, 8, generator=generator, dtype=torch.float64)
        for heads in (4, 2, 2)
    ]
    layout = [attention.Call(0, tuple(alone))]
    if own:
        layout.append(attention.Call(sum(alone), tuple(own), (0, alone[0])))
    states = row[0], row[1], row[2]
    found, _ = attention.attend(torch.nn.Identity(), *states, None, scaling=0.25, layout=layout)
    query, key, value = (each[0].transpose(0, 1) for each in row)
    ends = np.cumsum([*alone, *own])
    streams = [
        [*range(end - length, end)] for end, length in zip(ends, [*alone, *own], strict=True)
    ]
    for number, stream in enumerate(streams):
        whole = streams[0] + stream if number >= len(alone) else stream
        expected = attend_alone(query[whole], key[whole], value[whole])[-len(stream) :]
        torch.testing.assert_close(found[0, stream], expected)


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
