"""Tests rules, which replace models."""

from __future__ import annotations

from typing import Any

import pytest

from tests.visenv.scorers.doubles import Echo
from visenv.errors import ConfigurationError, ServiceError
from visenv.scorers import Scorer
from visenv.scorers.backends.rules import RulesBackend

DOUBLE = "tests.visenv.scorers.doubles:double"


def test_rule_answers_and_is_its_own_model() -> None:
    scorer = Scorer("rules", function=DOUBLE)
    verdict = scorer.submit(Echo("ab")).result()
    assert (verdict.value, verdict.model) == ("abab", DOUBLE)
    assert scorer == Scorer.parse(f"rules:{DOUBLE}")


@pytest.mark.parametrize("deterministic", [False, True])
def test_rule_gives_the_same_in_any_batch(deterministic: bool) -> None:
    scorer = Scorer("rules", function=DOUBLE, deterministic=deterministic)
    futures = [scorer.submit(Echo(number / 7)) for number in range(300)]
    found = [future.result().value for future in futures]
    assert found == [2 * (number / 7) for number in range(300)]


def test_rule_that_fails_fails_its_own_request(tag: str) -> None:
    scorer = Scorer("rules", function=DOUBLE, max_delay=0.1)
    bad, good = scorer.submit(Echo("error")), scorer.submit(Echo("b"))
    assert good.result().value == "bb"
    with pytest.raises(ServiceError, match="a bug in the model"):
        bad.result()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("tests.visenv.scorers.doubles:nothing", "there is no 'nothing'"),
        ("tests.visenv.scorers.doubles:NOT_CALLABLE", "is not a function"),
        ("no_such_module:f", "no_such_module"),
    ],
)
def test_function_that_is_not_there_is_refused(function: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Scorer("rules", function=function).submit(Echo(1))


def test_version_of_a_rule_is_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(request: Any) -> Any:
        return request

    one = RulesBackend(DOUBLE)
    other = RulesBackend(DOUBLE)
    assert one.version == other.version != ""
    other._function = changed
    assert other.version not in ("", one.version)
    monkeypatch.setattr(other, "_function", len)
    assert other.version == ""
