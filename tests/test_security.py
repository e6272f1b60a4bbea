"""Tests that SECURITY.md claims what the attacks test, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.listeners import NONE
from tests.security import claims, table

TESTS = Path(__file__).parent

UNTESTED = {"NCCL"}
"""Components with listeners that no test can start: NCCL needs several GPUs."""


def calls(function: str) -> Iterator[ast.Call]:
    """Yield the calls of a function, by its name or as an attribute, in all test files."""
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        if function not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else None
                name = node.func.id if isinstance(node.func, ast.Name) else name
                if name == function:
                    yield node


def literals(function: str) -> set[str]:
    """Return the first arguments of these calls, which must be plain strings."""
    found = set()
    for call in calls(function):
        first = call.args[0]
        assert isinstance(first, ast.Constant), ast.unparse(call)
        found.add(str(first.value))
    return found


def test_claims_are_those_of_the_attacks() -> None:
    listed = claims()
    assert len(listed) == len(set(listed))
    assert literals("attack") == set(listed)


def test_claims_begin_with_their_area() -> None:
    areas = [claim.partition(": ")[0] for claim in claims()]
    assert all(area.isalpha() or " " in area for area in areas)
    assert areas == sorted(areas, key=areas.index), "claims of one area belong together"


def test_listeners_of_the_table_are_those_that_are_started() -> None:
    rows = table("component")
    assert all(len(row) == 6 for row in rows)
    components = {row[0] for row in rows}
    assert literals("require_listed") == components - UNTESTED


def test_components_without_a_listener_have_one_row() -> None:
    rows = table("component")
    silent = [row[0] for row in rows if row[2] == NONE]
    assert silent
    for component in silent:
        assert sum(row[0] == component for row in rows) == 1
