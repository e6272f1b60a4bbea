"""Tests that SECURITY.md claims what the attacks test, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.listeners import NONE
from tests.security import ClaimCounter, claims, table

TESTS = Path(__file__).parent

UNTESTED = {"NCCL"}
"""Components with listeners that no test can start: NCCL needs several GPUs."""


def literals(function: str) -> set[str]:
    """Return the first arguments of a function's calls in all test files.

    Args:
        function: The name as it is written in the calls. The arguments must be plain strings.
    """
    found = set()
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        if f"{function}(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
                first = node.args[0]
                assert isinstance(first, ast.Constant), f"{path}: {ast.unparse(node)}"
                found.add(str(first.value))
    return found


def test_claims_are_those_of_the_attacks() -> None:
    listed = claims()
    assert len(listed) == len(set(listed))
    assert literals("pytest.mark.attack") == set(listed)


def test_claims_begin_with_their_area() -> None:
    areas = [claim.partition(": ")[0] for claim in claims()]
    assert all(area.isalpha() or " " in area for area in areas)
    assert areas == sorted(areas, key=areas.index), "claims of one area belong together"


def test_listeners_of_the_table_are_those_that_are_started() -> None:
    rows = table("component")
    assert all(len(row) == 6 for row in rows)
    components = {row[0] for row in rows}
    assert literals("require_listed") == components - UNTESTED


def test_claim_without_a_test_that_passed_is_found() -> None:
    counter = ClaimCounter()
    first, second, *_ = claims()
    for claim, when, outcome in (
        (first, "call", "passed"),
        (second, "setup", "skipped"),
        ("an area: a claim without a row", "call", "failed"),
    ):
        report: Any = SimpleNamespace(
            user_properties=[("attack", claim)], when=when, outcome=outcome
        )
        counter.pytest_runtest_logreport(report)
    whole: Any = SimpleNamespace(args_source=pytest.Config.ArgsSource.TESTPATHS)
    missing = counter.without_test(whole)
    assert missing == [*claims()[1:], "an area: a claim without a row"]
    part: Any = SimpleNamespace(args_source=pytest.Config.ArgsSource.ARGS)
    assert counter.without_test(part) == [second, "an area: a claim without a row"]


def test_components_without_a_listener_have_one_row() -> None:
    rows = table("component")
    silent = [row[0] for row in rows if row[2] == NONE]
    assert silent
    for component in silent:
        assert sum(row[0] == component for row in rows) == 1
