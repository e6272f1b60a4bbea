"""Tests that segments and episodes refuse every kind of contradictory fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from visenv.errors import EpisodeError
from visenv.types import (
    Aborted,
    Episode,
    Failure,
    Image,
    ImageSpan,
    Message,
    PlaceholderRun,
    Segment,
    Turn,
    TurnSpan,
    TurnTaken,
    VideoSpan,
)

PAD = 9
AWAY = Failure("service", "judge", "away")
IMAGE = Image.from_pixels(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))
OTHER = Image.from_pixels(np.zeros((4, 4, 3), np.uint8))

# A prompt of one token, an image of 2 placeholders and 8 patches, a turn of two tokens,
# one token of the environment, and a turn of one token.
SEGMENT = Segment(
    token_ids=np.array([1, PAD, PAD, 2, 3, 4, 5], np.int32),
    loss_mask=np.array([0, 0, 0, 1, 1, 0, 1], np.bool_),
    logprobs=np.array([0, 0, 0, -0.5, -1.5, 0, -2.0], np.float32),
    policy_version=np.array([0, 0, 0, 1, 1, 0, 2], np.int32),
    turns=(TurnSpan(0, 3, 5, "stop"), TurnSpan(1, 6, 7, "length")),
    images=(ImageSpan(IMAGE.sha256, (PlaceholderRun(1, 2),), PAD, 8),),
    placeholder_ids=(PAD,),
    temperature=1.0,
    processor="test",
)

EPISODE = Episode(
    env_id="test-v0",
    sample_id="one",
    kind="",
    seed=1,
    group=0,
    member=0,
    turns=(
        Turn((Message("user", (IMAGE, "?")),), "zoom", 0.25, (TurnTaken(0, "zoom", None),), "stop"),
        Turn((Message("user", ("so?",)),), "red", 0.5, (TurnTaken(1, "red", None),), "length"),
    ),
    status="terminated",
    segments=(SEGMENT,),
)


def test_sampled_tokens_are_counted_in_all_segments() -> None:
    assert EPISODE.num_sampled_tokens == 3
    assert replace(EPISODE, segments=()).num_sampled_tokens == 0
    turns = (*EPISODE.turns, *EPISODE.turns)
    later = replace(SEGMENT, turns=(TurnSpan(2, 3, 5, "stop"), TurnSpan(3, 6, 7, "length")))
    assert replace(EPISODE, turns=turns, segments=(SEGMENT, later)).num_sampled_tokens == 6


def _runs(*runs: tuple[int, int]) -> dict[str, Any]:
    """Return the change that gives the image these runs of placeholders."""
    placed = tuple(PlaceholderRun(*run) for run in runs)
    return {"images": (SEGMENT.images[0]._replace(runs=placed),)}


def _with(name: str, place: int, value: Any) -> dict[str, Any]:
    """Return one field of `SEGMENT` with one entry changed."""
    array = getattr(SEGMENT, name).copy()
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        # arrays
        ({"loss_mask": SEGMENT.loss_mask[:-1]}, r"loss_mask must be bool \[7\], got bool \[6\]"),
        ({"logprobs": SEGMENT.logprobs[:-1]}, r"logprobs must be float32 \[7\]"),
        ({"policy_version": SEGMENT.policy_version[:-1]}, r"policy_version must be int32 \[7\]"),
        ({"token_ids": SEGMENT.token_ids.astype(np.int64)}, r"token_ids must be int32.*int64"),
        ({"logprobs": SEGMENT.logprobs.astype(np.float64)}, r"logprobs must be float32.*float64"),
        ({"loss_mask": SEGMENT.loss_mask.astype(np.int32)}, r"loss_mask must be bool.*int32"),
        ({"policy_version": SEGMENT.policy_version.astype(float)}, r"policy_version must be int32"),
        ({"token_ids": SEGMENT.token_ids[None]}, r"token_ids must be int32"),
        # log-probabilities
        (_with("logprobs", 0, -0.1), "logprobs must be 0 where no token was sampled"),
        (_with("logprobs", 5, np.nan), "logprobs must be 0 where no token was sampled"),
        (_with("logprobs", 3, 0.01), "a log-probability exceeds 0"),
        # images
        (
            _with("token_ids", 4, PAD),
            r"the policy sampled the placeholders \[9\] of images or videos",
        ),
        (_with("token_ids", 0, PAD), "3 placeholders in the tokens, 2 in the spans"),
        ({"images": ()}, "2 placeholders in the tokens, 0 in the spans"),
        (
            _runs((6, 2)),
            "the segment ends inside the media span at 6",
        ),
        (
            {"images": (SEGMENT.images[0]._replace(patches=0),)},
            f"the image {IMAGE.sha256} has 0 patches",
        ),
        (
            {"images": (SEGMENT.images[0]._replace(runs=()),)},
            f"the image {IMAGE.sha256} has no placeholders",
        ),
        (_runs((1, 2), (2, 1)), "media spans overlap or are out of order at 2"),
        (_runs((2, 1), (1, 1)), "media spans overlap or are out of order at 1"),
        (_runs((1, 2), (3, 0)), "media spans overlap or are out of order at 3"),
        (_runs((-1, 2)), "media spans overlap or are out of order at -1"),
        (_runs((1, 2), (3, 1)), "the span at 3 has tokens other than its placeholder"),
        ({"images": SEGMENT.images * 2}, "media spans overlap or are out of order at 1"),
        (
            _runs((1, 1)),
            "2 placeholders in the tokens, 1 in the spans",
        ),
        (
            {"images": (), "videos": (VideoSpan(1, 2, "", (1, 1, 3), PAD, 1.0),)},
            "the span at 1 has 2 placeholders for 3 patches",
        ),
        # turns
        ({"turns": SEGMENT.turns[:1]}, "the turn spans and loss_mask disagree"),
        (_with("loss_mask", 4, False) | _with("logprobs", 4, 0.0), "loss_mask disagree"),
        ({"turns": SEGMENT.turns[::-1]}, r"turn 0: 3\.\.5 of 7 tokens, after 7"),
        ({"turns": (TurnSpan(0, 3, 8, "stop"),)}, r"turn 0: 3\.\.8 of 7 tokens"),
        ({"turns": (TurnSpan(0, 5, 3, "stop"),)}, r"turn 0: 5\.\.3 of 7 tokens"),
        (
            {"turns": (TurnSpan(0, 3, 5, "stop"), TurnSpan(1, 4, 7, "stop"))},
            r"turn 1: 4\.\.7 of 7 tokens, after 5",
        ),
    ],
)
def test_segment_that_contradicts_itself_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(EpisodeError, match=said):
        replace(SEGMENT, **changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reason": "turns"}, "a terminated episode with the reason 'turns'"),
        ({"status": "truncated"}, "a truncated episode with the reason ''"),
        ({"status": "aborted"}, "a aborted episode with the failure None"),
        ({"failure": AWAY}, "a terminated episode with the failure judge: away"),
        (
            {"status": "aborted", "reason": "turns", "failure": AWAY},
            "a aborted episode with the reason 'turns'",
        ),
        ({"status": "aborted", "failure": AWAY}, r"an aborted episode with the reward 0\.75"),
        ({"segments": (SEGMENT, SEGMENT)}, r"2 turns, but the segments hold turns \[0, 1, 0, 1\]"),
        ({"turns": EPISODE.turns[:1]}, r"1 turns, but the segments hold turns \[0, 1\]"),
        (
            {"turns": (replace(EPISODE.turns[0], messages=()), EPISODE.turns[1])},
            "a segment names an image that no message holds",
        ),
        (
            {
                "turns": (
                    replace(EPISODE.turns[0], messages=(Message("user", (OTHER,)),)),
                    EPISODE.turns[1],
                )
            },
            "a segment names an image that no message holds",
        ),
    ],
)
def test_episode_that_contradicts_itself_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(EpisodeError, match=said):
        replace(EPISODE, **changes)


def test_image_has_several_runs_with_other_tokens_in_between() -> None:
    """Check the segment with a token between the two placeholders of its image."""
    segment = replace(
        SEGMENT,
        token_ids=np.array([PAD, 1, PAD, 2, 3, 4, 5], np.int32),
        **_runs((0, 1), (2, 1)),
    )
    (span,) = segment.images
    assert (span.offset, span.length) == (0, 2)
    assert segment.spans == segment.images


def test_segments_without_log_probabilities_are_allowed() -> None:
    replace(SEGMENT, **_with("logprobs", 3, np.nan))  # no log-probability for a sampled token
    replace(SEGMENT, **_with("logprobs", 3, 5e-5))  # rounding of a token with probability 1
    replace(EPISODE, segments=())  # a policy without tokens


def test_aborted_episode_earns_nothing_and_gives_the_reason() -> None:
    turns = tuple(replace(turn, reward=0.0) for turn in EPISODE.turns)
    episode = replace(EPISODE, turns=turns, status="aborted", failure=AWAY)
    assert episode.reward == 0.0


def test_sums_and_lists_go_over_all_turns() -> None:
    episode = replace(EPISODE, closing=(Message("user", (OTHER,)),))
    assert episode.reward == 0.75
    assert episode.images == (IMAGE, OTHER)
    assert [event.turn for event in episode.events] == [0, 1]


@pytest.mark.parametrize("name", ["token_ids", "logprobs", "policy_version"])
def test_segments_are_equal_when_every_array_is(name: str) -> None:
    twin = replace(SEGMENT, **{name: getattr(SEGMENT, name).copy()})
    assert twin == SEGMENT
    value = {"token_ids": 7, "logprobs": -0.25, "policy_version": 5}[name]
    assert replace(SEGMENT, **_with(name, 3, value)) != SEGMENT


def test_equal_segments_may_lack_the_same_log_probabilities() -> None:
    assert replace(SEGMENT, **_with("logprobs", 3, np.nan)) == replace(
        SEGMENT, **_with("logprobs", 3, np.nan)
    )


def test_aborted_event_is_an_event_like_any_other() -> None:
    event = Aborted(1, "judge", "away")
    turns = (EPISODE.turns[0], replace(EPISODE.turns[1], events=(event,)))
    assert replace(EPISODE, turns=turns).events[-1] == event
