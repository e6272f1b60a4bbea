"""Tests that a bug in a user's code stops a run at once, with a sentence that names it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.visenv.rollout import broken_code
from visenv.cli import main
from visenv.errors import CodeError, EpisodeError
from visenv.evaluation.summary import summarize
from visenv.policies.oracle import OraclePolicy
from visenv.rollout import Collector, ProcessExecutor, ThreadExecutor
from visenv.testing import toy
from visenv.types import Failure
from visenv.user_code import bug_in

FILE = Path(broken_code.__file__)
HERE = "tests.visenv.rollout.broken_code"


def line_of(bug: str) -> int:
    lines = FILE.read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# LINE {bug}")]
    return found


BUGS = [
    ("with_term", "The reward term 'color' has a bug: AttributeError", "term", "missing"),
    ("with_late_term", "The reward term 'color' has a bug: AttributeError", "term", "missing"),
    ("with_combine", "The function lookup has a bug: KeyError", "combine", "lookup"),
    ("with_hook", "The environment BrokenHook has a bug: Index", "hook", "initial_messages"),
    ("with_wrapper", "The environment BrokenWrapper has a bug: IndexError", "wrapper", "step"),
    ("with_tool", "The tool 'add' has a bug: NotImplementedError: later", "tool", "call"),
    ("with_source", "The data source BrokenSource has a bug: AssertionError", "source", "sample"),
]


@pytest.mark.parametrize(("make", "start", "bug", "function"), BUGS)
@pytest.mark.parametrize("executor", [None, ThreadExecutor])
def test_bug_stops_the_first_episode(
    make: str, start: str, bug: str, function: str, executor: Any, caplog: pytest.LogCaptureFixture
) -> None:
    runs = None if executor is None else executor()
    collector = Collector(
        getattr(broken_code, make), OraclePolicy(), concurrency=1, executor=runs, retries=3
    )
    with pytest.raises(CodeError) as caught:
        collector.groups(range(4))
    collector.close()
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(f" ({FILE}, line {line_of(bug)}, in {function}).")
    assert "is replaced" not in caplog.text
    assert collector.stats.take()["retries"] == 0


def test_bug_in_another_process_stops_the_run() -> None:
    executor = ProcessExecutor()
    collector = Collector(broken_code.with_term, OraclePolicy(), executor=executor, retries=1)
    with pytest.raises(CodeError, match=r"The reward term 'color' has a bug.*broken_code\.py"):
        collector.groups([0])
    collector.close()


def test_bug_of_a_policy_is_raised_and_described() -> None:
    collector = Collector(toy.make, broken_code.BrokenPolicy())
    with pytest.raises(AttributeError) as caught:
        collector.groups([0])
    collector.close()
    assert bug_in(caught.value) == (
        "The policy BrokenPolicy has a bug: AttributeError: 'BrokenPolicy' object has no attribute "
        f"'model' ({FILE}, line {line_of('policy')}, in respond)."
    )


class Flaky(gym.Wrapper[Any, Any, Any, Any]):
    """Fails as a simulator, a server or a file does."""

    errors: tuple[Exception, ...] = (
        *(RuntimeError("lost"), OSError("gone"), TimeoutError("late"), ConnectionError("refused")),
        json.JSONDecodeError("not JSON", "<html>", 0),
    )
    kind = 0

    @override
    def step(self, action: Any) -> Any:
        raise self.errors[self.kind]


@pytest.mark.parametrize("kind", range(len(Flaky.errors)))
def test_failure_of_the_outside_world_is_retried(kind: int) -> None:
    def make() -> Any:
        env = Flaky(toy.make())
        env.kind = kind
        return env

    collector = Collector(make, OraclePolicy(), retries=2)
    ((episode,),) = collector.groups([0])
    assert episode.status == "aborted"
    assert collector.stats.take()["retries"] == 2
    collector.close()


def test_bug_of_visenv_below_a_wrapper_of_a_user_is_not_one_of_the_wrapper(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Passing(gym.Wrapper[Any, Any, Any, Any]):
        @override
        def step(self, action: Any) -> Any:
            return super().step(action)

    # The code of the method is in a file of visenv: the toy environment.
    monkeypatch.setattr(toy.Adder, "metrics", lambda self: toy._correct(None, None))  # type: ignore[arg-type]
    env = Passing(toy.make())
    env.reset(seed=0)
    with pytest.raises(AttributeError) as caught:
        env.step("<answer>1</answer>")
    assert bug_in(caught.value) == "" or "Passing" not in bug_in(caught.value)
    failure = Failure.of(caught.value)
    assert (failure.source, failure.name) == ("environment", "AttributeError")


@pytest.mark.parametrize("command", ["eval", "rollout"])
def test_commands_print_the_sentence_and_fail(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, f"{HERE}:with_term", "--out", str(tmp_path / "a")]) == 1
    said = capsys.readouterr().err
    assert "visenv: The reward term 'color' has a bug: AttributeError: 'Sample' object" in said
    assert "Traceback" not in said
    words = ["--policy", f"{HERE}:BrokenPolicy", "--out", str(tmp_path / "b")]
    assert main([command, "visenv.testing.toy:make", *words]) == 1
    assert "visenv: The policy BrokenPolicy has a bug" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["eval", "rollout"])
def test_reward_that_is_no_number_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, f"{HERE}:with_nan", "--out", str(tmp_path / "a")]) == 1
    assert "has the value nan of the term 'unknown'" in capsys.readouterr().err


def test_summary_refuses_a_metric_that_is_no_number() -> None:
    collector = Collector(toy.make, OraclePolicy())
    ((episode,),) = collector.groups([0])
    collector.close()
    with pytest.raises(EpisodeError, match="the value inf of the metric 'steps'"):
        summarize([replace(episode, metrics={"steps": float("inf")})])
