"""Measures the 19 text checks on texts of 200 words: checks per second by check and dialect.

The bound is 20,000 per second for checks that need not split sentences. Those that do (~) depend on
NLTK's Punkt, which is also measured separately, and have no bound. Costs are also given in units of
the simplest scan of such a text, which finds its words with `re`.

    python benchmarks/text_checks.py
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from visenv.checks import CHECKS, DIALECTS, Dialect, TextCheck, sentence_splitter, split_sentences
from visenv.envs.arm.world.constraints import ConstraintWorld
from visenv.envs.arm.world.constraints.prose import paragraph_of_words
from visenv.tools import Arguments

BOUND = 20_000
ROUNDS = 150
SPLIT_ROUNDS = 15
SPLITS = "sentence"

# Arguments that every text satisfies, so that no check stops early.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Bounds": {"lower_bound": 0, "upper_bound": 10_000},
    "Ranges": {"ranges": [[0, 100]] * 4},
    "Substrings": {"substrings": ["delve", "tapestry", "in conclusion"]},
    "Substring": {"substring": "delve"},
    "Keywords": {
        "keywords": ["boat", "river", "bridge"],
        "lower_bound_times": 0,
        "upper_bound_times": 99,
    },
    "Precision": {"precision": 1},
    "NoArguments": {},
}


def texts(number: int = 20) -> list[str]:
    """Return texts of four paragraphs of 50 words, without numbers, which would stop check 19."""
    rng = np.random.default_rng(0)
    return [
        "\n\n".join(f"The {paragraph_of_words(rng, 49)[4:]}" for _ in range(4))
        for _ in range(number)
    ]


def with_figures(made: list[str]) -> list[str]:
    """Return the texts with nine percentages each, for the checks of the format of numbers."""
    return [re.sub(r"((?:\S+\s+){19})\S+", r"\g<1>12.5%", text) for text in made]


def seconds_each(act: Callable[[str], object], made: list[str], rounds: int = ROUNDS) -> float:
    """Return the seconds per text on one core, in the best of many rounds because of other load."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        for text in made:
            act(text)
        best = min(best, (time.process_time() - start) / len(made))
    return best


def compare_checks(made: list[str]) -> None:
    words = re.compile(r"\S+")
    scan = seconds_each(words.findall, made)
    print(f're.findall(r"\\S+", text): {scan * 1e6:.1f} us, {1 / scan:,.0f}/s\n')
    print(f"{'checks per second (cost in scans)':<66}" + "".join(f"{d:>20}" for d in DIALECTS))
    for name, check in CHECKS.items():
        kind = check.arguments.__name__
        model = check.arguments(**ARGUMENTS.get(kind, {"substring": "The"}))
        texts_of_check = with_figures(made) if kind == "Precision" else made
        rounds = SPLIT_ROUNDS if SPLITS in name else ROUNDS
        cells = []
        for dialect in DIALECTS:
            spent = seconds_each(partial(_run, check, model, dialect), texts_of_check, rounds)
            sign = "~" if SPLITS in name else "!" if 1 / spent < BOUND else " "
            cells.append(f"{1 / spent:>12,.0f} ({spent / scan:.1f}) {sign}".rjust(20))
        print(f"{name:<66}" + "".join(cells))
    print(f"\n! below {BOUND:,}/s    ~ splits sentences, no bound")


def _run(check: TextCheck[Any], model: Arguments, dialect: Dialect, text: str) -> bool:
    return check(text, model, dialect)


def time_splitter(made: list[str]) -> None:
    spent = seconds_each(split_sentences, made, SPLIT_ROUNDS)
    splitter = sentence_splitter()
    print(f"\nsplitting into sentences, {splitter.name} parameters: {spent * 1e6:.0f} us a text")


def time_world() -> None:
    world, rng = ConstraintWorld(), np.random.default_rng(0)
    spent = seconds_each(lambda _: world.sample(rng), [""] * 100)
    print(f"ConstraintWorld: {1 / spent:,.0f} samples/s")


def main() -> None:
    made = texts()
    compare_checks(made)
    time_splitter(made)
    time_world()


if __name__ == "__main__":
    main()
