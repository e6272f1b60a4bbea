"""Measures the accuracy of a learned text-only model in the ARM worlds, which should be at chance.

    python benchmarks/arm_text_only.py [training samples] [test samples]

The model sees only the instruction and the responses, and no image or document. It is a logistic
regression over the words and pairs of words of each response, the words that other responses share,
and the rank of the response in length, numbers and agreement. It is trained on samples of the same
world. For plain questions (ArmVQA, ArmDocVQA), the model chooses among all answers of the training
samples by the words and pairs of words of the question; chance is then the accuracy of the most
frequent answer for the kind of the question.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from unittest.mock import patch

import gymnasium as gym
import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import SGDClassifier

import visenv  # noqa: F401 - registers the environments
from visenv.data.source import ProceduralSource
from visenv.env import VisEnv
from visenv.envs.arm.ground_truth import JudgingTruth
from visenv.envs.arm.world.graded_pairs import GradedPairs
from visenv.envs.arm.world.judged_scenes import JudgedScenes
from visenv.envs.arm.world.reports import ReportsWorld
from visenv.types import Sample
from visenv.worlds.scenes import KINDS, ScenesWorld
from visenv.worlds.scenes.signs import FRAMES, SHAPES

CANDIDATES = (1, 2, 4)
VALUES = {option.lower() for kind in KINDS.values() for option in kind.options} | {*FRAMES, *SHAPES}


class World(NamedTuple):
    """Describes a procedural world, with its names in the table."""

    env: str
    preset: str
    candidates: int
    source: ProceduralSource

    @property
    def chance(self) -> float:
        """Return the accuracy of a random guess."""
        return 1 / max(2, self.candidates)


def worlds() -> Iterator[World]:
    """Yield every world whose verdicts need an image or a document, by preset and candidates."""
    for preset in ("default", "tiny"):
        for candidates in CANDIDATES:
            yield World("ArmZoom", preset, candidates, JudgedScenes(candidates, preset))
            yield World("ArmPreference", preset, candidates, GradedPairs(candidates, preset=preset))
            reports = ReportsWorld(preset, candidates=(candidates,))
            yield World("ArmDoc", preset, candidates, reports)


def question_worlds() -> Iterator[tuple[str, str, ProceduralSource]]:
    """Yield the environment, the preset and the source of each world of plain questions."""
    for preset in ("train", "tiny"):
        for env_id in ("ArmVQA", "ArmDocVQA"):
            base = gym.make(f"visenv/{env_id}-v0", preset=preset).unwrapped
            assert isinstance(base, VisEnv)
            assert isinstance(base.source, ProceduralSource)
            yield env_id, preset, base.source


def draw(source: ProceduralSource, count: int, seed: int) -> list[Sample]:
    """Return samples of a world with blank images, because a text model does not see them."""
    blank = np.zeros((8, 8, 3), np.uint8)
    rng = np.random.default_rng(seed)
    # Not through the cache of scenes, because the blank images would stay in it.
    with patch.multiple(ScenesWorld, _paint=lambda *_: blank, sample=ScenesWorld._make):
        return [source.sample(rng) for _ in range(count)]


def accuracy(training: Sequence[Sample], test: Sequence[Sample]) -> float:
    """Return the test accuracy of a model that was trained on the training samples."""
    hasher = FeatureHasher(2**16, input_type="string")
    rows = [row for sample in training for row in features(sample)]
    labels = [label for sample in training for label in _labels(sample)]
    model = SGDClassifier("log_loss", average=True, max_iter=10, tol=None, random_state=0)
    model.fit(hasher.transform(rows), labels)
    right = 0
    for sample in test:
        scores = model.decision_function(hasher.transform(features(sample)))
        single = len(scores) == 1
        verdict = str(bool(scores[0] > 0)) if single else str(int(np.argmax(scores)) + 1)
        right += verdict == sample.answers[0]
    return right / len(test)


def features(sample: Sample) -> list[list[str]]:
    """Return the features of each response."""
    texts = sample.truth_as(JudgingTruth).candidates
    said = [_words(text) for text in texts]
    sets = [set(words) for words in said]
    agreed = [_agreement(place, sets) for place in range(len(texts))]
    lengths = [len(text) for text in texts]
    return [
        [
            *words,
            *map(" ".join, pairwise(words)),
            *(f"{sample.kind}: {word}" for word in sets[place]),
            *(f"{word}|{_shared(word, place, sets)}" for word in sets[place]),
            f"agreement {_rank(agreed, place)}",
            f"length {_rank(lengths, place)}",
            f"words {len(words) // 4}",
            f"asked for {len(sets[place] & set(_words(sample.question))) // 2}",
            *_order(place, texts),
        ]
        for place, words in enumerate(said)
    ]


def answer_accuracy(training: Sequence[Sample], test: Sequence[Sample]) -> float:
    """Return the test accuracy of a model that learned answers from the texts of questions."""
    hasher = FeatureHasher(2**16, input_type="string")
    model = SGDClassifier("log_loss", average=True, max_iter=10, tol=None, random_state=0)
    rows = [_question_features(sample) for sample in training]
    model.fit(hasher.transform(rows), [sample.answers[0] for sample in training])
    answers = model.predict(hasher.transform([_question_features(sample) for sample in test]))
    right = [answer == sample.answers[0] for answer, sample in zip(answers, test, strict=True)]
    return float(np.mean(right))


def constant_accuracy(training: Sequence[Sample], test: Sequence[Sample]) -> float:
    """Return the test accuracy of the most frequent training answer of each kind."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sample in training:
        counts[sample.kind][sample.answers[0]] += 1
    guesses = {kind: count.most_common(1)[0][0] for kind, count in counts.items()}
    return float(np.mean([guesses.get(sample.kind) == sample.answers[0] for sample in test]))


def _question_features(sample: Sample) -> list[str]:
    words = _words(sample.question)
    pairs = [" ".join(pair) for pair in pairwise(words)]
    return [*words, *pairs, *(f"{sample.kind}: {word}" for word in words)]


def _shared(word: str, place: int, sets: Sequence[set[str]]) -> int:
    """Return the number of other responses that contain the word."""
    return sum(word in each for each in sets) - (word in sets[place])


def _agreement(place: int, sets: Sequence[set[str]]) -> int:
    """Return how often other responses state the values of a response."""
    return sum(_shared(word, place, sets) for word in sets[place] & VALUES)


def _rank(values: Sequence[int], place: int) -> str:
    """Return the number of smaller values, and of equal values, as text."""
    own = values[place]
    return f"{sum(own > each for each in values)} {sum(own == each for each in values)}"


def _order(place: int, texts: Sequence[str]) -> list[str]:
    """Return for each other response whether the numbers of this one are larger or smaller."""
    own = [int(number) for number in re.findall(r"\d{1,8}", texts[place])]
    signs = []
    for number, text in enumerate(texts):
        other = [int(each) for each in re.findall(r"\d{1,8}", text)]
        if number != place and len(own) == len(other):
            signs.append(int(np.sign(np.subtract(own, other).sum())))
    return [f"numbers compare {sum(signs)} of {len(signs)}"]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _labels(sample: Sample) -> list[bool]:
    count = len(sample.truth_as(JudgingTruth).candidates)
    if count == 1:
        return [sample.answers[0] == "True"]
    return [str(number + 1) == sample.answers[0] for number in range(count)]


def main(training: int = 6000, test: int = 6000) -> None:
    """Print the table in Markdown."""
    print("| environment | preset | responses | chance | text alone |\n|---|---|--:|--:|--:|")
    for world in worlds():
        drawn = draw(world.source, training + test, seed=0)
        reached = accuracy(drawn[:training], drawn[training:])
        chance = f"{world.chance:.3f}"
        print(
            f"| {world.env} | {world.preset} | {world.candidates} | {chance} | {reached:.3f} |",
            flush=True,
        )
    print("\n| environment | preset | constant answer | text alone |\n|---|---|--:|--:|")
    for env_id, preset, source in question_worlds():
        drawn = draw(source, training + test, seed=0)
        constant = constant_accuracy(drawn[:training], drawn[training:])
        reached = answer_accuracy(drawn[:training], drawn[training:])
        print(f"| {env_id} | {preset} | {constant:.3f} | {reached:.3f} |", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
