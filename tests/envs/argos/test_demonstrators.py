"""Tests the teachers of Argos that play demonstrations: points, spans and answers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from visenv.envs.argos.demonstrators import LongSpans, PointsBeside
from visenv.envs.argos.env.base import ArgosEnv
from visenv.envs.argos.ground_truth import GroundedTruth, MediaTruth
from visenv.envs.argos.world.asked import Asked
from visenv.envs.argos.world.events import WorldEvent
from visenv.envs.argos.world.things import Thing
from visenv.errors import ConfigurationError
from visenv.types import Image, Sample

CUBE = Thing("red", "plain", "cube", "large", 40, 40, 10, 10)
"""A square that covers the pixels 30 to 50 of each axis; its middle is at 40.5."""

ENTERS = WorldEvent(kind="enters", names=("red cube",), first=3, last=5)


def begun(frames: int = 1, grounded: bool = True) -> ArgosEnv:
    """Return an image of 96 px with the cube, or a video of the cube."""
    images = (Image.from_pixels(np.zeros((96, 96, 3), np.uint8)),) * frames
    video = frames > 1
    times = tuple(0.25 * frame for frame in range(frames)) if video else ()
    truth: MediaTruth = MediaTruth(options=("red", "blue"), times=times)
    if grounded:
        truth = GroundedTruth(
            options=("red", "blue"),
            times=times,
            width=96,
            height=96,
            frames=((CUBE,),) * frames,
            targets=("cube",),
            events=(ENTERS,) if video else (),
            key_events=int(video),
            asked=Asked(relation="color", subject="cube", conclusion="the cube is red"),
        )
    sample = Sample("s", "What color is the cube?", images, ("red",), "color", truth)
    name = "ArgosVideo" if video else "ArgosImage"
    env = gym.make(f"visenv/{name}-v0", data=[sample], preset="tiny", reward="outcome").unwrapped
    assert isinstance(env, ArgosEnv)
    env.reset(seed=0)
    return env


def turn(teacher: PointsBeside, env: ArgosEnv) -> Any:
    return teacher.turn(env, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("error", "point", "hits"),
    [
        ((0.0, 0.0), (40, 40), True),
        ((0.4, -0.4), (50, 30), True),  # (48.9, 32.1); multiples of 10 are on the cube
        ((0.5, 0.0), (51, 40), False),  # (51.0, 40.5); 50 is on the cube, 51 is not
        ((1.0, 0.0), (60, 40), False),  # (61.5, 40.5)
        ((9.0, 0.0), (95, 40), False),  # in the image, whose last pixel is 95
    ],
)
def test_point_is_moved_in_sides_of_the_object(
    error: tuple[float, float], point: tuple[int, int], hits: bool
) -> None:
    tag = f'<point x="{point[0]}" y="{point[1]}" alt="red cube">red cube</point>'
    assert begun().point(0, 0, error) == (tag, hits)


@pytest.mark.parametrize(
    ("offset", "said", "answer"),
    [(0.4, "The cube is red.", "red"), (1.0, "I see nothing there.", "unknown")],
)
def test_teacher_answers_if_its_point_is_on_the_object(
    offset: float, said: str, answer: str
) -> None:
    made = turn(PointsBeside(offset=(offset, 0.0), noise=0.0), begun())
    assert made.answer == answer
    assert made.thought.endswith(f" {said}")


@pytest.mark.parametrize(
    ("strength", "first", "last"), [(0.0, 4, 6), (1.0, 2, 8), (2.0, 1, 10), (9.0, 1, 12)]
)
def test_spans_are_too_long_at_both_ends(strength: float, first: int, last: int) -> None:
    made = turn(LongSpans(strength, (0.0, 0.0), 0.0), begun(frames=12))
    assert f"From frame {first} to frame {last}, the red cube enters." in made.thought
    assert "</point> in frame 4." in made.thought
    assert made.answer == "red"


@pytest.mark.parametrize("frames", [1, 12])
def test_teacher_of_a_row_without_objects_answers(frames: int) -> None:
    env = begun(frames, grounded=False)
    assert turn(LongSpans(strength=9.0), env) == env.oracle_turn()


def test_number_of_frames_is_not_negative() -> None:
    with pytest.raises(ConfigurationError, match="frames must be 0 or more"):
        LongSpans(frames=-1)
