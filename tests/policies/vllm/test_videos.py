"""Tests videos in vLLM: the same tokens and log-probabilities as in the trainer."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visenv.errors import PolicyError
from visenv.registration import load
from visenv.types import Sampling, Video

pytest.importorskip("torch")
pytest.importorskip("transformers")

from visenv.policies.tokens.video import facts_of
from visenv.policies.vllm import videos

pytestmark = pytest.mark.component("vllm", "torch", "transformers", "outlines-core")

GREEDY = Sampling(0.0, 12)
BOUND = 1e-5
"""Largest difference of log-probabilities in float32; 1.5e-6 was measured."""


def conversations(talk: Any) -> list[list[Any]]:
    """Return videos of 1 to 32 frames, some tiny or narrow, with images and over two turns."""
    odd, again = talk.clip(1, 5, 64, 48, 0.7), talk.clip(2, 3, 3, 3)
    return [
        [talk.shown("what?", talk.clip(3, 32, 16, 16, 0.31))],
        [talk.shown("a", odd, talk.picture(1), again), talk.shown("b", talk.clip(4, 1))],
        [talk.shown("c", talk.clip(5, 2, 150, 3, 2.3)), talk.shown("d", talk.picture(2), odd)],
        [talk.shown("e", Video(odd.frames, (-1.5, 0.2, 7.0, 7.1, 60.25)))],
    ]


def items(turns: list[Any]) -> dict[str, Any]:
    parts = [part for turn in turns for message in turn for part in message.parts]
    return {part.sha256: part for part in parts if not isinstance(part, str)}


def play(talk: Any, policy: Any, sampling: Sampling) -> list[Any]:
    talks = [talk.converse(policy, k, turns, sampling=sampling)
             for k, turns in enumerate(conversations(talk))]  # fmt: skip
    return [segment for session, _ in talk.together(talks) for segment in session.segments()]


def test_greedy_turns_are_token_identical(pair: Any, talk: Any) -> None:
    """Check sampled turns; vLLM's prompt is compared with ours in every turn, as for images."""
    vllm, transformers = pair
    ours, theirs = (play(talk, each, GREEDY) for each in (vllm, transformers))
    assert all(segment.videos for segment in ours)
    for one, other in zip(ours, theirs, strict=True):
        assert one.token_ids.tolist() == other.token_ids.tolist()
        assert one.videos == other.videos
        assert one.processor == other.processor
        np.testing.assert_allclose(one.logprobs, other.logprobs, rtol=0, atol=BOUND)


def test_sampled_log_probabilities_are_those_of_score(pair: Any, talk: Any, exam: Any) -> None:
    """Check log-probabilities, and thereby positions, which differ from transformers' at 0.7 s."""
    vllm, transformers = pair
    shown = {name: item for turns in conversations(talk) for name, item in items(turns).items()}
    assert exam.error(transformers, play(talk, vllm, Sampling(1.0, 12)), shown) < BOUND


def test_video_too_many_is_named(vllm3: Any, talk: Any) -> None:
    shown = [talk.shown("a", *(talk.clip(k, 2, 16, 16) for k in range(5)))]
    with pytest.raises(PolicyError, match=r"5 videos.*at most 4 \(max_videos\)"):
        talk.alone(vllm3, 0, shown)


# ---------------------------------------------------------------------------------- servers


def test_packed_video_comes_out_as_it_was(talk: Any) -> None:
    video = Video(talk.clip(1, 3, 5, 7).frames, (-0.1, 1 / 3, 1e5))
    data = videos.packed(video)
    assert videos.unpacked(data) == video
    frames, metadata = videos.FrameLoader.load_bytes(data, num_frames=32, fps=2)
    assert frames.shape == (3, 3, 7, 5)
    np.testing.assert_array_equal(frames[1].transpose(1, 2, 0), video.frames[1].pixels)
    assert metadata == facts_of(video) | {"do_sample_frames": False}


@pytest.mark.attack("data: a pickle of a published data set runs no code")
def test_packed_video_is_no_pickle() -> None:
    buffer = io.BytesIO()
    np.savez(buffer, times=np.array([print], object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        videos.unpacked(buffer.getvalue())


def test_servers_of_other_programs_find_the_loader() -> None:
    """Check the entry point that vLLM calls in each of its processes."""
    from vllm.multimodal.video import VIDEO_LOADER_REGISTRY

    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    (named,) = project["entry-points"]["vllm.general_plugins"].values()
    load("policy", named)()
    assert VIDEO_LOADER_REGISTRY.load(videos.LOADER).load_bytes is not None
    assert videos.loaded_by_us()["media_io_kwargs"]["video"]["video_backend"] == videos.LOADER
