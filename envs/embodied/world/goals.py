"""Defines goals as conjunctions of named predicates with EXISTS and FORALL.

A `Goal` has conditions, whose satisfied share is the progress, and guards, which must also hold for
success but do not count for progress (look-alikes that must never be put at the destination). Each
is a `Clause` with one or two quantified variables, written ``?0`` and ``?1``, and literals.
`LookalikeSweep` notices that a guard was violated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Literal

from pydantic import Strict
from pydantic.dataclasses import dataclass

from visenv.types.ground_truth import STRICT, Texts

from .state import HouseState

Names = Annotated[tuple[Texts, ...], Strict(False)]

ARITIES: Mapping[str, int] = {
    "in": 2,
    "within": 2,
    "held": 1,
    "clean": 1,
    "hot": 1,
    "cold": 1,
    "sliced": 1,
    "open": 1,
    "closed": 1,
    "on": 1,
    "never_in": 2,
}
"""The predicates with their numbers of arguments.

``in``: an object is directly in or on a receptacle. ``within``: the same, or inside another object
that is. ``on``: a fixture is turned on. ``never_in``: an object was never put into a receptacle.
"""


@dataclass(frozen=True, slots=True, config=STRICT)
class Fact:
    """Represents a predicate with its arguments: names, or the variables ``?0`` and ``?1``."""

    predicate: str
    arguments: Texts


Facts = Annotated[tuple[Fact, ...], Strict(False)]


@dataclass(frozen=True, slots=True, config=STRICT)
class Clause:
    """Holds literals about quantified variables.

    Attributes:
        quantifier: ``"exists"``: for at least `count` values of ``?0`` there is a value of ``?1``
            such that all literals hold. ``"forall"``: for all values of ``?0`` there is a value of
            ``?1`` such that all literals hold.
        domains: The possible names of each variable.
        literals: The literals, all of which must hold.
        count: Required number of values of ``?0``.
    """

    quantifier: Literal["exists", "forall"]
    domains: Names
    literals: Facts
    count: int = 1


Clauses = Annotated[tuple[Clause, ...], Strict(False)]


@dataclass(frozen=True, slots=True, config=STRICT)
class Goal:
    """Holds the conditions and guards of a task."""

    conditions: Clauses
    guards: Clauses = ()


def holds(state: HouseState, fact: Fact, values: Sequence[str] = ()) -> bool:
    """Return whether a literal holds.

    Args:
        state: The state of the house.
        fact: The literal.
        values: The values of its variables.
    """
    names = [values[int(name[1:])] if name.startswith("?") else name for name in fact.arguments]
    match fact.predicate:
        case "in":
            return state.holder_of(names[0]) == names[1]
        case "within":
            return names[0] in state.all_contents(names[1])
        case "held":
            return state.held == names[0]
        case "clean":
            return names[0] not in state.dirty
        case "closed":
            return names[0] not in state.open
        case "never_in":
            return (names[0], names[1]) not in state.delivered
        case "hot" | "cold" | "sliced" | "open" | "on":
            return names[0] in getattr(state, fact.predicate)
    raise ValueError(f"There is no predicate {fact.predicate!r}; there are {', '.join(ARITIES)}.")


def values_of(state: HouseState, clause: Clause) -> list[tuple[str, ...]]:
    """Return the values of the variables for which all literals of a clause hold."""
    return [
        values
        for values in product(*clause.domains)
        if len({*values}) == len(values)
        and all(holds(state, fact, values) for fact in clause.literals)
    ]


def is_met(state: HouseState, clause: Clause) -> bool:
    """Return whether a clause holds."""
    found = {values[0] for values in values_of(state, clause)}
    if clause.quantifier == "forall":
        return found == {*clause.domains[0]}
    return len(found) >= clause.count


def is_reached(state: HouseState, goal: Goal) -> bool:
    """Return whether all conditions and guards hold."""
    return all(is_met(state, clause) for clause in (*goal.conditions, *goal.guards))


class Progress:
    """Computes the share of a goal's conditions that are met.

    Args:
        goal: The goal.
        latched: Whether a condition still counts if it was met only before (EB-Habitat), or must
            be met now (EB-ALFRED).
    """

    def __init__(self, goal: Goal, latched: bool) -> None:
        self.goal = goal
        self.latched = latched
        self.ever = [False] * len(goal.conditions)
        self.now = [False] * len(goal.conditions)

    def update(self, state: HouseState) -> list[int]:
        """Evaluate the state; return the indices of conditions that are met for the first time."""
        self.now = [is_met(state, clause) for clause in self.goal.conditions]
        new = [index for index, met in enumerate(self.now) if met and not self.ever[index]]
        self.ever = [before or met for before, met in zip(self.ever, self.now, strict=True)]
        return new

    @property
    def share(self) -> float:
        """Return the progress, 0 to 1."""
        counted = self.ever if self.latched else self.now
        return sum(counted) / len(counted)


class LookalikeSweep:
    """Notices that a policy tries look-alikes instead of finding the object of the task.

    A policy that does not look can deliver every look-alike, or wash all of them and deliver one.
    Both are a sweep: a guard is violated, or a look-alike that the policy has moved meets a
    condition of the object of the task that no look-alike met at the beginning.

    Args:
        goal: The goal; a sweep needs guards, whose first domain is the look-alikes.
        state: The state at the beginning.

    Attributes:
        seen: Whether there was a sweep.
    """

    def __init__(self, goal: Goal, state: HouseState) -> None:
        self.seen = False
        self._guards = goal.guards
        self._others = goal.guards[0].domains[0] if goal.guards else ()
        clauses = _of_lookalikes(goal) if goal.guards else []
        self._clauses = [clause for clause in clauses if not is_met(state, clause)]

    def update(self, state: HouseState) -> bool:
        """Evaluate the state; return whether there was a sweep."""
        self.seen = self.seen or not all(is_met(state, guard) for guard in self._guards)
        if self._clauses and not self.seen:
            moved = {item for item, _ in state.delivered}.intersection(self._others)
            self.seen = any(
                values[0] in moved
                for clause in self._clauses
                for values in values_of(state, clause)
            )
        return self.seen


def _of_lookalikes(goal: Goal) -> list[Clause]:
    """Return the conditions of the object of the task, as conditions of its look-alikes."""
    targets, others = goal.conditions[0].domains[0], goal.guards[0].domains[0]
    return [
        Clause(each.quantifier, (others, *each.domains[1:]), each.literals, each.count)
        for each in goal.conditions
        if each.domains[0] == targets
    ]


def with_target(goal: Goal, targets: Sequence[str], item: str) -> Goal:
    """Return the goal of a player that takes `item` for one of the targets, without guards."""
    conditions = tuple(
        Clause(
            clause.quantifier,
            tuple((item,) if domain == tuple(targets) else domain for domain in clause.domains),
            clause.literals,
            clause.count,
        )
        for clause in goal.conditions
    )
    return Goal(conditions)
