"""Tests that policies that see the question without the image are near chance."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from tests.environments import few
from visenv.envs.mags.presets import PRESETS
from visenv.envs.mags.world import SCENES
from visenv.envs.mags.world.presets import DETAILS
from visenv.envs.mags.world.questions import SceneDraft, make_scene
from visenv.worlds.scenes.signs import FRAMES, SHAPES

Blind = Callable[[SceneDraft], str]
"""A function that answers a question by its text, its kind and its detail."""

LEAST_SEEN = 20
"""Smallest number of training questions of a form; with fewer, a more general form is used."""

_KINDS = ("colour", "text", "object", "number")
_VALUES = [value for kind in _KINDS for value in DETAILS[kind].options]
_NAMES = re.compile(r"\b(" + "|".join([*_VALUES, *FRAMES, *SHAPES]) + r")\b")


@cache
def scenes_of(preset: str, seeds: range) -> list[SceneDraft]:
    scenes = SCENES[PRESETS[preset].scenes]
    return [make_scene(np.random.default_rng(seed), scenes) for seed in seeds]


def forms(scene: SceneDraft) -> list[tuple[str, ...]]:
    """Return the question, its template and its kind, each with the kind and the detail."""
    kind = (scene.kind, scene.detail)
    return [(*kind, scene.question), (*kind, _NAMES.sub("_", scene.question)), kind]


def majority(train: Sequence[SceneDraft]) -> Blind:
    """Return the most frequent answer of a question, of its template, or of its kind."""
    seen: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for scene in train:
        for form in forms(scene):
            seen[form][scene.answer] += 1

    def answer(scene: SceneDraft) -> str:
        known = next(seen[form] for form in forms(scene) if seen[form].total() >= LEAST_SEEN)
        return known.most_common(1)[0][0]

    return answer


def bag_of_words(train: Sequence[SceneDraft]) -> Blind:
    """Return a logistic regression on words and pairs of words, one for each kind and detail."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    models = {}
    for kind in {(scene.kind, scene.detail) for scene in train}:
        own = [scene for scene in train if (scene.kind, scene.detail) == kind]
        counts = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+")
        model = make_pipeline(counts, LogisticRegression(C=0.1))
        models[kind] = model.fit([each.question for each in own], [each.answer for each in own])
    return lambda scene: str(models[scene.kind, scene.detail].predict([scene.question])[0])


def margins(blind: Blind, test: Sequence[SceneDraft]) -> dict[str, float]:
    """Return the accuracy minus chance, for each kind of question."""
    gains: dict[str, list[float]] = defaultdict(list)
    for scene in test:
        gains[scene.kind].append((blind(scene) == scene.answer) - 1 / len(scene.options))
    return {kind: float(np.mean(each)) for kind, each in gains.items()}


def answered_by_the_question(scenes: Sequence[SceneDraft]) -> list[SceneDraft]:
    """Return scenes in which a third of the questions contains the answer."""
    return [
        scene._replace(question=f"{scene.question} {scene.answer}") if place % 3 == 0 else scene
        for place, scene in enumerate(scenes)
    ]


LEARNERS = [majority, pytest.param(bag_of_words, marks=pytest.mark.component("scikit-learn"))]


@pytest.mark.slow
@pytest.mark.parametrize("learn", LEARNERS)
@pytest.mark.parametrize("preset", few(list(PRESETS), 1))
def test_policy_that_sees_no_image_is_near_chance(
    preset: str, learn: Callable[[Sequence[SceneDraft]], Blind]
) -> None:
    blind = learn(scenes_of(preset, range(4000)))
    found = margins(blind, scenes_of(preset, range(4000, 7000)))
    assert {*found} == {*SCENES[PRESETS[preset].scenes].kinds}
    assert max(found.values()) < 0.05, found


@pytest.mark.slow
@pytest.mark.parametrize("learn", LEARNERS)
def test_policy_that_sees_no_image_finds_answers_that_the_question_gives_away(
    learn: Callable[[Sequence[SceneDraft]], Blind],
) -> None:
    """Check that the test above can fail, because the learners use cues in the question."""
    train = answered_by_the_question(scenes_of("tiny", range(2000)))
    test = answered_by_the_question(scenes_of("tiny", range(2000, 2600)))
    found = margins(learn(train), test)
    assert min(found["counting"], found["relation"]) > 0.1, found
