"""Tests the counts of `benchmarks/variety.py` with samples whose counts are known."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from benchmarks import variety
from visenv.types import QuestionTruth, Sample
from visenv.types.ground_truth import Box


def asked(question: str, box: Box, answer: str = "red") -> Sample:
    return Sample(
        id=f"{question} {box}",
        question=question,
        images=(),
        answers=(answer,),
        kind="colour",
        ground_truth=QuestionTruth(options=("red", "blue", "Anna Berg"), target_box=box),
    )


def test_counts_by_hand() -> None:
    here, there = (0, 0, 4, 4), (1, 0, 4, 4)
    trained = [
        asked("Is it red?", here),
        asked("Is it red?", here),
        asked("Is it blue?", here),
        asked("What has 12 rings?", there),
    ]
    held_out = [asked("Is it red?", there), asked("Is it blue?", here), asked("New?", (9, 9, 9, 9))]
    row = variety.variety(trained, held_out)
    assert (row.seeds, row.questions, row.templates, row.layouts) == (4, 3, 2, 2)
    assert (row.pictured, row.repeated) == (0, 1 / 2)
    assert row.leaked == 1 / 3
    assert row.leaked_layouts == row.leaked_questions == 2 / 3


def test_template_has_no_names_and_numbers() -> None:
    here = (0, 0, 1, 1)
    questions = ["Is it red, or blue?", 'Who is Anna Berg of Ulm, born 1,950, "the Bold"?']
    assert variety.templates([asked(each, here) for each in questions]) == {
        "Is it …, or …?",
        "Who is … of …, born …?",
    }


@pytest.mark.component("opencv")
def test_measured_world_keeps_no_blank_pictures() -> None:
    row = variety.measure("visenv/ZoomVQA-v0:tiny", 20)
    assert (row.questions, row.layouts) == (1, 20)
    assert row.leaked_layouts < 1
    base: Any = gym.make("visenv/ZoomVQA-v0", preset="tiny").unwrapped
    assert base.source.sample(np.random.default_rng(0)).images[0].size == (1152, 1152)
