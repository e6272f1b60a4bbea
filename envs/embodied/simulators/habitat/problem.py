"""Writes the planning problem of an episode for habitat-lab: objects, goal and stages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from ...world.house import FurnishedHouse

DOMAIN = Path(__file__).parent / "configs/domain.yaml"
ROBOT = "robot_0"
"""habitat-lab's name of the first robot."""

Expression = dict[str, Any]


def write_problem(
    folder: Path, house: FurnishedHouse, goal: Mapping[str, Any]
) -> tuple[Path, Path]:
    """Write the domain with the types of a house, and the problem; return their paths.

    Args:
        folder: The folder of the files.
        house: The house whose fixtures and objects are the entities of the problem.
        goal: ``conditions`` and ``guards``, lists of clauses: ``quantifier``, ``domains``,
            ``literals`` (rows of predicate and arguments) and ``count``.
    """
    kinds = sorted({each.kind for each in house.items.values()})
    base = _domain()
    domain = {**base, "types": {**base["types"], "movable_entity_type": kinds}}
    stages = [expression(clause, house) for clause in goal["conditions"]]
    guards = [expression(clause, house) for clause in goal["guards"]]
    problem = {
        "objects": [*_objects(house)],
        "goal": _all([*stages, *guards]),
        "stage_goals": {f"condition_{index}": stage for index, stage in enumerate(stages)},
    }
    domain_file, problem_file = folder / "domain.yaml", folder / "problem.yaml"
    domain_file.write_text(json.dumps(domain), encoding="utf-8")  # JSON is YAML, too
    problem_file.write_text(json.dumps(problem), encoding="utf-8")
    return domain_file, problem_file


@lru_cache(maxsize=1)
def _domain() -> dict[str, Any]:
    """Return the domain without the types of a house."""
    domain: dict[str, Any] = yaml.safe_load(DOMAIN.read_text(encoding="utf-8"))
    return domain


def _objects(house: FurnishedHouse) -> list[dict[str, str]]:
    """Return the entities with their types, without faucets and lamps, which hold nothing."""
    places = [
        {
            "name": each.name,
            "expr_type": "art_receptacle_entity_type"
            if each.type.opening
            else "static_receptacle_entity_type",
        }
        for each in house.fixtures.values()
        if each.type.slots
    ]
    items = [{"name": each.name, "expr_type": each.kind} for each in house.items.values()]
    return [{"name": ROBOT, "expr_type": "robot_entity_type"}, *places, *items]


def expression(clause: Mapping[str, Any], house: FurnishedHouse) -> Expression:
    """Return a clause as a logical expression.

    If the domain of a variable contains all objects of a type, it becomes a quantifier over that
    type; otherwise it becomes AND or OR over its names.
    """
    first, *others = clause["domains"]
    literals = clause["literals"]
    kinds = {house.items[name].kind for name in first if name in house.items}
    is_type = len(kinds) == 1 and len(first) > 1 and {*first} == {*house.of_kind(min(kinds))}
    is_forall = clause["quantifier"] == "forall"
    if is_type and (is_forall or clause["count"] == 1):
        return {
            "expr_type": "AND",
            "quantifier": "FORALL" if is_forall else "EXISTS",
            "inputs": [{"name": "x", "expr_type": min(kinds)}],
            "sub_exprs": [_for_one("x", first, others, literals)],
        }
    if is_forall:
        return _all([_for_one(name, first, others, literals) for name in first])
    chosen = combinations(first, clause["count"])
    return _any([_all([_for_one(name, first, others, literals) for name in names])
                 for names in chosen])  # fmt: skip


def _for_one(
    name: str, first: Sequence[str], others: Sequence[Sequence[str]], literals: Sequence[Any]
) -> Expression:
    """Return the expression that all literals hold for a value of ``?0``, with some ``?1``."""
    if not others:
        return _all([_literal(each, (name,)) for each in literals])
    return _any([_all([_literal(each, (name, other)) for each in literals])
                 for other in others[0] if other != name])  # fmt: skip


def _literal(literal: Sequence[Any], values: Sequence[str]) -> str:
    predicate, arguments = literal
    names = [values[int(each[1:])] if each.startswith("?") else each for each in arguments]
    if predicate == "held":
        return f"holding({names[0]}, {ROBOT})"
    return f"{predicate}({', '.join(names)})"


def _all(parts: Sequence[Any]) -> Expression:
    return {"expr_type": "AND", "sub_exprs": [*parts]}


def _any(parts: Sequence[Any]) -> Expression:
    return {"expr_type": "OR", "sub_exprs": [*parts]}
