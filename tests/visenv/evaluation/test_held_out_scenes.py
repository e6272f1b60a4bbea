"""Tests that no scene of a procedural world is both held out and used in training.

Scenes are drawn, but not rendered: the functions that paint them note what they would paint.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.environments import few
from tests.visenv.evaluation.draws import SEEDS, drawn, held_out_seeds, training_seeds
from visenv.envs.arft.coding.world import flags, questions, sources
from visenv.envs.argos.world import images, videos
from visenv.envs.mags.world import world as mags
from visenv.worlds.draws import drawn_scene, is_held_out_scene
from visenv.worlds.recent import RecentSamples
from visenv.worlds.scenes import world as scenes

BLANK = np.zeros((8, 8, 3), np.uint8)

TINY: dict[str, Any] = {"preset": "tiny"}
WORLDS: list[tuple[str, dict[str, Any]]] = [
    ("visenv/ZoomVQA-v0", TINY),
    ("visenv/ArmVQA-v0", TINY),
    ("visenv/ArmZoom-v0", TINY),
    ("visenv/ArmPreference-v0", TINY),
    ("visenv/ArftCoding-v0", TINY),
    ("visenv/ArgosImage-v0", TINY),
    ("visenv/MagsZoom-v0", TINY),
    ("visenv/ZoomVQA-v0", {}),
    ("visenv/ArmVQA-v0", {}),
    ("visenv/ArmZoom-v0", {}),
    ("visenv/ArmPreference-v0", {}),
    ("visenv/ArftCoding-v0", {}),
    ("visenv/ArgosImage-v0", {}),
    ("visenv/ArgosVideo-v0", {}),
    ("visenv/ArgosVideo-v0", TINY),
    ("visenv/MagsZoom-v0", {}),
    ("visenv/ArmIF-v0", {}),
    ("visenv/ArmIF-v0", TINY),
]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which each drawn scene is appended in place of its picture."""
    seen: list[object] = []

    def note(scene: object) -> Any:
        seen.append(scene)
        return BLANK

    def signs(_: object, rng: object, kind: object, marked: Any) -> Any:
        return note(sorted((sign.frame, sign.shape, *sign.box) for sign, _ in marked))

    def things(listed: Any, *_: object) -> Any:
        return note(sorted(map(repr, listed)))

    def entries(_: object, listed: Any, *__: object) -> Any:
        drawn = listed.layout, listed.names, listed.columns, listed.values
        return note(repr(drawn)), (0, 0, 8, 8)

    monkeypatch.setattr(scenes.ScenesWorld, "_paint", signs)
    monkeypatch.setattr(images, "paint", things)
    monkeypatch.setattr(videos, "paint", things)
    monkeypatch.setattr(mags, "paint", lambda _, __, scene: note(sorted(map(repr, scene.signs))))
    monkeypatch.setattr(mags, "native_image", lambda _, __, pixels: pixels)
    monkeypatch.setattr(flags, "_painted", lambda _, __, place: note(place))
    monkeypatch.setattr(questions, "draw_picture", entries)
    monkeypatch.setattr(sources, "telling_distortions", lambda *_: [])
    for module in (images, videos, mags, scenes, sources):  # the cache would keep blank pictures
        monkeypatch.setattr(module, "RECENT", RecentSamples())
    return seen


@pytest.mark.parametrize(("env_id", "options"), few(WORLDS, 1))
def test_no_scene_is_held_out_and_used_in_training(
    env_id: str, options: dict[str, Any], noted: list[object]
) -> None:
    env = gym.make(env_id, **options)

    def scene(seed: int) -> str:
        noted.clear()
        sample = drawn(env, seed)
        if noted:
            return repr(noted)
        assert not sample.images or "ArmIF" in env_id  # each painted picture is noted
        return repr((sample.question, sample.answers, sample.ground_truth))

    training = {scene(seed) for seed in training_seeds(SEEDS)}
    held_out = {scene(seed) for seed in held_out_seeds(env, SEEDS)}
    env.close()
    assert len(training) > 500
    assert len(held_out) > 100
    assert not training & held_out


@pytest.mark.parametrize("env_id", few(["visenv/ZoomVQA-v0", "visenv/ArgosImage-v0"], 1))
def test_answers_are_as_frequent_in_held_out_scenes(env_id: str, noted: list[object]) -> None:
    env = gym.make(env_id, preset="tiny")
    found = {
        name: Counter(drawn(env, seed).answers[0] for seed in seeds)
        for name, seeds in (
            ("training", training_seeds(2_000)),
            ("held out", held_out_seeds(env, 2_000)),
        )
    }
    env.close()
    assert found["training"].keys() == found["held out"].keys()
    for answer, count in found["training"].items():
        # Six standard deviations of the difference of two counts; the seeds are fixed.
        assert abs(count - found["held out"][answer]) < 6 * (2 * count) ** 0.5 + 6


def test_division_holds_out_an_eighth_of_scenes() -> None:
    count = sum(is_held_out_scene((place, "red")) for place in range(8_000))
    assert abs(count - 1_000) < 150


@pytest.mark.parametrize("held_out", [False, True])
def test_scene_is_drawn_until_it_is_on_its_side_with_the_same_answer(held_out: bool) -> None:
    rng = np.random.default_rng(3)

    def draw() -> tuple[int, int]:
        return int(rng.integers(4)), int(rng.integers(1_000))

    answers = Counter[int]()
    for _ in range(400):
        state = rng.bit_generator.state
        first = draw()
        rng.bit_generator.state = state
        scene = drawn_scene(draw, held_out, key=lambda each: each, answer=lambda each: each[0])
        assert is_held_out_scene(scene) is held_out
        assert scene[0] == first[0]
        if is_held_out_scene(first) is held_out:
            assert scene == first  # most scenes of training are those of earlier versions
        answers[scene[0]] += 1
    assert min(answers.values()) > 60


def test_preset_with_one_scene_plays_it_in_both() -> None:
    for held_out in (False, True):
        assert drawn_scene(lambda: "only", held_out, key=lambda scene: scene) == "only"
