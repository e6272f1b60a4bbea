"""Tests that the plots of videos need more than one or two frames, and that their events are exact.

`benchmarks/argos_frames.py` measures this with learned attackers on the full state of frames. Here,
the state of a frame is reduced to the fact that the question is about.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.environments import few
from visenv.envs.argos.world.plots import PLOTS, Plot
from visenv.envs.argos.world.presets import VIDEO_KINDS, VIDEOS
from visenv.envs.argos.world.things import FrameSize, boxes
from visenv.envs.argos.world.videos import scene_of

PRESET = replace(VIDEOS["default"], distractors=(0, 0))  # others are drawn independently
FRAMES = PRESET.frames[0]  # short videos have the fewest times at which something can happen


@lru_cache
def plots(kind: str, number: int) -> list[Plot]:
    rng = np.random.default_rng(0)
    return [PLOTS[kind](rng, PRESET, FRAMES) for _ in range(number)]


def accuracy(states: Iterable[Hashable], answers: list[str]) -> float:
    """Return the accuracy of the best rule of a state, learned on one half, on the other half."""
    counts: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    pairs = list(zip(states, answers, strict=True))
    half = len(pairs) // 2
    for state, answer in pairs[:half]:
        counts[state][answer] += 1
    right = [
        bool(counts[state]) and counts[state].most_common(1)[0][0] == answer
        for state, answer in pairs[half:]
    ]
    return sum(right) / len(right)


def insides(plot: Plot) -> list[tuple[bool, ...]]:
    """Return for each frame which of the two things in question are inside."""
    actors = {actor.thing.name: actor for actor in plot.actors}
    there = []
    for name in plot.options:
        across, radius = actors[name].path[:, 0], actors[name].thing.half_width
        there.append((across >= -radius) & (across < PRESET.width + radius))
    return list(zip(*np.array(there).tolist(), strict=True))


def colors(plot: Plot) -> list[str]:
    return list(plot.actors[-1].colors)


def sides(plot: Plot) -> list[Hashable]:
    """Return for each frame on which side the thing is, 0 in front of the wall."""
    actor = plot.actors[-1]
    signs = np.sign(actor.path[:, 0] - PRESET.width // 2).tolist()
    return ["hidden" if frame in actor.behind else sign for frame, sign in enumerate(signs)]


@pytest.mark.parametrize(
    ("kind", "states", "frames", "most"),
    few(
        [
            ("order", insides, 1, 0.55),
            ("duration", colors, 1, 0.3),
            ("hidden", sides, 1, 0.55),
            ("order", insides, 2, 0.6),
            ("duration", colors, 2, 0.35),
        ],
        3,
    ),
)
def test_fact_in_question_needs_more_frames(
    kind: str, states: Callable[[Plot], Sequence[Hashable]], frames: int, most: float
) -> None:
    made = plots(kind, 2_000)
    answers = [
        str(plot.options.index(plot.answer)) if kind == "order" else plot.answer for plot in made
    ]
    table = list(zip(*map(states, made), strict=True))
    found: dict[tuple[int, ...], float] = {}
    for chosen in combinations(range(FRAMES), frames):
        seen: list[Any] = list(zip(*(table[frame] for frame in chosen), strict=True))
        if (kind, frames) == ("duration", 2):  # more can't be said of two colors
            seen = [
                one == two for one, two in zip(*(table[frame] for frame in chosen), strict=True)
            ]
        found[chosen] = accuracy(seen, answers)
    best = max(found, key=lambda chosen: found[chosen])
    # The largest of many accuracies on 1,000 videos has an error of about .03.
    assert found[best] <= most + 0.03, (best, found[best])


def test_exchange_of_the_two_things_of_a_meeting_is_as_likely() -> None:
    """Check the symmetry of the joint distribution of both places in single frames."""
    made = plots("meeting", 2_000)
    for frame in (0, FRAMES // 3, FRAMES // 2, FRAMES - 1):
        places = Counter[tuple[int, int]]()
        for plot in made:
            across = {
                actor.thing.name: int(actor.path[frame, 0] * 3 / PRESET.width)
                for actor in plot.actors
            }
            (other,) = set(plot.options) - {plot.answer}
            places[across[plot.answer], across[other]] += 1
        for one, two in combinations(range(3), 2):
            seen, exchanged = places[one, two], places[two, one]
            # Four standard deviations of the difference; the seed is fixed.
            assert abs(seen - exchanged) <= 4 * (seen + exchanged) ** 0.5, (frame, one, two)


def test_meeting_has_a_thing_that_stands_still_and_one_that_comes_and_goes() -> None:
    for plot in plots("meeting", 200):
        (event,) = plot.events
        paths = {actor.thing.name: actor.path for actor in plot.actors}
        mover, still = event.names
        assert still == plot.answer
        near = slice(event.first - 1, event.last + 2)
        assert np.ptp(paths[still][near], axis=0).max() == 0
        steps = np.abs(np.diff(paths[mover][near, 0]))
        assert steps[0] > 0
        assert steps[-1] > 0
        assert (steps == 0).sum() == 1  # it stops for two frames


@pytest.mark.parametrize("kind", VIDEO_KINDS)
def test_events_are_what_the_frames_show(kind: str) -> None:
    size = FrameSize(PRESET.width, PRESET.height)
    for plot in plots(kind, 30):
        shown = []
        for frame in range(FRAMES):
            things = scene_of(plot, frame)
            shown.append({things[number].name for number in boxes(things, size)})
        inside = [set(np.flatnonzero(there)) for there in insides(plot)] if kind == "order" else []
        for event in plot.events:
            assert 0 <= event.first <= event.last < FRAMES
            name = event.names[0]
            if event.kind == "turns":
                shape = name.split()[1]
                assert name in shown[event.first]
                assert f"{event.color} {shape}" in shown[event.last]
            elif event.kind == "hides":
                assert name in shown[event.first]
                assert name not in shown[event.last]
            elif event.kind in ("enters", "leaves"):
                number = plot.options.index(name)
                before, after = event.first - 1, event.last + 1
                outside = before if event.kind == "enters" else after
                assert outside == FRAMES or number not in inside[outside]
                assert {number} <= inside[event.first] & inside[event.last]
