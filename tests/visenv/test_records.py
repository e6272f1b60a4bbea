"""Tests events and ground truths as JSON: every registered type is read back unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from visenv.data.hrbench import HRBenchTruth
from visenv.data.rows import RowSource
from visenv.envs.arft.coding.ground_truth import CodingTruth, Distortion
from visenv.envs.arft.search.ground_truth import SearchTruth, WorldId
from visenv.envs.argos.ground_truth import Entailment, GroundedTruth, MediaTruth
from visenv.envs.argos.world.events import WorldEvent
from visenv.envs.argos.world.things import Thing
from visenv.envs.arm.answer_judge import AnswerJudged
from visenv.envs.arm.datasets.deepeyes import DeepEyesTruth
from visenv.envs.arm.datasets.vlmeval_score import VlmEvalTruth
from visenv.envs.arm.ground_truth import (
    Constraint,
    ConstraintCheck,
    DocumentTruth,
    InstructionTruth,
    JudgingTruth,
    Tie,
)
from visenv.envs.embodied.datasets.published import PublishedTruth
from visenv.envs.embodied.ground_truth import HouseTruth
from visenv.envs.embodied.world.goals import Clause, Fact, Goal
from visenv.envs.libero.ground_truth import LiberoTruth
from visenv.envs.mags.env import TextIgnored
from visenv.envs.mags.ground_truth import MagsTruth
from visenv.envs.zoom_vqa.datasets.textvqa import TextVQATruth
from visenv.errors import EpisodeError
from visenv.grammar.points import FrameNote, Point, SpanNote
from visenv.records import UnknownRecord, truth_from_json, truth_to_json
from visenv.registration import DATA, RECORD_TYPES, load
from visenv.testing.toy import SumTruth
from visenv.types import QuestionTruth
from visenv.verifier import Referred, Selected
from visenv.worlds.scenes import SceneTruth, SignTruth

BOX = (1, 2.5, 3, 4)
CHECK = ConstraintCheck(
    name="words", arguments={"keywords": ["a"], "lower_bound": 1, "nested": {"x": None}}
)
SIGN = SignTruth(
    name="the red sign", frame="red", shape="round", answer="7", box=BOX, detail_box=BOX
)
FACT = Fact("in", ("?0", "table_1"))
CLAUSE = Clause("exists", (("mug_1", "mug_2"),), (FACT,), 2)
GOAL = Goal((CLAUSE,), (Clause("forall", (("mug_1",),), (Fact("clean", ("?0",)),)),))
TRUTHS: dict[str, Any] = {
    "QuestionTruth": QuestionTruth(options=("a", "b"), target_boxes=(BOX, BOX), document="d"),
    "SceneTruth": SceneTruth(signs=(SIGN, SIGN), labels={"kind": "text"}, detail_box=BOX),
    "HRBenchTruth": HRBenchTruth(index=3, cycle_category="3"),
    "TextVQATruth": TextVQATruth(image_id="f", image_classes=("Tree",)),
    "DeepEyesTruth": DeepEyesTruth(ability="vl_chat"),
    "JudgingTruth": JudgingTruth(
        candidates=("a \ud800", ""),
        check=CHECK,
        rating=(0, 100),
        score=85.0,
        tie=Tie(row="r", place=0, right=1, responses=2),
    ),
    "DocumentTruth": DocumentTruth(
        evidence_pages=(1, 2), document="d", gold_query="q", options=("a", "b")
    ),
    "VlmEvalTruth": VlmEvalTruth(
        answer_kind="letters", exact=True, judged_question="q", problem="7", step="2steps_1"
    ),
    "AnswerJudged": AnswerJudged(3, 0.5, "a \ud800"),
    "InstructionTruth": InstructionTruth(
        constraints=(Constraint(key="k", text="t", method="rule_based", checks=(CHECK,)),)
    ),
    "CodingTruth": CodingTruth(
        problems=("dark", "noise"),
        distortions=(Distortion(name="dark", gain=0.1 + 0.2), Distortion(name="noise", seed=2**31)),
        split="hard",
        steps=("problem", "answer"),
        box=(0, 1, 999, 1000),
    ),
    "SearchTruth": SearchTruth(
        queries=("q",), names=(("n", "m"),), world=WorldId(preset="tiny", seed=7)
    ),
    "Referred": Referred(
        0,
        (Point(1.5, 2.0, "cup \ud800", 3, None),),
        (FrameNote(None, 0.5, "rain"),),
        (SpanNote(1, None, 0.0, None, "snow"),),
        2,
        (96, 48),
        "so",
    ),
    "Selected": Selected(0, ("exact", "spatial"), "rules"),
    "MediaTruth": MediaTruth(options=("a", "b"), times=(0.0, 0.5), labels={"source": "x"}),
    "GroundedTruth": GroundedTruth(
        width=20,
        height=10,
        frames=((Thing("red", "plain", "ball", "small", 5, 5, 2, 3),),),
        targets=("ball",),
        events=(WorldEvent(kind="turns", names=("red ball",), first=0, last=1, color="blue"),),
        entailments=(Entailment(statement="it is so", answer="a"),),
    ),
    "MagsTruth": MagsTruth(target_boxes=(BOX,), evidence_boxes=(BOX, BOX), signs=(SIGN,)),
    "TextIgnored": TextIgnored(0, "more \ud800"),
    "LiberoTruth": LiberoTruth("libero_goal", 6, 3, 1, (0.5, -0.25)),
    "PublishedTruth": PublishedTruth(
        benchmark="eb_alfred", subset="base", scene="FloorPlan1", task="t", content='{"a": 1}'
    ),
    "HouseTruth": HouseTruth(
        seed=7,
        dialect="alfred",
        subset="base",
        split="eval",
        rooms=3,
        kinds=35,
        extra=2,
        lookalikes=3,
        fixtures=("sink",),
        tasks=("pick",),
        longest_plan=12,
        types=("mug",),
        attributes=("color",),
        task="pick",
        goal=GOAL,
        plan=(3, 1, 2),
        targets=("mug_1",),
        others=("mug_2",),
    ),
    "Goal": GOAL,
    "Clause": CLAUSE,
    "Fact": FACT,
    "SumTruth": SumTruth(add=(1, 2)),
}


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("name", RECORD_TYPES)
def test_truth_comes_back_equal(name: str) -> None:
    truth = TRUTHS[name]
    record = through_json(truth_to_json(truth))
    assert record["type"] == name
    again = truth_from_json(record)
    assert (again, type(again)) == (truth, type(truth))
    assert truth_to_json(again) == truth_to_json(truth)


def test_truth_of_every_data_set_is_registered() -> None:
    declared = {
        source.ground_truth
        for source in (load("data set", name) for name in DATA)
        if isinstance(source, type) and issubclass(source, RowSource)
    }
    assert len(declared) >= 6
    for truth in declared:
        assert RECORD_TYPES[truth.__name__] == f"{truth.__module__}:{truth.__qualname__}"


@pytest.mark.parametrize(
    "change", [{"serach": 1}, {"queries": [1]}, {"world": {"preset": "tiny"}}, {"split": None}]
)
def test_truth_with_other_fields_is_refused(change: Mapping[str, Any]) -> None:
    record = truth_to_json(TRUTHS["SearchTruth"])
    with pytest.raises(ValueError, match="validation error"):
        truth_from_json({**record, "fields": {**record["fields"], **change}})


@pytest.mark.parametrize("name", ["Gone", "NotInstalled"])
def test_truth_of_a_missing_package_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECORD_TYPES, "NotInstalled", "no_such_package:Truth")
    record = {"type": name, "fields": {"boxes": [[1, 2]]}}
    truth = truth_from_json(record)
    assert truth == UnknownRecord(name, {"boxes": [[1, 2]]})
    assert truth_to_json(truth) == record


@dataclass(frozen=True)
class Unregistered:
    """Represents a ground truth of an unregistered type."""

    right: str = "a"


@pytest.mark.parametrize("truth", [Unregistered(), {"right": "a"}, "a"])
def test_truth_without_a_registered_type_is_refused(truth: Any) -> None:
    with pytest.raises(EpisodeError, match="is not a registered type"):
        truth_to_json(truth)
