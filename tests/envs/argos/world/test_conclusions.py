"""Tests the reasoner of the world with sentences that were written by hand before its rule."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from visenv.envs.argos.world import images, videos
from visenv.envs.argos.world.images import ImageWorld
from visenv.envs.argos.world.presets import IMAGE_KINDS, VIDEO_KINDS
from visenv.envs.argos.world.sentences import MOST_CHARACTERS, MOST_SENTENCES, sentences
from visenv.envs.argos.world.things import plural
from visenv.envs.argos.world.videos import VideoWorld
from visenv.types import Sample
from visenv.worlds.recent import RecentSamples

FOLDER = Path(__file__).parents[1] / "sentences"
KINDS: list[tuple[Any, str]] = [
    *((ImageWorld, kind) for kind in IMAGE_KINDS),
    *((VideoWorld, kind) for kind in VIDEO_KINDS),
]
WORDS = ("zero", "one", "two", "three", "four", "five", "six")


def slots_of(sample: Sample, rng: np.random.Generator) -> dict[str, str]:
    """Return the words that fill the slots of a form."""
    truth: Any = sample.ground_truth
    asked, answer = truth.asked, sample.answers[0]
    wrong = str(rng.choice([option for option in truth.options if option != answer]))
    said = {"answer": answer, "wrong": wrong}
    if answer.isdigit():
        said = {
            "digit": answer,
            "wrongdigit": wrong,
            "answer": WORDS[int(answer)],
            "wrong": WORDS[int(wrong)],
        }
    said |= {"shape": asked.subject, "thing": asked.subject, "a": asked.subject, "b": asked.other}
    said |= {"plural": plural(asked.subject), "extreme": asked.given, "before": asked.given}
    if sample.kind == "absent":
        said["color"], said["shape"] = asked.subject.split()
    if asked.facts:
        shapes = sorted({thing.shape for thing in truth.frames[0]})
        others = [shape for shape in shapes if shape not in asked.facts]
        said["list"] = " and the ".join(asked.facts)
        said["wronglist"] = " and the ".join([*asked.facts[1:], *others[:2]])
    if sample.kind == "duration":
        first = truth.events[0].last + 1
        last = truth.events[1].first + 1
        said |= {"first": str(first), "last": str(last), "wronglast": str(last + 1)}
    return said | {key.capitalize(): word.capitalize() for key, word in said.items()}


def filled(part: str, truth: str) -> Iterator[tuple[str, Sample, str]]:
    """Yield the kind, a sample and a sentence, two for each form."""
    with (FOLDER / f"{part}.toml").open("rb") as file:
        forms = tomllib.load(file)
    for world, kind in KINDS:
        name = "changes" if (world, kind) == (VideoWorld, "count") else kind
        made = world(kinds=(kind,))
        for number, form in enumerate(forms[name][truth]):
            tag, bar, text = form.rpartition("|")
            for fill in range(2):
                for seed in range(100 * number + 50 * fill, 10_000):
                    rng = np.random.default_rng(seed)
                    sample = made.sample(rng)
                    if not bar or tag in (sample.answers[0], sample.ground_truth.asked.given):
                        break
                yield name, sample, text.format(**slots_of(sample, rng))


def accepted(sample: Sample, sentence: str) -> bool:
    truth: Any = sample.ground_truth
    return bool(truth.entailed(sentence) == sample.answers[0])


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures, which the reasoner does not see."""
    for module in (images, videos):
        monkeypatch.setattr(module, "paint", lambda *_: np.zeros((8, 8, 3), np.uint8))
        monkeypatch.setattr(module, "RECENT", RecentSamples())  # it would keep the blank pictures


@pytest.mark.parametrize("part", ["written", "held_out", "models"])
def test_true_sentences_are_accepted_and_false_ones_are_not(part: str, unpainted: None) -> None:
    true, false = list(filled(part, "true")), list(filled(part, "false"))
    assert len(true) == len(false)
    refused = [sentence for _, sample, sentence in true if not accepted(sample, sentence)]
    taken = [sentence for _, sample, sentence in false if accepted(sample, sentence)]
    assert len(refused) <= 0.05 * len(true), refused
    assert len(taken) <= 0.02 * len(false), taken


WORDS_OF_RULES = (
    *("1", "not ", "no more than ", ", ", "or ", "1 or ", "the ball ", "red ", "left ", "frame 1 "),
    *("It is so. ", "than all ", "in front of ", "from red to ", "faster ", "n't", "’s "),
    *("?", "\n", "->"),
)


@pytest.mark.parametrize(("world", "kind"), KINDS)
def test_conclusion_of_any_text_is_an_option_or_nothing(
    world: Any, kind: str, unpainted: None
) -> None:
    rng = np.random.default_rng(0)
    sample = world(kinds=(kind,)).sample(rng)
    truth, asked = sample.ground_truth, sample.ground_truth.asked
    words = (*WORDS_OF_RULES, *(f"{option} " for option in truth.options), f"{asked.subject} ")
    for _ in range(300):
        text = "".join(rng.choice(words, int(rng.integers(1, 30))))
        assert truth.entailed(text) in (None, *truth.options), text


@pytest.mark.parametrize("word", ["1", "not ", "It is so. ", "the ball and ", " "])
def test_long_texts_are_read_in_part(word: str, unpainted: None) -> None:
    """Check that what is read has a limit, because the time grows with its square."""
    assert all(len(each.text) <= 3 * MOST_CHARACTERS for each in sentences(word * 10**5))
    assert len(sentences(word * 10**5)) <= MOST_SENTENCES
    sample = ImageWorld(kinds=("count",)).sample(np.random.default_rng(0))
    truth: Any = sample.ground_truth
    said = f"The number of {plural(truth.asked.subject)} is {sample.answers[0]}."
    assert truth.entailed(f"{word * 10**5}. {said}") == sample.answers[0]
    assert truth.entailed(f"{said} {word * 10**5}") in (None, sample.answers[0])
    assert truth.entailed(said.replace(" is", f" {'very ' * MOST_CHARACTERS} is")) is None
