"""The difficulty filter with a scripted policy: means, the threshold, and going on after a stop."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from visenv.data.difficulty import Difficulty, Settings, Subset, measure_difficulty
from visenv.errors import ConfigurationError, DataError, PolicyError
from visenv.policies.scripted import ScriptedPolicy, ScriptedSession
from visenv.rewards.vqa import vqa_score
from visenv.types import Ask, Image, Message, Reply, Sample, Sampling

ANSWERS = {  # what the policy says to each question, in turn
    "easy": ["cat"] * 8,
    "half": ["cat", "dog"] * 4,
    "hard": ["dog"] * 7 + ["cat"],
}


class Questions:
    """Three questions whose answer is "cat"; a row may be unreadable."""

    def __init__(self, broken: int | None = None, width: int = 8) -> None:
        self.broken = broken
        self.width = width

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Sample:
        if index == self.broken:
            raise DataError("the image is torn")
        image = Image.from_pixels(np.zeros((4, self.width, 3), np.uint8))
        return Sample(f"s{index}", list(ANSWERS)[index], (image,), ("cat",))

    def score(self, answer: str, sample: Sample, compat: Literal["r1_vlm"] | None = None) -> float:
        return vqa_score(answer, sample.answers)


class Answering(ScriptedPolicy):
    """Says the next of a question's answers, and remembers what it was asked."""

    def __init__(self, failing: str = "") -> None:
        super().__init__(self.say)
        self.failing = failing
        self.asked: Counter[str] = Counter()
        self.asks: list[tuple[Ask, Sampling]] = []
        self.shown: list[Message] = []

    async def respond(self, session: ScriptedSession, ask: Ask, sampling: Sampling) -> Reply:
        self.asks.append((ask, sampling))
        return await super().respond(session, ask, sampling)

    def say(self, messages: Sequence[Message], ask: Ask) -> str:
        (message,) = messages
        self.shown.append(message)
        question = str(message.parts[-1]).split("\n")[0]
        if question == self.failing:
            raise PolicyError("the server is down")
        self.asked[question] += 1
        return f" {ANSWERS[question][(self.asked[question] - 1) % 8]}\n"


def kept(rows: Sequence[Difficulty]) -> list[str]:
    return [row.id for row in rows if row.kept]


def test_the_papers_filter(tmp_path: Path) -> None:
    policy = Answering()
    rows = measure_difficulty(Questions(), policy, tmp_path / "rows.jsonl")
    assert [row.mean for row in rows] == [1.0, 0.5, 0.125]  # 8/8, 4/8 and 1/8 right
    assert [row.reason for row in rows] == ["easy", "easy", "hard"]
    assert kept(rows) == ["s2"]  # below 0.5
    assert sorted(rows[2].scores) == [0.0] * 7 + [1.0]
    assert Counter(rows[2].answers) == {"dog": 7, "cat": 1}
    assert policy.asked == {"easy": 8, "half": 8, "hard": 8}


def test_the_public_code_keeps_the_threshold_too(tmp_path: Path) -> None:
    settings = Settings(inclusive=True)
    rows = measure_difficulty(Questions(), Answering(), tmp_path / "rows.jsonl", settings)
    assert kept(rows) == ["s1", "s2"]


def test_how_it_asks(tmp_path: Path) -> None:
    policy = Answering()
    measure_difficulty(Questions(), policy, tmp_path / "rows.jsonl")
    assert {ask for ask, _ in policy.asks} == {Ask(max_tokens=10)}
    assert {(each.temperature, each.max_tokens) for _, each in policy.asks} == {(1.0, 10)}
    assert len({each.seed for _, each in policy.asks}) == 24  # every draw has its own seed
    assert policy.shown[0].role == "user"
    assert policy.shown[0].images[0].size == (8, 4)


def test_large_images_are_shrunk(tmp_path: Path) -> None:
    policy = Answering()
    settings = Settings(samples=1, view_side=16)
    measure_difficulty(Questions(width=64), policy, tmp_path / "rows.jsonl", settings)
    assert policy.shown[0].images[0].size == (16, 1)


def test_a_scorer_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = measure_difficulty(Questions(), Answering(), path, score=lambda answer, _: 0.0)
    assert kept(rows) == ["s0", "s1", "s2"]


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"

    def stop(row: Difficulty) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_difficulty(Questions(), Answering(), path, concurrency=1, on_row=stop)
    assert len(path.read_text().splitlines()) == 2  # the settings, and the row that was measured
    with path.open("a") as file:
        file.write('{"index": 1, "id": "s')  # the run was killed while it wrote
    policy = Answering()
    seen: list[str] = []
    rows = measure_difficulty(Questions(), policy, path, on_row=lambda row: seen.append(row.id))
    assert sorted(seen) == ["s1", "s2"]
    assert policy.asked == {"half": 8, "hard": 8}
    again = Answering()
    assert measure_difficulty(Questions(), again, path) == rows
    assert not again.asked
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()[1:]] == ["s0", *seen]


def test_a_row_that_cannot_be_read_is_a_row_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = measure_difficulty(Questions(broken=1), Answering(), path)
    assert rows[1] == Difficulty(1, "", (), (), None, False, "DataError: the image is torn")
    assert kept(rows) == ["s2"]
    mended = measure_difficulty(Questions(), policy := Answering(), path)
    assert policy.asked == {"half": 8}  # asked again, and nothing else
    assert mended[1].mean == 0.5


def test_a_policy_that_fails_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = measure_difficulty(Questions(), Answering(failing="hard"), path)
    assert rows[2].reason == "PolicyError: the server is down"
    assert (rows[2].id, rows[2].scores, rows[2].kept) == ("s2", (), False)
    assert kept(measure_difficulty(Questions(), Answering(), path)) == ["s2"]


def test_other_settings_need_another_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    measure_difficulty(Questions(), Answering(), path)
    with pytest.raises(ConfigurationError, match="Name another file"):
        measure_difficulty(Questions(), Answering(), path, Settings(samples=4))


@pytest.mark.parametrize(
    "content",
    [
        "not json\n",
        "two lines\nof a letter",
        "no line end",
        '{"settings": {}}\nx\n',
        "{}\n[1]\n",
        "{}\n{}\n",
    ],
)
def test_a_file_of_something_else(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match="not a file of difficulties"):
        measure_difficulty(Questions(), Answering(), path)
    assert path.read_text() == content


def test_subset() -> None:
    subset = Subset(Questions(), [2, 0])
    assert [subset[index].id for index in range(len(subset))] == ["s2", "s0"]
    assert subset.score("cat", subset[0]) == 1.0
