"""Tests ground truths: values that constructors refuse, and checks in environments and sources."""

from __future__ import annotations

import dataclasses
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ValidationError
from pydantic.dataclasses import dataclass
from typing_extensions import override

from visenv.data.rows import RowLocation, RowSource
from visenv.data.source import check_declared_truth, check_truth
from visenv.envs.arft import make_search
from visenv.envs.arm import make_if, make_zoom
from visenv.envs.zoom_vqa import make
from visenv.errors import ConfigurationError, DataError
from visenv.testing import toy
from visenv.types import GroundTruth, QuestionTruth, Sample
from visenv.types.ground_truth import STRICT
from visenv.worlds.scenes import ScenesWorld


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"target_bx": (1, 2, 3, 4)}, "target_bx"),
        ({"target_box": (1, 2, 3)}, "target_box"),
        ({"target_box": (1, 2, 3, "4")}, "target_box"),
        ({"target_box": (1, 2, 3, float("nan"))}, "target_box"),
        ({"options": "ab"}, "options"),
        ({"options": [1]}, "options"),
        ({"labels": {"split": 1}}, "labels"),
        ({"document": None}, "document"),
    ],
)
def test_ground_truth_refuses_what_does_not_fit(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        QuestionTruth(**fields)


def test_ground_truth_takes_the_lists_of_data_files() -> None:
    box: Any = [1, 2, 3, 4]
    options: Any = ["a", "b"]
    truth = QuestionTruth(target_box=box, options=options)
    assert (truth.target_box, truth.options) == ((1, 2, 3, 4), ("a", "b"))


def test_ground_truth_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        QuestionTruth().document = "other"  # type: ignore[misc]


def test_sample_gives_its_truth_as_a_type() -> None:
    truth = QuestionTruth(options=("a",))
    sample = Sample("s", "?", ground_truth=truth)
    assert sample.truth_as(QuestionTruth) is truth
    assert sample.truth_as(GroundTruth) is truth
    assert Sample("s", "?").truth_as(QuestionTruth) == QuestionTruth()
    with pytest.raises(DataError, match="must have a SumTruth, but it has a QuestionTruth"):
        sample.truth_as(toy.SumTruth)
    with pytest.raises(DataError, match="must have a SumTruth, but it has no ground truth"):
        Sample("s", "?").truth_as(toy.SumTruth)


# ---------------------------------------------------------------------------- environments


class Scenes:
    """Declares `QuestionTruth` as the type of its ground truths."""

    ground_truth: Any = QuestionTruth

    def sample(self, rng: np.random.Generator) -> Sample:
        return Sample("s", "?", (), ("a",))


@pytest.mark.parametrize("maker", [make_zoom, make_if, make_search])
def test_environment_refuses_a_source_of_another_type_when_it_is_made(maker: Any) -> None:
    with pytest.raises(ConfigurationError, match="but ScenesWorld has SceneTruth"):
        maker(data=ScenesWorld("tiny"))


def test_environment_refuses_a_sample_of_another_type() -> None:
    env = make_zoom(data=[Sample("s", "?", (), ("1",))])
    with pytest.raises(ConfigurationError, match="the sample 's' has none"):
        env.reset(seed=0)


def test_source_without_a_declaration_is_checked_by_sample() -> None:
    check_declared_truth([1, 2], (QuestionTruth,), "Task")
    with pytest.raises(ConfigurationError, match=r"Task needs .* QuestionTruth or none, but the"):
        check_truth(
            Sample("s", "?", ground_truth=toy.SumTruth(add=(1, 2))),
            (QuestionTruth, NoneType),
            "Task",
        )


def test_declaration_must_be_a_type() -> None:
    source = Scenes()
    source.ground_truth = "QuestionTruth"
    with pytest.raises(ConfigurationError, match="ground_truth of Scenes must be a type"):
        make(data=source)


# ---------------------------------------------------------------------------- rows


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class CountTruth(GroundTruth):
    """Holds a ground truth of one number."""

    count: int


class Counts(RowSource):
    """Makes its ground truths from rows of given fields."""

    ground_truth: ClassVar[Any] = CountTruth

    def __init__(self, *rows: dict[str, Any]) -> None:
        super().__init__()
        for number, row in enumerate(rows, start=1):
            place = RowLocation("counts", number)
            with self.listing_problems(place):
                self.add_row(place, Sample(str(number), "?", ground_truth=CountTruth(**row)))

    @override
    def open_images(self, place: RowLocation, images: Any) -> tuple[Any, ...]:
        return ()


def test_row_with_a_misspelled_field_is_a_problem() -> None:
    source = Counts({"count": 1}, {"cuont": 1, "count": 1}, {"count": "1"}, {})
    assert len(source) == 1
    problems = [(each.row, each.problem) for each in source.problems]
    assert [row for row, _ in problems] == [2, 3, 4]
    assert "cuont: Unexpected keyword argument" in problems[0][1]
    assert "count: Input should be a valid integer, got '1'" in problems[1][1]
    assert "count: Field required" in problems[2][1]


def test_row_source_refuses_samples_of_another_type() -> None:
    class Other(Counts):
        ground_truth: ClassVar[Any] = QuestionTruth

    with pytest.raises(
        TypeError, match=r"declares the ground truth QuestionTruth, but .* has Count"
    ):
        Other({"count": 1})
