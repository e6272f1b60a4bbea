"""Tests the difficulty filter with a scripted policy: means, thresholds, asking and playing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from typing_extensions import override

from visenv.curation.difficulty import (
    ARM_THINKER,
    GROUNDLIGHT,
    AskDifficulty,
    DifficultyConfig,
    PlayDifficulty,
    SourceSubset,
)
from visenv.curation.journal import CurationJournal, RowOutcome
from visenv.curation.lines import JsonLines
from visenv.curation.places import row_lines, seed_lines
from visenv.curation.step import CurationStep, journal_path
from visenv.errors import ConfigurationError, DataError, PolicyError
from visenv.makers import env_maker
from visenv.policies.oracle import OraclePolicy
from visenv.policies.scripted import ScriptedPolicy, ScriptedSession
from visenv.rewards.vqa import vqa_score
from visenv.types import Image, Message, Reply, Sample, Sampling, TurnRequest

ANSWERS = {  # the replies of the policy to each question, in order
    "easy": ["cat"] * 8,
    "half": ["cat", "dog"] * 4,
    "hard": ["dog"] * 7 + ["cat"],
}


class Questions:
    """Holds three questions whose answer is "cat"; one row may be unreadable."""

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
    """Replies with the next answer to a question, and records all requests."""

    def __init__(self, failing: str = "") -> None:
        super().__init__(self.say)
        self.failing = failing
        self.asked: Counter[str] = Counter()
        self.requests: list[tuple[TurnRequest, Sampling]] = []
        self.shown: list[Message] = []

    @override
    async def respond(
        self, session: ScriptedSession, request: TurnRequest, sampling: Sampling
    ) -> Reply:
        self.requests.append((request, sampling))
        return await super().respond(session, request, sampling)

    def say(self, messages: Sequence[Message], request: TurnRequest) -> str:
        (message,) = messages
        self.shown.append(message)
        question = str(message.parts[-1]).split("\n")[0]
        if question == self.failing:
            raise PolicyError("the server is down")
        self.asked[question] += 1
        return f" {ANSWERS[question][(self.asked[question] - 1) % 8]}\n"


def outcomes(step: CurationStep, out: Path) -> list[RowOutcome]:
    journal = CurationJournal(journal_path(out), step.name, step.settings())
    found = [journal.outcome(line) for line in row_lines(Questions())]
    journal.close()
    return found


def ask(out: Path, policy: Answering, source: Questions | None = None, **options: Any) -> list[int]:
    """Return the indices of the rows that the filter keeps."""
    source = source or Questions()
    AskDifficulty(source, policy, **options).run(row_lines(source), out)
    return [line.row["index"] for line in JsonLines(out)]


def test_groundlights_filter(tmp_path: Path) -> None:
    out = tmp_path / "hard.jsonl"
    policy = Answering()
    step = AskDifficulty(Questions(), policy)
    account = step.run(row_lines(Questions()), out)
    assert account == (3, 1, {"easy": 2}, {}, 1)
    found = outcomes(step, out)
    assert [each.detail["mean"] for each in found] == [1.0, 0.5, 0.125]  # 8, 4 and 1 of 8 are right
    assert [each.status for each in found] == ["dropped", "dropped", "kept"]  # below 0.5
    assert sorted(found[2].detail["scores"]) == [0.0] * 7 + [1.0]
    assert Counter(found[2].detail["answers"]) == {"dog": 7, "cat": 1}
    assert policy.asked == {"easy": 8, "half": 8, "hard": 8}
    assert [line.row for line in JsonLines(out)] == [{"id": "row-2", "index": 2, "mean": 0.125}]


def test_public_code_keeps_the_threshold_too(tmp_path: Path) -> None:
    difficulty = DifficultyConfig(inclusive=True)
    assert ask(tmp_path / "hard.jsonl", Answering(), difficulty=difficulty) == [1, 2]


def test_arm_thinker_drops_what_is_right_five_times_of_five() -> None:
    row = {"id": "a"}
    assert ARM_THINKER.samples == 5
    assert ARM_THINKER.outcome(row, [1.0] * 5).status == "dropped"
    # 4 / 5 = 0.8 is below 1
    assert ARM_THINKER.outcome(row, [1.0, 1.0, 0.0, 1.0, 1.0]).rows == ({"id": "a", "mean": 0.8},)
    assert ARM_THINKER.outcome(row, [0.0] * 5).status == "kept"


@pytest.mark.parametrize(
    "options",
    [{"samples": 0}, {"max_tokens": 0}, {"threshold": 1.1}, {"temperature": float("nan")}],
    ids=str,
)
def test_values_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="Expected"):
        DifficultyConfig(**options)


def test_difficulty_asks_each_question_straight(tmp_path: Path) -> None:
    policy = Answering()
    ask(tmp_path / "hard.jsonl", policy)
    assert {each for each, _ in policy.requests} == {TurnRequest(max_tokens=10)}
    assert {(each.temperature, each.max_tokens) for _, each in policy.requests} == {(1.0, 10)}
    assert len({each.seed for _, each in policy.requests}) == 24  # every reply has its own seed
    assert policy.shown[0].role == "user"
    assert policy.shown[0].images[0].size == (8, 4)


def test_large_images_are_shrunk(tmp_path: Path) -> None:
    policy = Answering()
    ask(tmp_path / "hard.jsonl", policy, Questions(width=64), view_side=16)
    assert policy.shown[0].images[0].size == (16, 1)


def test_scorer_of_ones_own(tmp_path: Path) -> None:
    assert ask(tmp_path / "hard.jsonl", Answering(), score=lambda answer, _: 0.0) == [0, 1, 2]


def test_row_that_cannot_be_read_is_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "hard.jsonl"
    account = AskDifficulty(Questions(broken=1), Answering()).run(row_lines(Questions()), out)
    assert account == (3, 1, {"easy": 1}, {"cannot be read": 1}, 1)
    policy = Answering()
    account = AskDifficulty(Questions(), policy).run(row_lines(Questions()), out)
    assert account == (3, 1, {"easy": 2}, {}, 1)
    assert policy.asked == {"half": 8}  # the only question asked


def test_policy_that_fails_is_asked_again(tmp_path: Path) -> None:
    out = tmp_path / "hard.jsonl"
    step = AskDifficulty(Questions(), Answering(failing="hard"))
    assert step.run(row_lines(Questions()), out).failed == {"no reply": 1}
    assert outcomes(step, out)[2].detail["error"] == "PolicyError: the server is down"
    assert ask(out, Answering()) == [2]


def test_settings_that_differ_need_another_file(tmp_path: Path) -> None:
    ask(tmp_path / "hard.jsonl", Answering())
    with pytest.raises(ConfigurationError, match="Name another file"):
        ask(tmp_path / "hard.jsonl", Answering(), difficulty=DifficultyConfig(samples=4))


def test_place_that_is_not_there_fails(tmp_path: Path) -> None:
    step = AskDifficulty(Questions(), Answering())
    account = step.run(seed_lines(2), tmp_path / "hard.jsonl")
    assert account.failed == {"cannot be read": 2}


def test_subset() -> None:
    subset = SourceSubset(Questions(), [2, 0])
    assert [subset[index].id for index in range(len(subset))] == ["s2", "s0"]
    assert subset.score("cat", subset[0]) == 1.0


# ---------------------------------------------------------------------------- playing

ENV = "visenv/ZoomVQA-v0"


@pytest.mark.component("opencv")
def test_sample_that_is_always_right_is_dropped_and_one_that_never_is_kept(tmp_path: Path) -> None:
    make_env = env_maker(ENV, ["preset=tiny"])
    right = PlayDifficulty(make_env, OraclePolicy())
    account = right.run(seed_lines(3), tmp_path / "right.jsonl")
    right.close()
    assert account == (3, 0, {"easy": 3}, {}, 0)
    wrong = PlayDifficulty(make_env, OraclePolicy(expert_rate=0.0))  # answers "unknown"
    account = wrong.run(seed_lines(3, first=5), tmp_path / "wrong.jsonl")
    wrong.close()
    assert account == (3, 3, {}, {}, 3)
    assert [line.row for line in JsonLines(tmp_path / "wrong.jsonl")] == [
        {"id": f"seed-{seed}", "seed": seed, "mean": 0.0} for seed in (5, 6, 7)
    ]


@pytest.mark.component("opencv")
def test_tries_are_members_of_one_group(tmp_path: Path) -> None:
    """Check that an oracle that is right half of the time has right and wrong tries in a group."""
    step = PlayDifficulty(env_maker(ENV, ["preset=tiny"]), OraclePolicy(expert_rate=0.5))
    step.run(seed_lines(4), tmp_path / "mixed.jsonl")
    step.close()
    means = [line.row["mean"] for line in JsonLines(tmp_path / "mixed.jsonl")]
    assert means
    assert all(mean in (0.0, 0.2, 0.4, 0.6, 0.8) for mean in means)
    assert any(0 < mean < 1 for mean in means)


@pytest.mark.component("opencv")
def test_unknown_metric_and_an_aborted_episode_fail_the_row(tmp_path: Path) -> None:
    make_env = env_maker(ENV, ["preset=tiny"])
    step = PlayDifficulty(make_env, OraclePolicy(), metric="accurcy")
    assert step.run(seed_lines(1), tmp_path / "a.jsonl").failed == {"cannot be read": 1}
    step.close()
    silent = PlayDifficulty(make_env, ScriptedPolicy([]))
    assert silent.run(seed_lines(1), tmp_path / "b.jsonl").failed == {"aborted": 1}
    silent.close()


def test_papers_settings() -> None:
    assert (GROUNDLIGHT.samples, GROUNDLIGHT.max_tokens, GROUNDLIGHT.threshold) == (8, 10, 0.5)
    assert (ARM_THINKER.samples, ARM_THINKER.threshold, ARM_THINKER.inclusive) == (5, 1.0, False)
