"""Which segments share a beginning, and which go through the network together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from visenv.policy import Budget
from visenv.types import ImageSpan, Segment

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.transformers import trees

pytestmark = pytest.mark.component("torch", "transformers")

IMAGE = 99


def segment(tokens: Sequence[int], images: Sequence[tuple[int, str, int]] = ()) -> Segment:
    """A segment without sampled tokens; images as (offset, hash, columns), one row high."""
    length = len(tokens)
    spans = tuple(
        ImageSpan(at, columns, name, (1, 2, 2 * columns), IMAGE) for at, name, columns in images
    )
    return Segment(
        np.array(tokens, np.int32),
        np.zeros(length, np.bool_),
        np.zeros(length, np.float32),
        np.zeros(length, np.int32),
        (),
        spans,
        (IMAGE,),
        2,
        1.0,
        "processor",
    )


PROMPT = list(range(20))


def test_a_group_shares_its_prompt() -> None:
    others = list(range(50, 80))
    segments = [segment([*PROMPT, 40]), segment(others), segment([*PROMPT, 41, 42])]
    assert set(trees.grow(segments)) == {((0, 2), 20), ((1,), 0)}


def test_what_is_shared_by_chance_is_not_worth_a_tree() -> None:
    """15 tokens are too few, 16 are enough."""
    few = [segment([*PROMPT[:15], 40]), segment([*PROMPT[:15], 41])]
    assert set(trees.grow(few)) == {((0,), 0), ((1,), 0)}
    enough = [segment([*PROMPT[:16], 40]), segment([*PROMPT[:16], 41])]
    assert trees.grow(enough) == [((0, 1), 16)]


def test_the_split_that_saves_most_is_found() -> None:
    """Two groups of 3 share 18 tokens; each group shares 40.

    Apart: 2 * (3 - 1) * 40 = 160 tokens saved. Together: (6 - 1) * 18 = 90.
    """
    one, other = PROMPT[:18] + [50] * 22, PROMPT[:18] + [51] * 22
    segments = [segment([*prompt, end]) for end in (1, 2, 3) for prompt in (one, other)]
    assert set(trees.grow(segments)) == {((0, 2, 4), 40), ((1, 3, 5), 40)}
    # A member alone is better off with another group's beginning than with none.
    assert trees.grow(segments[:2]) == [((0, 1), 18)]


def test_segments_that_are_alike_are_read_once() -> None:
    assert trees.grow([segment(PROMPT), segment(PROMPT)]) == [((0, 1), 20)]
    longer = [segment(PROMPT), segment([*PROMPT, 1])]
    assert trees.grow(longer) == [((0, 1), 20)]


def test_the_same_placeholders_of_other_images_are_not_shared() -> None:
    def showing(name: str) -> Segment:
        return segment([*PROMPT, *[IMAGE] * 4, 1, 2], [(20, name, 4)])

    assert trees.grow([showing("a"), showing("a")]) == [((0, 1), 26)]
    assert trees.grow([showing("a"), showing("b")]) == [((0, 1), 20)]


def test_a_beginning_never_ends_inside_an_image() -> None:
    """The same pixels in another grid are another image."""
    wide = segment([*PROMPT, *[IMAGE] * 4], [(20, "a", 4)])
    narrow = segment([*PROMPT, *[IMAGE] * 2, 5, 5], [(20, "a", 2)])
    assert trees.grow([wide, narrow]) == [((0, 1), 20)]


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All ways to share items out over sets."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place, found in enumerate(rest):
            yield [*rest[:place], [items[0], *found], *rest[place + 1 :]]


def shared(members: Sequence[Segment]) -> int:
    """What they all begin with."""
    tokens = [one.token_ids.tolist() for one in members]
    length = min(map(len, tokens))
    same = next((k for k in range(length) if len({one[k] for one in tokens}) > 1), length)
    return same if same >= 2 else 0


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=6))
def test_no_other_trees_read_fewer_tokens(tokens: list[list[int]]) -> None:
    segments = [segment(one) for one in tokens]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "_WORTH", 2)
        grown = trees.grow(segments)
    assert sorted(member for tree in grown for member in tree.members) == [*range(len(segments))]
    saved = sum((len(members) - 1) * common for members, common in grown)
    best = max(
        sum((len(part) - 1) * shared([segments[index] for index in part]) for part in partition)
        for partition in partitions(list(range(len(segments))))
    )
    assert saved == best
    for members, common in grown:
        if len(members) > 1:
            assert common == shared([segments[index] for index in members])


def read(segments: Sequence[Segment], part: Sequence[int]) -> tuple[int, int]:
    """Tokens and patches that a part reads."""
    chosen = [segments[index] for index in part]
    grown = trees.grow(chosen)
    tokens = sum(map(len, chosen)) - sum((len(tree.members) - 1) * tree.shared for tree in grown)
    patches = {span.sha256: int(np.prod(span.grid)) for one in chosen for span in one.images}
    return tokens, sum(patches.values())


def test_trees_are_kept_together_and_fill_what_has_room() -> None:
    """Sizes 20 + 3 = 23 (three members), 30 and 7 in parts of 30: 30 | 23 + 7."""
    group = [segment([*PROMPT, end]) for end in (40, 41, 42)]
    segments = [group[0], segment([60] * 30), group[1], segment([70] * 7), group[2]]
    assert trees.split(segments, Budget(30)) == [[1], [0, 2, 4, 3]]


def test_a_tree_over_the_budget_is_cut_between_its_members() -> None:
    """A prompt of 20 and members of 4 in parts of 28: two members each."""
    segments = [segment([*PROMPT, *[40 + end] * 4]) for end in range(5)]
    assert trees.split(segments, Budget(28)) == [[0, 1], [2, 3], [4]]


def test_what_exceeds_a_budget_goes_alone() -> None:
    pictures = [(3 * k, f"image {k}", 2) for k in range(20)]
    episode = segment([IMAGE, IMAGE, 7] * 20, pictures)  # 20 images of 8 patches
    segments = [segment([1] * 50), episode, segment([2] * 3), segment([3] * 4)]
    assert trees.split(segments, Budget(40, 100)) == [[1], [0], [3, 2]]
    assert trees.split(segments, Budget(200, 160)) == [[1, 0, 3, 2]]


def test_each_distinct_image_counts_once_in_a_part() -> None:
    segments = [segment([IMAGE, IMAGE, *[9 + k] * 5], [(0, "same", 2)]) for k in range(3)]
    assert trees.split(segments, Budget(100, 8)) == [[0, 1, 2]]
    other = segment([IMAGE, IMAGE, *[5] * 5], [(0, "other", 2)])
    assert trees.split([*segments, other], Budget(100, 8)) == [[0, 1, 2], [3]]


@given(st.data())
def test_parts_keep_to_the_budget(data: Any) -> None:
    segments = []
    for prompt in range(data.draw(st.integers(1, 3))):
        for _ in range(data.draw(st.integers(1, 4))):
            tokens = [prompt] * 20 + data.draw(st.lists(st.integers(4, 6), max_size=9))
            shown = data.draw(st.lists(st.sampled_from("abc"), max_size=3))
            images = [(len(tokens) + 2 * k, name, 2) for k, name in enumerate(shown)]
            segments.append(segment(tokens + [IMAGE] * 2 * len(shown), images))
    patches = data.draw(st.none() | st.integers(1, 30))
    budget = Budget(data.draw(st.integers(1, 90)), patches)
    parts = trees.split(segments, budget)
    assert sorted(index for part in parts for index in part) == [*range(len(segments))]
    for part in parts:
        tokens, seen = read(segments, part)
        within = tokens <= budget.tokens and (patches is None or seen <= patches)
        assert within or len(part) == 1


def test_no_segments_are_no_parts() -> None:
    assert trees.split([], Budget(10)) == []
