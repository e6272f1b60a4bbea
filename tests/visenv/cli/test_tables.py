"""Tests that a command whose every item failed exits with 1, and that one failure ends none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from visenv.cli import main
from visenv.cli.tables import check_not_all_failed
from visenv.episodes import read_episodes
from visenv.errors import PolicyError, ServiceError, VisenvError
from visenv.evaluation.suite import Suite, SuiteColumn
from visenv.policies.oracle import OraclePolicy
from visenv.policy import Session
from visenv.rewards import RewardTerm, RewardWrapper
from visenv.rollout.adapter import Env
from visenv.scorers import JsonScore, Judge, Scorer
from visenv.scorers.evaluation import JudgeItem
from visenv.testing import toy
from visenv.types import Reply, Sampling, TurnRequest

HERE = "tests.visenv.cli.test_tables"
TOY = "visenv.testing.toy:make"
SUITE = Suite("Toy", (SuiteColumn("Sums", TOY),))


class DeadServer(OraclePolicy):
    """Fails in every episode."""

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        raise PolicyError("HTTP 401: no key")


_seen: list[int] = []


class HalfDead(OraclePolicy):
    """Fails in every second episode."""

    @override
    def open(self, seed: int) -> Session:
        _seen.append(seed)
        if len(_seen) % 2:
            raise PolicyError("HTTP 500: busy")
        return super().open(seed)


def no_judge(context: Any) -> float:
    raise ServiceError("judge", "gone")


def unjudged() -> Env:
    return RewardWrapper(toy.make(), [RewardTerm("judged", 1.0, no_judge)])


def judge_of_some(request: Any) -> dict[str, str]:
    """Reply unreadably to every answer that is an odd number."""
    prompt = request.messages[-1].plain()
    answer = int(json.loads(prompt.partition("as one JSON string: ")[2].partition("\n")[0]))
    return {"text": "I would say so." if answer % 2 else '{"score": 1, "why": "equal"}'}


def mute(request: Any) -> dict[str, str]:
    return {"text": "no verdict"}


def ask_mute(scorer: Scorer) -> Callable[[JudgeItem], Any]:
    judge = Judge(scorer, "{answer}", JsonScore(), tries=1)
    return lambda item: judge.ask(answer=item.answer)


@pytest.mark.parametrize("command", ["eval", "rollout"])
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([TOY, "--policy", f"{HERE}:DeadServer"], "PolicyError: HTTP 401: no key"),
        ([f"{HERE}:unjudged"], "judge: gone"),
    ],
)
def test_command_fails_if_every_episode_was_aborted(
    command: str, words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = ["--episodes" if command == "eval" else "--groups", "3"]
    assert main([command, *words, *count, "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr()
    assert f"visenv: All 3 episodes were aborted. The first reason: {reason}" in said.err
    assert "aborted" in said.out  # the table was printed
    saved = tmp_path / "out" / "episodes.jsonl"
    assert len(list(read_episodes(saved))) == 3
    assert main(["eval", str(saved)]) == 1
    assert main(["rescore", str(saved), "--trust"]) == 1
    out = tmp_path / "chat" / "chat.jsonl"
    out.parent.mkdir()
    assert main(["data", "filter", str(saved), "--out", str(out)]) == 0  # dropped, not failed


def test_command_with_one_played_episode_does_not_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _seen.clear()
    words = ["--policy", f"{HERE}:HalfDead", "--episodes", "4", "--concurrency", "1"]
    assert main(["eval", TOY, *words, "--out", str(tmp_path)]) == 0
    row = json.loads((tmp_path / "summary.json").read_text())["rows"][0]
    assert (row["episodes"], row["aborted"], row["accuracy"][0]) == (4, 2, 0.5)
    assert "HTTP 500: busy" in capsys.readouterr().out


def test_unreadable_judge_aborts_one_episode(tmp_path: Path) -> None:
    words = ["--judge", f"rules:{HERE}:judge_of_some", "--episodes", "8", "--out", str(tmp_path)]
    assert main(["eval", TOY, *words]) == 0
    episodes = list(read_episodes(tmp_path / "episodes.jsonl"))
    odd = [episode for episode in episodes if int(episode.answers[0]) % 2]
    assert 0 < len(odd) < 8
    assert [each for each in episodes if each.status == "aborted"] == odd
    assert all("no usable reply" in each.failure.reason for each in odd if each.failure)
    row = json.loads((tmp_path / "summary.json").read_text())["rows"][0]
    assert (row["episodes"], row["aborted"]) == (8, len(odd))
    assert row["judge"][0] == row["accuracy"][0] == pytest.approx(1 - len(odd) / 8)


def test_judge_without_a_verdict_fails_judge_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = {"question": "q", "references": ["a"], "answer": "a", "truth": True}
    (tmp_path / "items.jsonl").write_text(json.dumps(item))
    words = ["--scorer", f"rules:{HERE}:mute", "--items", str(tmp_path / "items.jsonl")]
    assert main(["judge-check", f"{HERE}:ask_mute", *words]) == 1
    assert "requests got no verdict. The first reason: " in capsys.readouterr().err


def test_data_step_fails_if_every_row_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"no": "id"}\n[]\n')
    out = str(tmp_path / "x" / "chat.jsonl")
    assert main(["data", "export", str(tmp_path / "rows.jsonl"), "--out", out]) == 1
    said = capsys.readouterr()
    assert "failed: cannot be read, for example: rows.jsonl:1: it has no id" in said.out
    assert "All 2 rows failed. The first reason: cannot be read: rows.jsonl:1" in said.err


def test_suite_fails_if_every_episode_of_a_policy_was_aborted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = ["--row", "oracle", "--row", f"{HERE}:DeadServer"]
    assert main(["suite", f"{HERE}:SUITE", *rows, "--episodes", "2"]) == 1
    assert "All 2 episodes of 'tests." in capsys.readouterr().err


def test_no_item_is_no_failure() -> None:
    check_not_all_failed("rows failed", 0, 0, "")
    check_not_all_failed("rows failed", 2, 1, "a")
    with pytest.raises(VisenvError, match="All of 1 rows failed"):
        check_not_all_failed("rows failed", 1, 1, "")
