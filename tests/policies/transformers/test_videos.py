"""Tests sampling and training with videos: scores equal sampled values, also from saved files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401  (registers the ids)
from visenv.algos.policy_gradient import GRPO
from visenv.algos.trainer.credit import credit
from visenv.algos.trainer.micro_batches import micro_batches
from visenv.episodes import read_episodes, write_episodes
from visenv.policy import BatchBudget
from visenv.rollout import Collector
from visenv.types import Sampling, Video, Visual

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.component("torch", "transformers")

ALONE: Any = SimpleNamespace(count=1)
"""The context of a single process."""

BOUND = 1e-5
"""Largest difference of log-probabilities in float32."""


def turns_of(talk: Any, index: int) -> list[Any]:
    """Return two or three turns with an image and videos of 1 to 6 frames, which vary by index."""
    clips = [talk.clip(10 * index + k, 1 + (index + 2 * k) % 6, 32 + 16 * k, 48) for k in range(3)]
    turns = [
        talk.shown(f"question {index}", clips[0], talk.picture(index), clips[1]),
        talk.shown("and", *clips[2:], *[clips[0]] * (index % 2)),
    ]
    return turns + [talk.shown("then?")] * (index % 2)


def shown_in(turns: list[Any]) -> dict[str, Visual]:
    messages = [message for turn in turns for message in turn]
    return {
        part.sha256: part
        for message in messages
        for part in message.parts
        if not isinstance(part, str)
    }


def error(policy: Any, segments: Any, shown: Any) -> float:
    scores = policy.score(segments, shown).logprobs.detach().numpy()
    return max(
        float(np.abs(scores[row, : len(segment)] - segment.logprobs).max())
        for row, segment in enumerate(segments)
    )


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_sampled_log_probabilities_are_those_of_score(
    policy: Any, talk: Any, temperature: float
) -> None:
    """Check batches of conversations, with keys and values kept between turns."""
    conversations = [turns_of(talk, index) for index in range(5)]
    sampling = Sampling(temperature, 10)
    played = talk.together(
        [policy_turns(talk, policy, k, each, sampling) for k, each in enumerate(conversations)]
    )
    segments = [segment for session, _ in played for segment in session.segments()]
    shown = {name: item for turns in conversations for name, item in shown_in(turns).items()}
    assert {len(segment.images) for segment in segments} == {1}
    assert min(len({span.sha256 for span in segment.videos}) for segment in segments) == 3
    assert error(policy, segments, shown) < BOUND
    alone, _ = talk.alone(policy, 3, conversations[3], sampling=sampling)
    assert alone.segments()[0].token_ids.tolist() == segments[3].token_ids.tolist()


def policy_turns(talk: Any, policy: Any, seed: int, turns: Any, sampling: Any) -> Any:
    return talk.converse(policy, seed, turns, sampling=sampling)


def test_time_of_frames_reaches_the_model(policy: Any, talk: Any) -> None:
    """Check that the same frames at other times give other log-probabilities."""
    video = talk.clip(1, 6)
    slow = Video(video.frames, tuple([4 * time for time in video.times]))
    logprobs = []
    for each in (video, slow):
        session, _ = talk.alone(policy, 0, [talk.shown("x", each)], sampling=Sampling(0.0, 1))
        logprobs.append(float(session.segments()[0].logprobs[-1]))
    assert abs(logprobs[0] - logprobs[1]) > 1e-4


def test_members_of_a_group_read_their_video_once(
    policy: Any, talk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    original = policy.network.vision.look

    def spy(images: Any, **options: Any) -> Any:
        looked.append(len(images))
        return original(images, **options)

    monkeypatch.setattr(policy.network.vision, "look", spy)
    turns = [talk.shown("what happens? " * 8, talk.clip(1, 5))]
    played = talk.together([talk.converse(policy, seed, turns) for seed in range(4)])
    segments = [session.segments()[0] for session, _ in played]
    packed = policy.collate(segments, shown_in(turns))
    alone = policy.collate(segments[:1], shown_in(turns))
    assert packed.shown == alone.shown
    policy.score(segments, shown_in(turns))
    assert looked == [1, 1]


@pytest.mark.parametrize(("videos", "parts"), [(1.9, [[0, 1], [2]]), (2.0, [[0, 1, 2]])])
def test_budget_of_patches_counts_each_video_once(
    policy: Any, talk: Any, videos: float, parts: list[list[int]]
) -> None:
    """Check videos of 5 frames of 64 x 64: 3 steps of 8 x 8 patches for Qwen3-VL, 192 in total."""
    clips = [talk.clip(seed, 5) for seed in (1, 1, 2)]
    played = [talk.alone(policy, k, [talk.shown("x", clip)])[0] for k, clip in enumerate(clips)]
    segments = [session.segments()[0] for session in played]
    grids = {one.grid for one in policy.codec.family.videos.encode(clips)}
    assert grids == ({(3, 8, 8)} if len(segments[0].videos) == 3 else {(3, 4, 4)})
    patches = int(np.prod(grids.pop()))
    found = policy.split(segments, BatchBudget(10**6, int(videos * patches)))
    assert sorted(map(sorted, found)) == parts


def test_episode_of_argos_video_is_trained_on_as_it_was_sampled(
    policy: Any, tmp_path: Path
) -> None:
    """Check that scores stay the same when episodes are saved, read, credited and batched."""
    make = partial(gym.make, "visenv/ArgosVideo-v0", preset="tiny")
    groups = Collector(make, policy, Sampling(1.0, 12)).groups([3, 4], size=2)
    episodes = [episode for group in groups for episode in group]
    assert all(episode.segments[0].videos for episode in episodes)
    assert not any(episode.segments[0].images for episode in episodes)
    write_episodes(tmp_path / "episodes.jsonl", episodes)
    back = list(read_episodes(tmp_path / "episodes.jsonl"))
    assert back == episodes
    credited = credit(GRPO(), [back[:2], back[2:]]).own
    (batch,) = micro_batches(policy, credited, BatchBudget(10**6), ALONE)
    scores = policy.module(batch.collated(policy))
    for row, each in enumerate(batch.own):
        own = scores.logprobs[row, : len(each.segment)].detach().numpy()
        np.testing.assert_allclose(own, each.segment.logprobs, rtol=0, atol=BOUND)
