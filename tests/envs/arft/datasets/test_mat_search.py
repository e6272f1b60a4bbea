"""Tests MAT-Search: rows of the benchmark, steps of the training set, and unusable rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import PIL.Image
import pytest

from visenv.data.open import open_data
from visenv.envs.arft.datasets.mat_search import MatSearch
from visenv.envs.arft.search.ground_truth import SearchTruth
from visenv.errors import DataError, ImageError
from visenv.evaluation import evaluate
from visenv.registration import load
from visenv.rollout import Collector
from visenv.search import Passage


def row(number: int = 1, **changes: Any) -> dict[str, Any]:
    """Return a row in the format of the hub."""
    question = "Who owned the team on the cap?"
    return {
        "id": number,
        "question": question,
        "answer": "A. Busch",
        "image_path": "1.jpg",
    } | changes


def photo(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.new("RGB", (40, 30)).save(path)


def benchmark(folder: Path, *rows: Any) -> MatSearch:
    photo(folder / "MAT-Search-image" / "1.jpg")
    (folder / "MAT-Search.json").write_text(json.dumps(rows))
    return MatSearch(folder)


def test_row_of_the_benchmark(tmp_path: Path) -> None:
    benchmark(tmp_path / "MAT-Benchmark", row(id="a7"))
    source = open_data(f"mat_search:{tmp_path}")
    sample = source[0]
    assert (sample.id, sample.kind) == ("mat-search-a7", "search")
    assert (sample.question, sample.answers) == (row()["question"], ("A. Busch",))
    assert sample.ground_truth == SearchTruth(split="simple", labels={"split": "simple"})
    assert sample.images[0].size == (40, 30)
    assert isinstance(source, MatSearch)
    assert source.score("Mr Busch", sample) == pytest.approx(
        2 / 3
    )  # "mr busch" against "busch": 1/2, 1/1


class Silent:
    """Represents an engine that finds nothing."""

    name = "silent"

    def search(self, query: str, count: int) -> list[Passage]:
        return []

    def close(self) -> None:
        pass


def test_totals_count_every_row_also_one_whose_image_broke_later(tmp_path: Path) -> None:
    """Check four rows: one right, one partly right, one with a broken image, one not readable."""
    photo(tmp_path / "MAT-Search-image" / "2.jpg")
    rows = (row(1, answer="Mr Busch"), row(2, image_path="2.jpg"), row(3), None)
    source = benchmark(tmp_path, *rows)
    (tmp_path / "MAT-Search-image" / "2.jpg").write_bytes(b"no image")

    def make() -> Any:
        return gym.make("visenv/ArftSearch-v0", data=source, search=Silent())

    script = ["<think> A cap. </think><answer> Mr Busch </answer>"]
    collector = Collector(make, load("policy", "scripted")(script))
    totals = source.totals(evaluate(collector, make()))
    collector.close()
    assert len(source.problems) == 2
    assert totals["F1 average"] == pytest.approx((1 + 2 / 3) / 4)  # 2/3: as above
    assert totals["EM average"] == 1 / 4


def test_first_75_rows_are_simple_whatever_became_of_others(tmp_path: Path) -> None:
    rows: list[Any] = [row(number) for number in range(150)]
    rows[3] = None
    source = benchmark(tmp_path, *rows)
    splits = [source[index].ground_truth.split for index in range(149)]
    assert splits == ["simple"] * 74 + ["hard"] * 75
    assert benchmark(tmp_path, row(split="hard"))[0].ground_truth.labels == {"split": "hard"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"question": " "}, "no question"),
        ({"answer": None}, "no answer"),
        ({"answer": ""}, "no answer"),
        ({"answer": ["a", 3]}, "no answer"),
        ({"id": None}, "no id"),
        ({"id": 1}, "used before"),
        ({"image_path": None}, "no image_path"),
        ({"image_path": "gone.jpg"}, "there is no image"),
        ({"image_path": "../../etc/passwd"}, "there is no image"),
        ({"image_path": "a\x00.jpg"}, "leads out"),
        ({"image_path": "/"}, "no image"),
    ],
)
def test_row_that_cannot_be_used_is_listed_and_the_others_are_read(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    source = benchmark(tmp_path, row(), row(2) | changes, row(3))
    assert [source[0].id, source[1].id] == ["mat-search-1", "mat-search-3"]
    (problem,) = source.problems
    assert problem.row == 2
    assert says in problem.problem


def test_broken_image_names_its_row(tmp_path: Path) -> None:
    source = benchmark(tmp_path, row())
    (tmp_path / "MAT-Search-image" / "1.jpg").write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"MAT-Search\.json:1"):
        source[0]


def test_folder_without_readable_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Expected MAT-Search\.json"):
        MatSearch(tmp_path)
    (tmp_path / "MAT-Search.json").write_bytes(b"\xff[")
    with pytest.raises(DataError, match="not JSON"):
        MatSearch(tmp_path)
    (tmp_path / "MAT-Search.json").write_text("[[], 3]")
    with pytest.raises(DataError, match=r"No row of .* expected an object"):
        MatSearch(tmp_path)


# ---------------------------------------------------------------------------- the training set


def test_steps_are_joined_to_questions_with_their_queries(tmp_path: Path) -> None:
    photo(tmp_path / "rft_agent_search_20_images" / "1.jpg")
    photo(tmp_path / "rft_agent_search_20_images" / "2.jpg")
    asked, found = "<query> Who owned it? </query>", "<think>x</think>\n<search>a</search>"
    steps = [
        {"image_path": "1.jpg", "problem": asked, "solution": "<search> owner of it </search>"},
        {"image_path": "2.jpg", "problem": asked, "solution": "<search>another</search>"},
        {"image_path": "1.jpg", "problem": asked + found, "solution": "<search>his son</search>"},
        {"image_path": "1.jpg", "problem": asked + found, "solution": "<answer> Busch </answer>"},
        {
            "image_path": "2.jpg",
            "problem": f"Where?\n{found}",
            "solution": "<answer>There</answer>",
        },
        [],
    ]
    (tmp_path / "rft_agent_search_20.json").write_text(json.dumps(steps))
    source = MatSearch(tmp_path)
    first, second = source[0], source[1]
    assert (first.id, first.question) == ("mat-search-train-1", "Who owned it?")
    assert first.answers == ("Busch",)
    assert first.ground_truth == SearchTruth(queries=("owner of it", "his son"), split="train")
    assert (second.question, second.answers) == ("Where?", ("There",))
    problems = [(problem.row, problem.problem[:9]) for problem in source.problems]
    assert problems == [(6, "expected "), (2, "no answer")]
