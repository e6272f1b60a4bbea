"""Tests the split of a segment into prompt and completion, and the resulting row of TRL."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from visenv.algos.bridges.stream import cut
from visenv.background import run_here
from visenv.errors import ConfigurationError
from visenv.registration import load
from visenv.rollout import EpisodeSpec, play
from visenv.types import (
    Episode,
    Failure,
    Image,
    ImageSpan,
    Message,
    PlaceholderRun,
    Sampling,
    Segment,
    Turn,
    TurnSpan,
    Video,
    VideoSpan,
)

PAD = 9
FIRST, SECOND, HIDDEN = (
    Image.from_pixels(np.full((4, 4, 3), gray, np.uint8)) for gray in (1, 2, 3)
)


def _segment(sampled: tuple[tuple[int, int], ...]) -> Segment:
    """Return ``5 [9 9] 6 7 8 [9] 4 3``, where brackets enclose the placeholders of an image."""
    tokens = np.array([5, PAD, PAD, 6, 7, 8, PAD, 4, 3], np.int32)
    mask = np.zeros(9, np.bool_)
    for start, end in sampled:
        mask[start:end] = True
    return Segment(
        token_ids=tokens,
        loss_mask=mask,
        logprobs=np.where(mask, np.float32(-0.5), np.float32(0)),
        policy_version=np.zeros(9, np.int32),
        turns=tuple(TurnSpan(turn, *span, "stop") for turn, span in enumerate(sampled)),
        images=(
            ImageSpan(FIRST.sha256, (PlaceholderRun(1, 2),), PAD, 8),
            ImageSpan(SECOND.sha256, (PlaceholderRun(6, 1),), PAD, 4),
        ),
        placeholder_ids=(PAD,),
        temperature=1.0,
        processor="any",
    )


def _episode(*segments: Segment) -> Episode:
    shown = Message("user", (FIRST, "text", SECOND))
    turns = tuple(Turn((shown,), "said", 0.25, (), "stop") for each in segments for _ in each.turns)
    return Episode("e-v0", "s", "", 0, 0, 0, turns, "terminated", segments=segments)


AWAY = Failure("service", "judge", "away")
IMAGES = {image.sha256: image for image in (FIRST, SECOND)}


def test_cut_is_before_the_first_sampled_token() -> None:
    stream = cut(_segment(((4, 6), (8, 9))), IMAGES)
    assert stream.prompt_ids == [5, PAD, PAD, 6]
    assert stream.response_ids == [7, 8, PAD, 4, 3]
    assert stream.response_mask == [1, 1, 0, 0, 1]
    assert stream.logprobs == [-0.5, -0.5, 0, 0, -0.5]
    assert stream.images == [FIRST, SECOND]


def test_empty_reply_leaves_a_masked_token() -> None:
    stream = cut(_segment(((9, 9),)), IMAGES)
    assert stream.prompt_ids == [5, PAD, PAD, 6, 7, 8, PAD, 4]
    assert (stream.response_ids, stream.response_mask, stream.logprobs) == ([3], [0], [0.0])


def test_segment_with_a_video_is_refused_and_the_video_named() -> None:
    with pytest.raises(ConfigurationError, match=r"video tokens.*cannot export \(VideoSpan: 1\)"):
        cut(_filmed().segments[0], IMAGES)


def _filmed() -> Episode:
    """Return an episode with a video of two frames of one placeholder each: ``5 [8 8] 7``."""
    video = Video((FIRST, SECOND), (0.0, 0.5))
    mask = np.array([False, False, False, True])
    segment = Segment(
        token_ids=np.array([5, 8, 8, 7], np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, np.float32(-0.5), np.float32(0)),
        policy_version=np.zeros(4, np.int32),
        turns=(TurnSpan(0, 3, 4, "stop"),),
        images=(),
        placeholder_ids=(PAD, 8),
        temperature=1.0,
        processor="any",
        videos=(VideoSpan(1, 2, video.sha256, (2, 2, 2), 8, 0.5),),
    )
    turn = Turn((Message("user", (video,)),), "said", 0.25, (), "stop")
    return Episode("e-v0", "s", "", 0, 0, 0, (turn,), "terminated", segments=(segment,))


@pytest.mark.component("trl", "torch", "tensorboard")
class TestToTrl:
    def test_row(self) -> None:
        from visenv.algos.bridges.trl import to_trl

        assert to_trl(_episode(_segment(((4, 6), (8, 9))))) == {
            "prompt_ids": [5, PAD, PAD, 6],
            "completion_ids": [7, 8, PAD, 4, 3],
            "logprobs": [-0.5, -0.5, 0, 0, -0.5],
            "env_mask": [1, 1, 0, 0, 1],
            "images": [FIRST, SECOND],
            "env_reward": 0.5,
        }

    def test_row_refuses_what_it_cannot_hold(self) -> None:
        from visenv.algos.bridges.trl import to_trl

        segment = _segment(((4, 6),))
        second = replace(segment, turns=(TurnSpan(1, 4, 6, "stop"),))
        with pytest.raises(ConfigurationError, match="has 2"):
            to_trl(_episode(segment, second))
        with pytest.raises(ConfigurationError, match="has 0"):
            to_trl(replace(_episode(segment), segments=()))
        aborted = Episode("e-v0", "s", "", 0, 0, 0, (), "aborted", failure=AWAY)
        with pytest.raises(ConfigurationError, match="judge: away"):
            to_trl(aborted)

    def test_videos_are_refused(self) -> None:
        from visenv.algos.bridges.trl import to_trl

        with pytest.raises(ConfigurationError, match="VideoSpan: 1"):
            to_trl(_filmed())

    @pytest.mark.component("transformers")
    def test_videos_that_were_shown_as_frames_are_exported(self, tiny: Any, pictures: Any) -> None:
        from visenv.algos.bridges.trl import to_trl
        from visenv.algos.bridges.verl import to_verl

        policy = load("policy", "transformers")(tiny, threads=1, video="frames")
        episode = run_here(play(pictures.Films(), policy, EpisodeSpec(0), Sampling(1.0, 4)))
        shown = [frame for turn in episode.turns for frame in turn.messages[0].videos[0].frames]
        assert len(shown) == 4
        row, (output,) = to_trl(episode), to_verl(episode)
        assert row["images"] == shown
        images = output["multi_modal_data"]["images"]
        assert [np.asarray(image).tobytes() for image in images] == [
            frame.pixels.tobytes() for frame in shown
        ]

    def test_frames_that_the_policy_did_not_see_are_not_exported(self) -> None:
        from visenv.algos.bridges.trl import to_trl
        from visenv.algos.bridges.trl.formats import conversation, opening

        plain = _episode(_segment(((4, 6), (8, 9))))
        hidden = (Video((HIDDEN,), (0.0,)),)
        turns = tuple(replace(turn, hidden_frames=hidden) for turn in plain.turns)
        filmed = replace(plain, turns=turns)
        assert filmed.hidden_frames == (HIDDEN, HIDDEN)
        assert to_trl(filmed) == to_trl(plain)
        assert opening(filmed) + conversation(filmed) == opening(plain) + conversation(plain)

    def test_rows_name_seeds_and_more_where_given(self) -> None:
        from visenv.algos.bridges.trl import rows

        plain = rows([3, 4])
        assert plain["seed"][:] == [3, 4]
        assert plain[0]["prompt"] == [{"role": "user", "content": ""}]
        assert {*plain.column_names} == {"prompt", "seed"}
        named = rows(range(2), indices=[7, 8], environment="doc")
        assert named[1]["index"] == 8
        assert named[1]["environment"] == "doc"
