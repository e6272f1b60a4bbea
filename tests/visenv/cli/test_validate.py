"""Tests the output of `visenv validate` for good, flawed and broken environments."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from typing_extensions import override

from visenv.cli import main
from visenv.env import EpisodeLimits
from visenv.errors import ConfigurationError
from visenv.grammar import KeyValueGrammar
from visenv.testing import check_all, toy
from visenv.testing.contract import CHECKS
from visenv.testing.survival import EXAMPLES
from visenv.testing.validation import CheckResult, ValidationReport, validate
from visenv.types import Message

pytestmark = pytest.mark.component("hypothesis")

TOY = "visenv.testing.toy:make"


class ToyWith(toy.Adder):
    """Wraps the toy environment; subclasses add flaws."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(
            source=toy.Sums(),
            grammar=KeyValueGrammar(),
            tools=[toy.Add()],
            limits=EpisodeLimits(turns=4),
            render_mode=render_mode,
        )


class RaisesOnLongText(ToyWith):
    @override
    def step(self, action: str) -> Any:
        if len(action) > 10_000:
            raise ValueError("too\nlong")
        return super().step(action)


class RaisesOnReset(ToyWith):
    @override
    def reset(self, **_: Any) -> Any:
        raise KeyError("sample")


class HiddenState(ToyWith):
    """Shows the same question in each episode; only the tool tells the numbers."""

    @override
    def initial_messages(self) -> list[Message]:
        return [Message("user", ("Add the hidden numbers.",))]


class NeverSolved(ToyWith):
    @override
    def task_score(self) -> float:
        return 0.5


def register(env: Any) -> str:
    env_id = f"visenv-testing/{env.__name__}Validated-v0"
    if env_id not in gym.registry:
        gym.register(env_id, env, order_enforce=False, disable_env_checker=True)
    return env_id


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the printed JSON; fail if it contains NaN or infinity, which JSON does not have."""
    text = capsys.readouterr().out
    report: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
    return report


@pytest.mark.slow
def test_validate_prints_every_check_and_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", TOY, "--hostile", "5"]) == 0
    said = capsys.readouterr().out
    for check in CHECKS:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        assert re.search(rf"^ *{name} +passed *$", said, re.MULTILINE)
    # 0.8 for the right sum and 0.2 for the tool; an empty turn gets neither.
    assert re.search(r"top reward +1\.000", said)
    assert re.search(r"mean reward, oracle +1\.000", said)
    assert re.search(r"mean reward, empty +0\.000", said)
    assert re.search(r"steps per second +\d+", said)


def test_validate_reports_each_check_when_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    env_id = register(HiddenState)
    main(["validate", env_id, "--hostile", "1", "--json"])
    said = capsys.readouterr()
    report = json.loads(said.out)
    lines = said.err.splitlines()
    for number, check in enumerate(report["checks"], start=1):
        result = "passed" if check["passed"] else "FAILED"
        start = f"{number}/{len(CHECKS)} {check['name'].replace('_', ' ')}: {result} in "
        assert lines[number - 1].startswith(start)
    # Episodes differ although all of them begin in the same way.
    passed = {check["name"]: check["passed"] for check in report["checks"]}
    assert passed["differs_across_seeds"]


@pytest.mark.slow
def test_validate_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", TOY, "--json", "--option", "turns=3", "--hostile", "7"]) == 0
    seven = printed(capsys)
    assert seven["environment"] == TOY
    assert seven["passed"] is True
    assert [check["name"] for check in seven["checks"]] == [
        check.__name__.removeprefix("check_") for check in CHECKS
    ]
    assert seven["mean_reward"].keys() == {"oracle", "random", "empty"}
    assert main(["validate", TOY, "--json", "--option", "turns=3", "--hostile", "9"]) == 0
    assert printed(capsys)["hostile_texts"] == seven["hostile_texts"] + 2


def test_validate_reports_a_flaw_runs_the_other_checks_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    env_id = register(RaisesOnLongText)
    assert main(["validate", env_id, "--hostile", "1"]) == 1
    said = capsys.readouterr()
    flat = " ".join(said.out.split())
    assert "FAILED: The text 'one megabyte': expected no exception, saw ValueError" in flat
    assert re.search(r"random turns rarely reach the top +passed", said.out)
    assert re.search(r"mean reward, oracle +1\.000", said.out)
    # The environment is registered by its class, which JSON cannot represent: two more flaws.
    assert re.search(rf"visenv: 4 of {len(CHECKS)} checks of {env_id} failed: ", said.err)
    assert "survives_hostile_text" in said.err


@pytest.mark.slow
def test_validate_reports_an_oracle_that_does_not_reach_the_top(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["validate", register(NeverSolved), "--hostile", "1", "--json"]) == 1
    report = printed(capsys)
    problems = {check["name"]: check["problem"] for check in report["checks"]}
    assert "Expected the outcome 1 of the oracle, saw 0.5" in problems["oracle_gets_the_top_reward"]
    assert report["passed"] is False


def test_validate_survives_an_environment_that_cannot_be_reset(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["validate", register(RaisesOnReset), "--hostile", "1", "--json"]) == 1
    report = printed(capsys)
    assert not any(check["passed"] for check in report["checks"])
    problems = {check["name"]: check["problem"] for check in report["checks"]}
    assert problems["survives_hostile_text"].startswith("KeyError: 'sample' (test_validate.py, ")
    assert report["top_reward"] is report["steps_per_second"] is None


@pytest.mark.slow
def test_validate_calls_back_after_each_check() -> None:
    seen: list[CheckResult] = []
    report = validate(toy.make, 1, seen.append)
    assert isinstance(report, ValidationReport)
    assert list(report.checks) == seen
    # Made without gym.make the environment has no spec, and cannot be rebuilt or rescored.
    assert "rebuilds_from_json" in [check.name for check in report.failed]


@pytest.mark.parametrize("words", [("--hostile", "0"), ("--hostile", "-1")])
def test_validate_refuses_too_few_texts(
    words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", TOY, *words]) == 1
    assert "--hostile must be at least 1" in capsys.readouterr().err


def test_validate_without_hypothesis_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    assert main(["validate", TOY]) == 1
    said = capsys.readouterr()
    assert "needs the package 'hypothesis': pip install 'visenv[validate]'" in said.err
    assert (said.out, said.err.count("\n")) == ("", 1)
    with pytest.raises(ConfigurationError, match=r"pip install 'visenv\[validate\]'"):
        check_all(toy.make)


@pytest.mark.slow
def test_validate_writes_nothing_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["validate", TOY, "--hostile", str(EXAMPLES)]) == 0
    assert list(tmp_path.iterdir()) == []
