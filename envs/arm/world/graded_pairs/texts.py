"""Creates topics without images: the facts follow from the question by counting and reading."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .topic import RequiredFact, ResponseTopic

# fmt: off
_WORDS = (
    "lantern", "harvest", "pelican", "orchard", "compass", "glacier", "thunder", "village",
    "mustard", "captain", "blanket", "journey", "crystal", "dolphin", "feather", "whisper",
)
_PEOPLE = ("Ana", "Ben", "Carla", "Deniz", "Emil", "Farah", "Goran", "Hana")
_TOWNS = ("Riga", "Porto", "Ghent", "Cork", "Turin", "Bergen", "Graz", "Split")
_TRADES = ("baker", "nurse", "welder", "tailor", "pilot", "printer", "gardener", "teacher")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
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
