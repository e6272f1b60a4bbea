"""Tests episodes as verl's outputs, and data set rows, against hand-worked values, without verl."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from visenv.algos.bridges.verl import rows, to_verl
from visenv.errors import ConfigurationError
from visenv.types import (
    Episode,
    Failure,
    Image,
    ImageSpan,
    Message,
    PlaceholderRun,
    Segment,
    Turn,
    TurnSpan,
    Video,
    VideoSpan,
)

PAD = 9
PICTURE = Image.from_pixels(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))


def _segment(first_turn: int, **changes: Any) -> Segment:
    """Return ``5 [9] 6 (7 8) 4 (3)``: an image of one placeholder in brackets, and two turns."""
    mask = np.array([0, 0, 0, 1, 1, 0, 1], np.bool_)
    segment = Segment(
        token_ids=np.array([5, PAD, 6, 7, 8, 4, 3], np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, np.float32(-0.5), np.float32(0)),
        policy_version=np.array([0, 0, 0, 11, 11, 0, 12], np.int32),
        turns=(TurnSpan(first_turn, 3, 5, "stop"), TurnSpan(first_turn + 1, 6, 7, "stop")),
        images=(ImageSpan(PICTURE.sha256, (PlaceholderRun(1, 1),), PAD, 4),),
        placeholder_ids=(PAD,),
        temperature=1.0,
        processor="any",
    )
    return replace(segment, **changes)


def _episode(*segments: Segment) -> Episode:
    shown = Message("user", (PICTURE, "text"))
    rewards = [0.25, 0.5] * len(segments)
    turns = tuple(Turn((shown,), "said", reward, (), "stop") for reward in rewards)
    return Episode(
        "e-v0", "s", "", 0, 0, 0, turns, "terminated", segments=segments, terms={"format": 1.0}
    )


def test_context_is_one_output() -> None:
    (fields,) = to_verl(_episode(_segment(0)))
    images = fields.pop("multi_modal_data")["images"]
    assert fields == {
        "prompt_ids": [5, PAD, 6],
        "response_ids": [7, 8, 4, 3],
        "response_mask": [1, 1, 0, 1],
        "response_logprobs": [-0.5, -0.5, 0, -0.5],
        "reward_score": 0.75,
        "num_turns": 4,
        "extra_fields": {
            "turn_scores": [0.25, 0.5],
            "tool_rewards": [],
            "reward_extra_info": {"format": 1.0},
            "min_global_steps": 11,
            "max_global_steps": 12,
        },
    }
    assert np.array_equal(np.asarray(images[0]), PICTURE.pixels)


def test_contexts_are_outputs_with_the_reward_of_the_episode() -> None:
    outputs = to_verl(_episode(_segment(0), _segment(2)))
    assert [fields["reward_score"] for fields in outputs] == [1.5, 1.5]


def test_unknown_log_probabilities_are_none() -> None:
    unknown = np.where(_segment(0).loss_mask, np.float32("nan"), np.float32(0))
    (fields,) = to_verl(_episode(_segment(0, logprobs=unknown)))
    assert fields["response_logprobs"] is None


def test_term_that_does_not_apply_is_not_a_number() -> None:
    episode = replace(_episode(_segment(0)), terms={"format": 1.0, "judge": None})
    (fields,) = to_verl(episode)
    info = fields["extra_fields"]["reward_extra_info"]
    assert info["format"] == 1.0
    assert math.isnan(info["judge"])


def test_frames_that_the_policy_did_not_see_are_not_exported() -> None:
    plain = _episode(_segment(0))
    hidden = Image.from_pixels(np.zeros((4, 4, 3), np.uint8))
    turns = tuple(replace(turn, hidden_frames=(Video((hidden,), (0.0,)),)) for turn in plain.turns)
    (fields,), (expected,) = to_verl(replace(plain, turns=turns)), to_verl(plain)
    images = [np.asarray(image) for image in fields.pop("multi_modal_data")["images"]]
    del expected["multi_modal_data"]
    assert fields == expected
    assert len(images) == 1
    assert np.array_equal(images[0], PICTURE.pixels)


def test_segment_with_a_video_is_refused() -> None:
    video = Video((PICTURE,), (0.0,))
    span = VideoSpan(1, 1, video.sha256, (1, 2, 2), PAD, 1.0)
    segment = _segment(0, images=(), videos=(span,))
    shown = Message("user", (video,))
    turns = tuple(Turn((shown,), "said", 0.5, (), "stop") for _ in segment.turns)
    episode = Episode("e-v0", "s", "", 0, 0, 0, turns, "terminated", segments=(segment,))
    with pytest.raises(ConfigurationError, match="VideoSpan: 1"):
        to_verl(episode)


def test_aborted_episode_is_left_out() -> None:
    away = Failure("service", "judge", "away")
    assert to_verl(Episode("e-v0", "s", "", 0, 0, 0, (), "aborted", failure=away)) == []


def test_rows_name_what_a_group_plays() -> None:
    first, second = rows([7, 8], indices=[3, 4], agent="doc")
    assert first["extra_info"] == {"index": 0, "seed": 7, "row": 3}
    assert second["extra_info"] == {"index": 1, "seed": 8, "row": 4}
    assert (first["agent_name"], first["data_source"]) == ("doc", "doc")
    assert [message["role"] for message in first["prompt"]] == ["user"]
    assert rows([7])[0]["extra_info"] == {"index": 0, "seed": 7}
