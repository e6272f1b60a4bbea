"""Defines topics, questions that require several facts, and creates them for scenes and texts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from visenv.types import Image, Sample
from visenv.worlds.scenes import KINDS, SceneTruth, SignTruth
from visenv.worlds.scenes.signs import FRAMES, SHAPES

from ..judged_scenes import STATEMENTS

_MOST_SIGNS = 3

# fmt: off
_WORDS = (
    "lantern", "harvest", "pelican", "orchard", "compass", "glacier", "thunder", "village",
    "mustard", "captain", "blanket", "journey", "crystal", "dolphin", "feather", "whisper",
)

_PEOPLE = ("Ana", "Ben", "Carla", "Deniz", "Emil", "Farah", "Goran", "Hana")

_TOWNS = ("Riga", "Porto", "Ghent", "Cork", "Turin", "Bergen", "Graz", "Split")

_TRADES = ("baker", "nurse", "welder", "tailor", "pilot", "printer", "gardener", "teacher")

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

class RequiredFact(NamedTuple):
    """Describes one fact that the question requires.

    Attributes:
        statements: Sentences with one ``{}`` for the value.
        right: The right value.
        wrong: Plausible wrong values.
    """

    statements: tuple[str, ...]
    right: str
    wrong: tuple[str, ...]

@dataclass(frozen=True, slots=True)
class ResponseTopic:
    """Describes the subject of a sample's responses.

    Attributes:
        id: Unique in the world.
        kind: The kind of question.
        question: The text of the question.
        facts: Two or more facts that it requires, in its order.
        images: The images of the question.
        signs: The signs of a scene that it asks about; empty without a scene.
    """

    id: str
    kind: str
    question: str
    facts: tuple[RequiredFact, ...]
    images: tuple[Image, ...] = ()
    signs: tuple[SignTruth, ...] = ()

def scene_topic(scene: Sample) -> ResponseTopic:
    """Return the topic of a scene of `ScenesWorld`."""
    signs = scene.truth_as(SceneTruth).signs[:_MOST_SIGNS]
    names = [sign.name for sign in signs] if len(signs) > 1 else ["the sign"]
    asked = [KINDS[scene.kind].question.format(sign=name) for name in names]
    facts = [
        _detail(scene.kind, name, sign.answer) for name, sign in zip(names, signs, strict=True)
    ]
    if len(signs) == 1:
        asked.append("What colour is its frame, and what shape has it?")
        facts += _look(signs[0])
    return ResponseTopic(
        scene.id,
        scene.kind,
        " ".join(asked),
        tuple(facts),
        scene.images,
        signs,
    )

def _detail(kind: str, name: str, right: str) -> RequiredFact:
    statements = tuple(each.format(sign=name, answer="{}") for each in STATEMENTS[kind])
    return RequiredFact(statements, right, _others(KINDS[kind].options, right))

def _look(sign: SignTruth) -> list[RequiredFact]:
    frame, shape = sign.frame, sign.shape
    return [
        RequiredFact(
            ("Its frame is {}.", "The frame round it is {}."), frame, _others(FRAMES, frame)
        ),
        RequiredFact(("Its shape is {}.", "In shape it is {}."), shape, _others(SHAPES, shape)),
    ]

def _others(options: Iterable[str], right: str) -> tuple[str, ...]:
    return tuple(option for option in options if option != right)

# fmt: on


def text_topic(rng: np.random.Generator) -> ResponseTopic:
    """Return one of the topics below, each with the same probability."""
    topics = (_numbers, _word, _people, _week)
    return topics[int(rng.integers(len(topics)))](rng)


def _numbers(rng: np.random.Generator) -> ResponseTopic:
    numbers = [int(number) for number in rng.permutation(np.arange(3, 60))[:5]]
    total, near = sum(numbers), (-10, -2, -1, 1, 2, 10)
    return ResponseTopic(
        _identity(rng),
        "numbers",
        f"Here are five numbers: {', '.join(map(str, numbers))}. Which is the smallest, which is "
        "the largest, and what is their sum?",
        (
            _among(numbers, min(numbers), "The smallest of them is {}.", "None is below {}."),
            _among(numbers, max(numbers), "The largest of them is {}.", "None is above {}."),
            RequiredFact(
                ("Their sum is {}.", "Added up, they make {}."),
                str(total),
                tuple(str(total + step) for step in near),
            ),
        ),
    )


def _word(rng: np.random.Generator) -> ResponseTopic:
    word = str(rng.choice(_WORDS))
    backwards = word[::-1]
    swapped = {
        backwards[:place] + backwards[place + 1] + backwards[place] + backwards[place + 2 :]
        for place in range(len(word) - 1)
    }
    vowels = sum(letter in "aeiou" for letter in word)
    return ResponseTopic(
        _identity(rng),
        "word",
        f'Take the word "{word}". How many vowels (a, e, i, o, u) has it, what is its fourth '
        "letter, and how is it spelled backwards?",
        (
            _among(range(1, 6), vowels, "The number of vowels in it is {}.", "Vowels: {}."),
            _among(word, word[3], 'Its fourth letter is "{}".', 'In fourth place is the "{}".'),
            RequiredFact(
                ('Backwards it is "{}".', 'Read from the end, it gives "{}".'),
                backwards,
                tuple(sorted(swapped - {backwards})),
            ),
        ),
    )


def _people(rng: np.random.Generator) -> ResponseTopic:
    names, towns, trades = (
        [str(each) for each in rng.permutation(pool)[:4]] for pool in (_PEOPLE, _TOWNS, _TRADES)
    )
    ages = [int(age) for age in rng.permutation(np.arange(21, 70))[:4]]
    told = "; ".join(
        f"{name} is {age}, works as a {trade} and lives in {town}"
        for name, age, trade, town in zip(names, ages, trades, towns, strict=True)
    )
    asked = int(rng.integers(4))
    name = names[asked]
    return ResponseTopic(
        _identity(rng),
        "people",
        f"{told}. How old is {name}, what is the trade of {name}, and where does {name} live?",
        (
            _among(ages, ages[asked], f"{name} is {{}} years old.", f"The age of {name} is {{}}."),
            _among(
                trades, trades[asked], f"{name} works as a {{}}.", f"By trade, {name} is a {{}}."
            ),
            _among(towns, towns[asked], f"{name} lives in {{}}.", f"The home of {name} is {{}}."),
        ),
    )


def _week(rng: np.random.Generator) -> ResponseTopic:
    today, ahead, back = int(rng.integers(7)), int(rng.integers(8, 14)), int(rng.integers(2, 6))
    later, earlier = _DAYS[(today + ahead) % 7], _DAYS[(today - back) % 7]
    return ResponseTopic(
        _identity(rng),
        "week",
        f"Today is {_DAYS[today]}. What day was it {back} days ago, and what day will it be in "
        f"{ahead} days?",
        (
            _among(
                _DAYS, earlier, f"It was {{}} {back} days ago.", f"Then, {back} days ago: {{}}."
            ),
            _among(_DAYS, later, f"In {ahead} days it will be {{}}.", f"After {ahead} days: {{}}."),
        ),
    )


def _among(options: Iterable[object], right: object, *statements: str) -> RequiredFact:
    """Return a fact whose wrong values are the other options."""
    wrong = dict.fromkeys(str(option) for option in options if option != right)
    return RequiredFact(statements, str(right), tuple(wrong))


def _identity(rng: np.random.Generator) -> str:
    return f"graded-{int(rng.integers(2**63)):016x}"
