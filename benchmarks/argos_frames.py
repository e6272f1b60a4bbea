"""Measures how well the true state of one or two fixed frames of a video predicts the answer.

For each kind, gradient-boosted trees learn from the state of frames (places, colors and visibility
of the things in question, and of all others) on one set of videos. The best frames are chosen on
that set, and the accuracy is measured on another one. `python benchmarks/argos_frames.py`
"""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from visenv.envs.argos.world.plots import PLOTS, Plot
from visenv.envs.argos.world.presets import VIDEOS, WorldPreset
from visenv.envs.argos.world.videos import scene_of

_PLACES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Frames by their place in the video; the attacker chooses among them."""

_LATER = (0, 1, 2)
"""Frames after such a frame, for pairs of frames that are close."""

Frame = tuple[float, int]


def _choices(number: int) -> list[tuple[Frame, ...]]:
    """Return the sets of one or two frames among which the attacker chooses."""
    frames = [(place, 0) for place in _PLACES]
    close = [((place, 0), (place, later)) for place in _PLACES[:-1] for later in _LATER[1:]]
    return [*combinations(frames, number), *(close if number == 2 else [])]


def _state(plot: Plot, frame: int, preset: WorldPreset) -> list[float]:
    """Return the state of the asked things in the order of the options, then of up to 5 others."""
    things = scene_of(plot, frame)
    colors, shapes = list(preset.colors), list(preset.shapes)
    named = [*plot.options, plot.asked.subject, plot.asked.given]
    said: list[float] = []
    for name in named[:4]:
        found = next((each for each in things if name and (name in (each.name, each.shape))), None)
        said += _features(found, colors, preset)
        said.append(float(colors.index(name)) if name in colors else -1.0)
    for number in range(5):
        rest = [each for each in things if each.shape in shapes]
        rest.sort(key=lambda each: shapes.index(each.shape))
        said += _features(rest[number] if number < len(rest) else None, colors, preset)
    inside = [each for each in things if 0 <= each.x < preset.width]
    return [*said, float(len(inside)), float(len(things))]


def _features(thing: Any, colors: list[str], preset: WorldPreset) -> list[float]:
    if thing is None:
        return [-999.0] * 4
    color = float(colors.index(thing.color)) if thing.color in colors else -1.0
    inside = thing.half_width * -1 < thing.x < preset.width + thing.half_width
    return [float(thing.x) if inside else -999.0, float(thing.y), color, float(inside)]


def _target(plot: Plot) -> int:
    return plot.options.index(plot.answer)


def _videos(kind: str, preset: WorldPreset, number: int, seed: int) -> list[tuple[Plot, int]]:
    rng = np.random.default_rng(seed)
    frames = rng.integers(preset.frames[0], preset.frames[1] + 1, number)
    return [(PLOTS[kind](rng, preset, int(each)), int(each)) for each in frames]


def _table(videos: list[tuple[Plot, int]], preset: WorldPreset) -> dict[Frame, np.ndarray]:
    return {
        (place, later): np.array(
            [
                [*_state(plot, min(round(place * (n - 1)) + later, n - 1), preset), n]
                for plot, n in videos
            ]
        )
        for place in _PLACES
        for later in _LATER
    }


def _fit(x: np.ndarray, y: np.ndarray) -> Any:
    model = HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=15, random_state=0)
    return model.fit(x, y)


def main() -> None:
    """Print the accuracy of both attackers for each kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="default")
    parser.add_argument("--kinds", nargs="*", default=list(PLOTS))
    given = parser.parse_args()
    preset = VIDEOS[given.preset]
    print(f"{'kind':10} chance  one frame (place)      two frames (places)")
    for kind in given.kinds:
        known, new = _videos(kind, preset, 2000, 1), _videos(kind, preset, 600, 2)
        y = np.array([_target(plot) for plot, _ in known])
        target = np.array([_target(plot) for plot, _ in new])
        table, tested = _table(known, preset), _table(new, preset)
        chance = 1 / len(known[0][0].options)
        found: list[str] = []
        for number in (1, 2):
            scores: dict[tuple[Frame, ...], float] = {}
            for places in _choices(number):
                x = np.hstack([table[place] for place in places])
                scores[places] = float(
                    (_fit(x[:1400], y[:1400]).predict(x[1400:]) == y[1400:]).mean()
                )
            best = max(scores, key=lambda places: scores[places])
            model = _fit(np.hstack([table[place] for place in best]), y)
            right = model.predict(np.hstack([tested[place] for place in best])) == target
            found.append(f"{float(right.mean()):.3f} {best}")
        print(f"{kind:10} {chance:.3f}   {found[0]:22} {found[1]}", flush=True)


if __name__ == "__main__":
    main()
