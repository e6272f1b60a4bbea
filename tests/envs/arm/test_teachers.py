"""Tests the teachers of the judging environments: pages, checks, and wrong verdicts."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arm.ground_truth import ConstraintCheck, JudgingTruth
from visenv.envs.arm.samples import judging_sample
from visenv.envs.arm.teachers import JudgesUnseen, MisreadsResult, WrongPage
from visenv.envs.arm.world.reports import ReportsWorld
from visenv.grammar import ParsedTurn
from visenv.types import Image

ALWAYS: dict[str, Any] = {"rate": 1.0}
CHECK = "check_whether_has_no_arabic_number_in_response"
DOCUMENT = "cards-0"


def begun(name: str, source: Any, **options: Any) -> Any:
    env: Any = gym.make(f"visenv/{name}-v0", data=source, preset="tiny", **options).unwrapped
    env.reset(seed=0)
    return env


class AboutPages(ReportsWorld):
    """Asks about given pages of a document."""

    def __init__(self, *pages: int) -> None:
        super().__init__("tiny")
        self.pages = pages

    @override
    def sample(self, rng: np.random.Generator) -> Any:
        truth = JudgingTruth(
            candidates=("red", "blue"),
            document=DOCUMENT,
            evidence_pages=self.pages,
            gold_query=f"page {self.pages[0]}",
            answer="red",
        )
        return judging_sample(id="d", instruction="Which?", truth=truth, verdict=1)


def turn(teacher: Any, env: Any) -> ParsedTurn:
    made: ParsedTurn = teacher.turn(env, np.random.default_rng(0))
    return made


def taken(teacher: Any, env: Any) -> ParsedTurn:
    """Take the teacher's next turn, and return the one after it."""
    env.step(env.grammar.compose(turn(teacher, env)))
    return turn(teacher, env)


def scenes(candidates: tuple[str, ...], verdict: Any, **fields: Any) -> list[Any]:
    image = Image.from_pixels(np.zeros((96, 96, 3), np.uint8))
    truth = JudgingTruth(candidates=candidates, detail_box=(8, 8, 24, 24), **fields)
    return [
        judging_sample(id="s", instruction="Which?", truth=truth, verdict=verdict, images=(image,))
    ]


@pytest.mark.parametrize(("evidence", "shown"), [((2,), 3), ((2, 3), 4), ((1, 3), 4)])
def test_teacher_looks_at_the_page_after_the_evidence(
    evidence: tuple[int, ...], shown: int
) -> None:
    env = begun("ArmDoc", AboutPages(*evidence))
    (call,) = turn(WrongPage(**ALWAYS), env).calls
    assert call.arguments == {"filename": DOCUMENT, "image_idx": shown}


def test_page_after_the_last_one_is_the_first_one() -> None:
    last = len(begun("ArmDoc", AboutPages(1)).opened())
    env = begun("ArmDoc", AboutPages(last))
    (call,) = turn(WrongPage(**ALWAYS), env).calls
    assert call.arguments["image_idx"] == 1
    env = begun("ArmDoc", AboutPages(*range(1, last + 1)))
    assert turn(WrongPage(**ALWAYS), env).answer == "Overall Judgment: Answer 2 is better"


def test_teacher_believes_the_wrong_response_after_the_wrong_page() -> None:
    env = begun("ArmDoc", AboutPages(2))
    concluded = taken(WrongPage(**ALWAYS), env)
    assert concluded.answer == "Overall Judgment: Answer 2 is better"
    assert concluded.thought == " red no, blue yes "


@pytest.mark.parametrize(("keeps", "said"), [(True, "False"), (False, "True")])
def test_result_of_the_check_is_misread(keeps: bool, said: str) -> None:
    text = "no number" if keeps else "1 number"
    truth = JudgingTruth(
        candidates=(text,), constraint="No digits.", check=ConstraintCheck(name=CHECK, arguments={})
    )
    sample = judging_sample(id="c", instruction="Write.", truth=truth, verdict=keeps)
    env = begun("ArmIF", [sample])
    teacher = MisreadsResult(**ALWAYS)
    assert turn(teacher, env) == env.oracle_turn()  # the right check
    assert taken(teacher, env).answer == f"Overall Judgment: {said}"
    assert env.log.tool_calls[0].detail["result"] is keeps


def test_verdict_without_a_look_is_a_wrong_one() -> None:
    env = begun("ArmZoom", scenes(("red", "blue", "green"), 2))
    answers = {
        JudgesUnseen(**ALWAYS).turn(env, np.random.default_rng(seed)).answer for seed in range(20)
    }
    assert answers == {f"Overall Judgment: Answer {number} is better" for number in (1, 3)}


@pytest.mark.parametrize(("verdict", "rating"), [(True, 1), (False, 5)])
def test_rating_of_the_teacher_is_at_the_other_end_of_the_scale(verdict: bool, rating: int) -> None:
    env = begun("ArmPreference", scenes(("red",), verdict, rating=(1, 5)))
    assert turn(JudgesUnseen(**ALWAYS), env).answer == f"Overall Judgment: {rating}"
