"""Tests the split of segments into parts that the network processes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.policy import BatchBudget
from visenv.types import Segment

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.transformers.test_trees import IMAGE, PROMPT, segment
from visenv.policies.transformers import parts, trees

pytestmark = pytest.mark.component("torch", "transformers")


def read(segments: Sequence[Segment], part: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of tokens and patches of a part."""
    chosen = [segments[index] for index in part]
    patches = {span.sha256: span.patches for one in chosen for span in one.images}
    return trees.size(trees.grow(chosen)), sum(patches.values())


def test_split_keeps_trees_together_and_fills_what_has_room() -> None:
    """Check sizes 100 + 3 = 103 (three members), 110 and 7 with a budget of 110: 110 | 103 + 7."""
    group = [segment([*PROMPT, end]) for end in (40, 41, 42)]
    segments = [group[0], segment([60] * 110), group[1], segment([70] * 7), group[2]]
    assert parts.split(segments, BatchBudget(110)) == [[1], [0, 2, 4, 3]]


def test_split_cuts_a_tree_over_the_budget_between_its_members() -> None:
    """Check a prompt of 100 and members of 4 with a budget of 108: two members per part."""
    segments = [segment([*PROMPT, *[40 + end] * 4]) for end in range(5)]
    assert parts.split(segments, BatchBudget(108)) == [[0, 1], [2, 3], [4]]


def test_split_cuts_a_tree_between_its_subtrees() -> None:
    """Check two groups of two with a common system prompt of 100 and a question of 80 per group.

    A group has 100 + 80 + 2 * 5 = 190 tokens and both have 280, so a part of 200 holds one group.
    """
    segments = [
        segment([*PROMPT, *[question] * 80, *[end] * 5]) for end in (3, 4) for question in (1, 2)
    ]
    assert parts.split(segments, BatchBudget(280)) == [[0, 1, 2, 3]]
    assert parts.split(segments, BatchBudget(200)) == [[0, 2], [1, 3]]


def test_split_puts_a_segment_where_it_adds_the_fewest_tokens() -> None:
    """Check two trees of 100 + 4 * 90 = 460 and 100 + 150 + 100 + 80 = 430 with a budget of 400.

    Three members of the first tree make a part of 370 tokens, the fourth one of 190. The first
    member of the second tree makes a third part of 250. The next member fits beside the 190, where
    it adds 200, but adds only 100 beside its sibling. The last member fits only beside the 190.
    """
    one = [segment([*PROMPT, *[end] * 90]) for end in range(4)]
    prompt = [7] * 100
    other = [segment([*prompt, *[end] * own]) for end, own in ((0, 150), (1, 100), (2, 80))]
    assert parts.split([*one, *other], BatchBudget(400)) == [[0, 1, 2], [3, 6], [4, 5]]


def test_split_leaves_what_exceeds_a_budget_alone() -> None:
    pictures = [(3 * k, f"image {k}", 2) for k in range(20)]
    episode = segment([IMAGE, IMAGE, 7] * 20, pictures)  # 20 images of 8 patches
    segments = [segment([1] * 50), episode, segment([2] * 3), segment([3] * 4)]
    assert parts.split(segments, BatchBudget(40, 100)) == [[1], [0], [3, 2]]
    assert parts.split(segments, BatchBudget(200, 160)) == [[1, 0, 3, 2]]


def test_split_counts_each_distinct_image_of_a_part_once() -> None:
    segments = [segment([IMAGE, IMAGE, *[9 + k] * 5], [(0, "same", 2)]) for k in range(3)]
    assert parts.split(segments, BatchBudget(100, 8)) == [[0, 1, 2]]
    other = segment([IMAGE, IMAGE, *[5] * 5], [(0, "other", 2)])
    assert parts.split([*segments, other], BatchBudget(100, 8)) == [[0, 1, 2], [3]]


@given(st.data())
def test_split_keeps_parts_within_the_budget(data: Any) -> None:
    segments = []
    for prompt in range(data.draw(st.integers(1, 3))):
        for _ in range(data.draw(st.integers(1, 4))):
            tokens = [prompt] * 20 + data.draw(st.lists(st.integers(4, 6), max_size=9))
            shown = data.draw(st.lists(st.sampled_from("abc"), max_size=3))
            images = [(len(tokens) + 2 * k, name, 2) for k, name in enumerate(shown)]
            segments.append(segment(tokens + [IMAGE] * 2 * len(shown), images))
    patches = data.draw(st.none() | st.integers(1, 30))
    budget = BatchBudget(data.draw(st.integers(1, 90)), patches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_WORTH", data.draw(st.sampled_from((1, 3, 20, 64))))
        found = parts.split(segments, budget)
        assert sorted(index for part in found for index in part) == [*range(len(segments))]
        for part in found:
            tokens, seen = read(segments, part)
            within = tokens <= budget.tokens and (patches is None or seen <= patches)
            assert within or len(part) == 1


def test_split_makes_no_part_of_no_segments() -> None:
    assert parts.split([], BatchBudget(10)) == []
