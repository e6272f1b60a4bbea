"""Tests the teachers of the judging environments: pages, checks, and wrong verdicts."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

import visenv  # noqa: F401 - registers the environments
from visenv.envs.arm.env.doc import WrongPage
from visenv.envs.arm.env.instruction import MisreadsResult
from visenv.envs.arm.env.zoom import CropsBeside
from visenv.envs.arm.ground_truth import ConstraintCheck, JudgingTruth, judging_sample
from visenv.envs.arm.world.reports import ReportsWorld
from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn
from visenv.types import Image
from visenv.worlds.reports.library import ReportsLibrary

DIGITS = "check_whether_has_no_arabic_number_in_response"
RANGE = "check_whether_response_word_count_in_range"
DOCUMENT = "cards-0"
COLORS = ("yellow", "red", "yellow", "cyan", "yellow", "blue", "red", "yellow", "cyan")
"""The colors of the pages of this document."""
PAGES = len(COLORS)


def begun(name: str, source: Any, **options: Any) -> Any:
    env: Any = gym.make(f"visenv/{name}-v0", data=source, preset="tiny", **options).unwrapped
    env.reset(seed=0)
    return env


class UnknownValues(ReportsLibrary):
    """Knows the pages of documents, but not what they show."""

    @override
    def values(self, name: str) -> tuple[str, ...]:
        return ()


class AboutPages(ReportsWorld):
    """Asks about given pages of a document; the answer is "red"."""

    def __init__(
        self,
        *pages: int,
        candidates: tuple[str, ...] = ("red", "blue"),
        verdict: bool | int = 1,
        knows_values: bool = False,
    ) -> None:
        super().__init__("tiny")
        if not knows_values:
            self.library = UnknownValues("tiny")
        self.pages, self.candidates_shown, self.verdict = pages, candidates, verdict

    @override
    def sample(self, rng: np.random.Generator) -> Any:
        truth = JudgingTruth(
            candidates=self.candidates_shown,
            document=DOCUMENT,
            evidence_pages=self.pages,
            gold_query=f"page {self.pages[0]}",
            answer="red",
        )
        return judging_sample(id="d", instruction="Which?", truth=truth, verdict=self.verdict)


def turn(teacher: Any, env: Any) -> ParsedTurn:
    made: ParsedTurn = teacher.turn(env, np.random.default_rng(0))
    return made


def taken(teacher: Any, env: Any) -> ParsedTurn:
    """Take the teacher's next turn, and return the one after it."""
    env.step(env.grammar.compose(turn(teacher, env)))
    return turn(teacher, env)


def checking(name: str, arguments: dict[str, Any], text: str, keeps: bool) -> Any:
    """Return an environment with one response to judge by a check."""
    truth = JudgingTruth(
        candidates=(text,),
        constraint="A rule.",
        check=ConstraintCheck(name=name, arguments=arguments),
    )
    return begun(
        "ArmIF", [judging_sample(id="c", instruction="Write.", truth=truth, verdict=keeps)]
    )


def scenes(candidates: tuple[str, ...], verdict: Any, **fields: Any) -> list[Any]:
    image = Image.from_pixels(np.zeros((96, 96, 3), np.uint8))
    truth = JudgingTruth(
        candidates=candidates, target_box=(8, 8, 24, 24), detail_box=(12, 12, 20, 20), **fields
    )
    return [
        judging_sample(id="s", instruction="Which?", truth=truth, verdict=verdict, images=(image,))
    ]


def queries(env: Any, teacher: WrongPage, count: int = 40) -> list[str]:
    """Return the queries of the first turns of a teacher in some episodes."""
    turns = [teacher.turn(env, np.random.default_rng(seed)) for seed in range(count)]
    return [made.calls[0].arguments["query"] for made in turns]


@pytest.mark.parametrize(("evidence", "near"), [((9,), {7, 8}), ((3, 5), {4, 6, 7})])
def test_teacher_asks_for_a_page_near_late_evidence(
    evidence: tuple[int, ...], near: set[int]
) -> None:
    env = begun("ArmDoc", AboutPages(*evidence))
    assert len(env.opened()) == PAGES
    assert set(queries(env, WrongPage(doubted=0.0))) == {f"page {page}" for page in near}


@pytest.mark.parametrize(
    ("candidates", "verdict", "pages"),
    [
        (("red", "blue"), 1, {6}),
        (("cyan", "red"), 2, {4, 9}),
        (("cyan",), False, {4, 9}),
        (("red",), True, {1, 3, 4, 5, 6, 8, 9}),  # the teacher says False after any other color
        (("red", "magenta"), 1, {1, 3, 4, 5, 6, 8, 9}),  # no page is magenta
    ],
)
def test_teacher_opens_a_page_that_shows_the_wrong_claim(
    candidates: tuple[str, ...], verdict: bool | int, pages: set[int]
) -> None:
    source = AboutPages(7, candidates=candidates, verdict=verdict, knows_values=True)
    assert source.library.values(DOCUMENT) == COLORS
    env = begun("ArmDoc", source)
    teacher = WrongPage(doubted=0.0)
    assert set(queries(env, teacher, 80)) == {f"page {page}" for page in pages}
    concluded = taken(teacher, env)
    shown = COLORS[env.log.tool_calls[0].detail["pages"][0] - 1]
    assert concluded.thought is not None
    assert concluded.thought.startswith(f" {shown}, {candidates[0]} ")
    env.step(env.grammar.compose(concluded))
    assert env.task_score() == 0.0


def test_teacher_doubts_the_right_page_in_a_share_of_the_episodes() -> None:
    env = begun("ArmDoc", AboutPages(7, knows_values=True))
    assert 20 <= queries(env, WrongPage(doubted=0.25), 100).count("page 7") <= 30
    concluded = taken(WrongPage(doubted=1.0), env)
    assert env.metrics()["found"] == 1
    assert concluded.answer == "Overall Judgment: Answer 2 is better"
    assert concluded.thought == " red, red no, blue yes "


def test_evidence_on_the_first_pages_is_found() -> None:
    env = begun("ArmDoc", AboutPages(3))
    assert turn(WrongPage(), env) == env.oracle_turn()
    assert taken(WrongPage(), env) == env.oracle_turn()
    assert env.metrics()["found"] == 1
    (call,) = turn(WrongPage(known=2), begun("ArmDoc", AboutPages(3))).calls
    assert call.arguments["query"] != "page 3"


def test_document_without_other_pages_is_judged_unseen() -> None:
    env = begun("ArmDoc", AboutPages(*range(1, PAGES + 1)))
    assert turn(WrongPage(), env).answer == "Overall Judgment: Answer 2 is better"


def test_teacher_believes_the_wrong_response_after_the_wrong_page() -> None:
    env = begun("ArmDoc", AboutPages(4))
    concluded = taken(WrongPage(), env)
    assert concluded.answer == "Overall Judgment: Answer 2 is better"
    assert concluded.thought == " red no, blue yes "


@pytest.mark.parametrize(("keeps", "said"), [(True, "False"), (False, "True")])
def test_result_of_a_check_of_a_range_is_misread(keeps: bool, said: str) -> None:
    arguments = {"lower_bound": 2 if keeps else 3, "upper_bound": 4}
    env = checking(RANGE, arguments, "two words", keeps)
    assert turn(MisreadsResult(), env) == env.oracle_turn()  # the right check
    assert taken(MisreadsResult(), env).answer == f"Overall Judgment: {said}"
    assert env.log.tool_calls[0].detail["result"] is keeps


@pytest.mark.parametrize(("keeps", "text"), [(True, "no number"), (False, "1 number")])
def test_result_of_another_check_is_not_misread(keeps: bool, text: str) -> None:
    env = checking(DIGITS, {}, text, keeps)
    assert taken(MisreadsResult(), env).answer == f"Overall Judgment: {keeps}"


def test_enlarged_part_is_moved_by_the_error_in_its_sides() -> None:
    env = begun("ArmZoom", scenes(("red", "blue"), 2))
    (right,) = env.oracle_turn().calls
    left, top, across, down = right.arguments["bbox_2d"]
    side, height = across - left, down - top
    teacher = CropsBeside(strength=0.5, offset=(1.0, 0.5), noise=0.0)
    (call,) = turn(teacher, env).calls
    x, y = round(0.5 * side), round(0.25 * height)
    assert call.arguments["bbox_2d"] == [left + x, top + y, across + x, down + y]
    # A part that would leave the image ends at its edge.
    (call,) = turn(CropsBeside(offset=(0.0, -9.0), noise=0.0), env).calls
    assert call.arguments["bbox_2d"] == [left, 0, across, height]


def test_verdict_is_right_if_the_part_shows_the_evidence() -> None:
    env = begun("ArmZoom", scenes(("red", "blue"), 2))
    assert taken(CropsBeside(strength=0.0), env).answer == "Overall Judgment: Answer 2 is better"
    env = begun("ArmZoom", scenes(("red", "blue"), 2))
    far = CropsBeside(offset=(3.0, 0.0), noise=0.0)
    assert taken(far, env).answer == "Overall Judgment: Answer 1 is better"


def test_verdict_after_a_part_without_evidence_is_random() -> None:
    env = begun("ArmZoom", scenes(("red", "blue", "green"), 2))
    far = CropsBeside(offset=(3.0, 0.0), noise=0.0)
    taken(far, env)
    answers = {far.turn(env, np.random.default_rng(seed)).answer for seed in range(20)}
    assert answers == {f"Overall Judgment: Answer {number} is better" for number in (1, 3)}


@pytest.mark.parametrize(("verdict", "rating"), [(True, 1), (False, 5)])
def test_rating_of_the_teacher_is_at_the_other_end_of_the_scale(verdict: bool, rating: int) -> None:
    env = begun("ArmPreference", scenes(("red",), verdict, rating=(1, 5)))
    far = CropsBeside(offset=(3.0, 0.0), noise=0.0)
    assert taken(far, env).answer == f"Overall Judgment: {rating}"


def test_options_of_the_wrong_page_are_in_their_ranges() -> None:
    with pytest.raises(ConfigurationError, match="known must be 0 or more"):
        WrongPage(known=-1)
    with pytest.raises(ConfigurationError, match="doubted must be from 0 to 1"):
        WrongPage(doubted=1.5)
