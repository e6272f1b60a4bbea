"""Tests that sharing, packing, chunking and checkpointing change neither loss nor gradients.

The reference is `naive`: each segment separately, unpacked, in the stock model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tiny_models import smaller_model
from visenv.policy import BatchBudget
from visenv.types import Image, Segment, Video, Visual

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.policies.transformers import naive
from visenv.policies import transformers as package
from visenv.policies.transformers import head as head_module
from visenv.policies.transformers import trees

pytestmark = pytest.mark.component("torch", "transformers", "outlines-core")

REGEXES = ("[a-z]{2,6}", "(red|blue)( [0-9])+", "yes|no")


class Episodes(NamedTuple):
    """Holds random segments and the settings for their scoring."""

    segments: Sequence[Segment]
    budget: BatchBudget
    chunk: int
    worth: int
    weights: list[Any]


class Drawer:
    """Draws episodes for a policy."""

    def __init__(self, policy: Any, talk: Any, draw: Any) -> None:
        self.codec = policy.codec
        self.draw = draw
        sizes = [(56, 56), (112, 56), (56, 112)]
        self.pictures: list[Visual] = [
            *(talk.picture(seed, *sizes[seed % 3]) for seed in range(4)),
            *(talk.clip(frames, frames, *sizes[frames % 3]) for frames in (1, 2, 3, 5)),
            Video(talk.clip(3, 3).frames, (0.0, 1.3, 2.6)),  # the same frames at other times
        ]
        self.words = np.flatnonzero(~self.codec.banned)

    def text(self, least: int, most: int) -> tuple[int, ...]:
        seed, size = self.draw(st.tuples(st.integers(0, 99), st.integers(least, most)))
        drawn: list[int] = np.random.default_rng(seed).choice(self.words, size).tolist()
        return tuple(drawn)

    def shown(self, most_images: int) -> list[Any]:
        """Return text with images and videos at any position."""
        parts: list[Any] = [self.text(0, 24)]
        for picture in self.draw(st.lists(st.sampled_from(self.pictures), max_size=most_images)):
            parts += [picture, self.text(1, 3)]  # the stock model merges adjacent images
        return parts

    def said(self) -> Any:
        """Return a sampled turn, free or constrained by a regular expression."""
        regex = self.draw(st.sampled_from((None, None, *REGEXES)))
        if regex is None:
            return naive.Said(self.text(1, 8))
        constraint = self.codec.constraints.get(regex)
        state, tokens = constraint.start, []
        for pick in self.draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=6)):
            allowed = torch.nonzero(constraint.allowed(state))[:, 0].tolist()
            tokens.append(allowed[pick % len(allowed)])
            if tokens[-1] == self.codec.end_id:
                break
            state = constraint.after(state, tokens[-1])
        return naive.Said(tuple(tokens), regex)

    def tree(self, begun: Sequence[Any], levels: int) -> list[Segment]:
        """Return segments with a common prefix, which includes turns and observations between them.

        A branch may be a rebuilt context, in which earlier turns are part of the prompt.
        """
        if levels == 0 or self.draw(st.integers(0, 3)) == 0:
            temperature = self.draw(st.sampled_from((0.0, 0.5, 1.0)))
            return [naive.segment_of(self.codec, begun, temperature)]
        members = []
        for _ in range(self.draw(st.integers(1, 3))):
            parts = list(begun)
            if self.draw(st.integers(0, 3)) == 0:
                parts = [each.token_ids if isinstance(each, naive.Said) else each for each in parts]
            parts += [*self.shown(1), self.said()]
            members += self.tree(parts, levels - 1)
        return members

    def episodes(self) -> Episodes:
        segments: list[Segment] = []
        for _ in range(self.draw(st.integers(1, 2))):
            segments += self.tree([self.text(1, 4), *self.shown(2)], 3)
        order = self.draw(st.permutations(range(len(segments))))
        segments = [segments[index] for index in order]
        rng = np.random.default_rng(self.draw(st.integers(0, 99)))
        patches = self.draw(st.none() | st.integers(1, 300))
        return Episodes(
            segments,
            BatchBudget(self.draw(st.integers(1, 400)), patches),
            self.draw(st.sampled_from((1, 5, 10**6))),
            self.draw(st.sampled_from((1, 1, 8, 64))),
            [torch.from_numpy(rng.normal(size=int(one.loss_mask.sum()))) for one in segments],
        )


def shared_loss(policy: Any, episodes: Episodes, images: Mapping[str, Visual]) -> float:
    """Return the loss; leave its gradient in the parameters."""
    loss = 0.0
    for part in policy.split(episodes.segments, episodes.budget):
        scores = policy.score([episodes.segments[index] for index in part], images)
        weights = torch.cat([episodes.weights[index] for index in part])
        value = (scores.logprobs[scores.mask] * weights.to(scores.logprobs.dtype)).sum()
        value.backward()
        loss += value.item()
    return loss


def naive_loss(model: Any, codec: Any, episodes: Episodes, images: Mapping[str, Visual]) -> float:
    loss = 0.0
    for segment, weights in zip(episodes.segments, episodes.weights, strict=True):
        value = (naive.logprobs(model, codec, segment, images) * weights).sum()
        value.backward()
        loss += value.item()
    return loss


@pytest.fixture(scope="module", params=["qwen3_vl", "qwen2_5_vl"])
def small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model even smaller than the tiny one."""
    folder = tmp_path_factory.mktemp(request.param)
    return smaller_model(folder, request.param)


def test_loss_and_gradients_are_those_of_each_segment_alone(small: Path, talk: Any) -> None:
    """Check equality to 1e-10 in float64 for any sharing, splits, chunks and recomputation."""
    policy = package.TransformersPolicy(small, threads=1, gradient_checkpointing=True)
    policy.network.model.double()
    stock = naive.stock(small, torch.float64)

    @settings(max_examples=6, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def equal(data: Any) -> None:
        drawer = Drawer(policy, talk, data.draw)
        episodes = drawer.episodes()
        images = {picture.sha256: picture for picture in drawer.pictures}
        policy.train_mode(data.draw(st.booleans()))  # checkpointing is only used in training
        for model in (policy.network.model, stock):
            model.zero_grad()
        with pytest.MonkeyPatch.context() as patch:
            row = 4 * policy.codec.banned.size
            patch.setattr(head_module, "CHUNK", episodes.chunk * row)
            patch.setattr(trees, "_WORTH", episodes.worth)
            found = shared_loss(policy, episodes, images)
        expected = naive_loss(stock, policy.codec, episodes, images)
        assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
        gradients = naive.gradients(policy.network.model)
        for name, gradient in naive.gradients(stock).items():
            torch.testing.assert_close(
                gradients[name], gradient, rtol=1e-10, atol=1e-10, msg=lambda why, n=name: n + why
            )

    with naive.in_full():
        equal()


def test_gradients_of_a_tree_of_depth_three_are_those_of_each_segment_alone(
    small: Path, talk: Any
) -> None:
    """Check four members with a common prompt, of which three share a turn and two another one.

    A rebuilt context has earlier turns of two members in its prompt. In float64, whose relative
    rounding is 1e-16, each parameter's gradient must equal that of separate segments to 1e-14 of
    its largest number.
    """
    policy = package.TransformersPolicy(small, threads=1)
    policy.network.model.double()
    policy.train_mode(True)
    stock = naive.stock(small, torch.float64)
    pictures = [talk.picture(seed, 112, 112) for seed in range(3)]
    rng = np.random.default_rng(0)
    words = np.flatnonzero(~policy.codec.banned)

    def text(length: int) -> tuple[int, ...]:
        return tuple(rng.choice(words, length).tolist())

    prompt = [text(20), pictures[0], text(20)]
    first, shown, second = (
        naive.Said(text(30)),
        [text(3), pictures[1], text(40)],
        naive.Said(text(70)),
    )
    branch = [*prompt, first, *shown]
    segments = [
        naive.segment_of(policy.codec, parts)
        for parts in (
            [*branch, second, text(5), naive.Said(text(6))],
            [*branch, second, text(2), pictures[2], naive.Said(text(9))],
            [*branch, naive.Said(text(12))],
            [*prompt, naive.Said(text(8))],
            [*prompt, first.token_ids, text(4), naive.Said(text(7))],
        )
    ]
    prompted, begun = 40 + 16, 40 + 16 + 30
    (root,) = trees.grow(segments)
    assert (root.members, root.end) == ((0, 1, 2, 3, 4), prompted)
    (said,) = (node for node in root.children if len(node.members) == 4)
    assert (said.members, said.end) == ((0, 1, 2, 4), begun)
    (seen,) = (node for node in said.children if len(node.members) == 3)
    (last,) = (node for node in seen.children if len(node.members) == 2)
    assert (seen.members, seen.end) == ((0, 1, 2), begun + 3 + 16 + 40)
    assert (last.members, len(last)) == ((0, 1), 70)

    images = {picture.sha256: picture for picture in pictures}
    weights = [torch.from_numpy(rng.normal(size=int(one.loss_mask.sum()))) for one in segments]
    episodes = Episodes(segments, BatchBudget(10**6), 10**6, 64, weights)
    with naive.in_full():
        found = shared_loss(policy, episodes, images)
        expected = naive_loss(stock, policy.codec, episodes, images)
    assert found == pytest.approx(expected, rel=1e-13)
    gradients = naive.gradients(policy.network.model)
    for name, gradient in naive.gradients(stock).items():
        apart = float((gradients[name] - gradient).abs().max())
        assert apart <= 1e-14 * float(gradient.abs().max()), name


def test_gradients_of_a_tree_with_videos_are_those_of_each_segment_alone(
    small: Path, talk: Any
) -> None:
    """Check a shared video of 3 frames, a shared image, and further videos of 1 to 8 frames.

    As in the test with images above, gradients agree to 1e-14 in float64. One member has the frames
    of another at other times, which changes only positions for Qwen2.5-VL, and only words for
    Qwen3-VL.
    """
    policy = package.TransformersPolicy(small, threads=1)
    policy.network.model.double()
    policy.train_mode(True)
    stock = naive.stock(small, torch.float64)
    rng = np.random.default_rng(0)
    words = np.flatnonzero(~policy.codec.banned)

    def text(length: int) -> tuple[int, ...]:
        return tuple(rng.choice(words, length).tolist())

    prompted, picture = talk.clip(1, 3, 112, 56, 0.7), talk.picture(9, 56, 112)
    clips = [talk.clip(2 + n, n, 56 + 28 * (n % 3), 56) for n in (1, 2, 5, 8)]
    later = Video(clips[2].frames, tuple([3 * time for time in clips[2].times]))
    prompt = [text(40), prompted, text(20), picture, text(10), naive.Said(text(30))]
    segments = [
        naive.segment_of(policy.codec, [*prompt, text(2), clip, text(3), naive.Said(text(6 + n))])
        for n, clip in enumerate((*clips, later))
    ]
    segments.append(naive.segment_of(policy.codec, [text(5), clips[0], clips[3], naive.Said((7,))]))
    root = max(trees.grow(segments), key=len)
    assert root.members == (0, 1, 2, 3, 4)
    assert len(root) == len(naive.segment_of(policy.codec, prompt))
    images = {each.sha256: each for each in (prompted, picture, *clips, later)}
    assert {len(segment.videos) > 1 for segment in segments} == {True}
    weights = [torch.from_numpy(rng.normal(size=int(one.loss_mask.sum()))) for one in segments]
    episodes = Episodes(segments, BatchBudget(10**6), 10**6, 64, weights)
    with naive.in_full():
        found = shared_loss(policy, episodes, images)
        expected = naive_loss(stock, policy.codec, episodes, images)
    assert found == pytest.approx(expected, rel=1e-13)
    gradients = naive.gradients(policy.network.model)
    for name, gradient in naive.gradients(stock).items():
        apart = float((gradients[name] - gradient).abs().max())
        assert apart <= 1e-14 * float(gradient.abs().max()), name


def group_of(policy: Any, talk: Any) -> tuple[Episodes, dict[str, Image]]:
    """Return two groups of four, each with an image in its prompt and one between its turns."""
    pictures = [talk.picture(seed, 112, 112) for seed in range(6)]
    rng = np.random.default_rng(0)
    words = np.flatnonzero(~policy.codec.banned)

    def text(length: int) -> tuple[int, ...]:
        return tuple(rng.choice(words, length).tolist())

    segments = []
    for group in range(2):
        prompt = [text(20), pictures[group], text(20)]
        for member in range(4):
            shown = [text(3), pictures[2 + member], text(2)]
            turns = [naive.Said(text(10)), *shown, naive.Said(text(5 + member))]
            segments.append(naive.segment_of(policy.codec, [*prompt, *turns]))
    weights = [torch.from_numpy(rng.normal(size=int(one.loss_mask.sum()))) for one in segments]
    images = {picture.sha256: picture for picture in pictures}
    return Episodes(segments, BatchBudget(10**6), 10**6, 64, weights), images


def test_bfloat16_is_as_near_to_the_truth_as_it_is_unshared(small: Path, talk: Any) -> None:
    """Check that sharing adds no error to that of bfloat16, with float64 as the reference.

    Both computations round every activation to 8 bits (2^-9 relative, thousands of times), in
    different orders of sums, and are about 1% from the reference. Their errors agree up to chance:
    in the norm of the whole gradient, the error with sharing may be a quarter larger than without.
    """
    policy = package.TransformersPolicy(small, threads=1, dtype="bfloat16")
    policy.train_mode(True)
    episodes, images = group_of(policy, talk)
    rounded = naive.stock(small, torch.bfloat16)
    exact = naive.stock(small, torch.bfloat16).double()  # the same weights
    with naive.in_full():
        naive_loss(exact, policy.codec, episodes, images)
    naive_loss(rounded, policy.codec, episodes, images)
    shared_loss(policy, episodes, images)
    truth = naive.gradients(exact)
    alone = {name: one.double() - truth[name] for name, one in naive.gradients(rounded).items()}
    ours = {
        name: one.double() - truth[name]
        for name, one in naive.gradients(policy.network.model).items()
    }
    assert 0.001 * norm(truth) < norm(alone) < 0.05 * norm(truth)
    assert norm(ours) <= 1.25 * norm(alone)


def norm(gradients: Mapping[str, Any]) -> float:
    return float(sum(one.square().sum() for one in gradients.values()).sqrt())
