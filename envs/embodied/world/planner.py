"""Plans operations that reach a goal from any state, for the oracle and to prove solvability.

Operations are pairs ``(verb, name)``: ``go_to``, ``pick``, ``put``, ``open_up``, ``close_up``,
``turn_on``, ``turn_off`` and ``slice``. A dialect translates them to actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .goals import Clause, Fact, Goal, is_met, values_of
from .state import OK, HouseState

_ORDER = ("sliced", "clean", "hot", "cold", "in", "within", "closed", "open", "held", "on")
"""Order in which the literals of a clause are reached."""


class Operation(NamedTuple):
    """Describes an operation by its verb and the name of an object or fixture."""

    verb: str
    name: str


class PlanError(Exception):
    """Raised when the planner finds no plan."""


def apply(state: HouseState, operation: Operation) -> str:
    """Apply an operation; return `OK` or the code of the rule that forbids it."""
    verb, name = operation
    if verb in ("turn_on", "turn_off"):
        return state.turn(name, verb == "turn_on")
    if verb == "drop":
        return state.drop()
    code: str = getattr(state, verb)(name)
    return code


def plan(state: HouseState, goal: Goal) -> list[Operation]:
    """Return operations that reach the conditions of a goal.

    Args:
        state: The current state, which is not changed.
        goal: The goal. Guards are ignored, because a violated guard cannot be repaired.

    Raises:
        PlanError: If no plan is found.
    """
    planner = _Planner(state.copy())
    for clause in sorted(goal.conditions, key=lambda each: -len(each.literals)):
        planner.reach(clause)
    if not all(is_met(planner.state, clause) for clause in goal.conditions):
        raise PlanError("The conditions of the goal exclude one another.")
    return planner.operations


class _Planner:
    """Plans on a copy of the state, and records the operations."""

    def __init__(self, state: HouseState) -> None:
        self.state = state
        self.house = state.house
        self.operations: list[Operation] = []

    def reach(self, clause: Clause) -> None:
        """Plan the actions that make one condition true."""
        if is_met(self.state, clause):
            return
        done = {values[0] for values in values_of(self.state, clause)}
        waiting = [name for name in clause.domains[0] if name not in done]
        needed = clause.count - len(done) if clause.quantifier == "exists" else len(waiting)
        waiting.sort(key=self._effort)
        if len(waiting) < needed:
            raise PlanError("There are too few objects.")
        for name in waiting[:needed]:
            self._reach_all(clause, name)

    def _effort(self, name: str) -> int:
        if name in self.house.fixtures or name == self.state.held:
            return 0
        return 2 if self.state.is_shut_in(name) else 1

    def _reach_all(self, clause: Clause, first: str) -> None:
        """Reach the literals for one value of ``?0``, with the easiest value of ``?1``."""
        values: tuple[str, ...] = (first,)
        if len(clause.domains) > 1:
            others = [name for name in clause.domains[1] if name != first]
            values = (first, min(others, key=self._unfit))
        facts = [
            Fact(fact.predicate, tuple(values[int(name[1:])] if name[0] == "?" else name
                                       for name in fact.arguments))
            for fact in clause.literals
        ]  # fmt: skip
        for fact in sorted(facts, key=self._rank):
            self._make_true(fact)

    def _unfit(self, name: str) -> int:
        full = self.state.can_hold(name) and self.state.free_slot(name) is None
        return 10 * full + self._effort(name)

    def _rank(self, fact: Fact) -> tuple[int, bool]:
        # Objects that are carried inside another object are put there before it is moved.
        into_fixture = fact.predicate == "in" and fact.arguments[1] in self.house.fixtures
        return _ORDER.index(fact.predicate), into_fixture

    def _make_true(self, fact: Fact) -> None:
        name = fact.arguments[0]
        match fact.predicate:
            case "sliced":
                self._slice(name)
            case "clean":
                self._wash(name)
            case "hot":
                self._treat(name, "heat")
            case "cold":
                self._treat(name, "cool")
            case "in" | "within":
                self._bring(name, fact.arguments[1])
            case "held":
                self._take(name)
            case "open" | "closed":
                self._move_door(name, fact.predicate == "open")
            case "on":
                self._switch(name, True)

    def _do(self, verb: str, name: str = "") -> None:
        code = apply(self.state, Operation(verb, name))
        if code != OK:
            raise PlanError(f"{verb} {name}: {code}")
        self.operations.append(Operation(verb, name))

    def _go(self, name: str) -> None:
        if self.state.found != name or self.state.at != self.state.fixture_of(name):
            self._do("go_to", name)

    def _move_door(self, fixture: str, wants_open: bool) -> None:
        if (fixture in self.state.open) == wants_open:
            return
        if fixture in self.state.on and wants_open:
            self._switch(fixture, False)
        if self.state.at != fixture:
            self._do("go_to", fixture)
        self._do("open_up" if wants_open else "close_up", fixture)

    def _switch(self, fixture: str, on: bool) -> None:
        if (fixture in self.state.on) == on:
            return
        if self.state.at != self.state.fixture_of(fixture):
            self._do("go_to", fixture)
        if on and fixture in self.state.open:
            self._do("close_up", fixture)
        self._do("turn_on" if on else "turn_off", fixture)

    def _take(self, item: str) -> None:
        """Plan to have an object in hand."""
        if self.state.held == item:
            return
        if self.state.held:
            self._put_away()
        self._go(item)
        if self.state.is_shut_in(item):
            self._move_door(self.state.fixture_of(item), True)
        self._do("pick", item)

    def _put_away(self) -> None:
        """Plan to put the object in hand into the nearest receptacle with a free slot."""
        state, house = self.state, self.house
        options = [
            name
            for name, each in house.fixtures.items()
            if each.type.slots and state.free_slot(name) is not None
            and (not each.type.opening or name in state.open)
            and each.type.role not in ("wash", "heat")
        ]  # fmt: skip
        if not options:
            raise PlanError("There is no free place.")
        room = house.fixtures[state.at].room if state.at else 0
        nearest = min(
            options, key=lambda name: (name != state.at, house.fixtures[name].room != room)
        )
        self._bring_held(nearest)

    def _bring_held(self, holder: str) -> None:
        state = self.state
        if state.target != holder or state.at != state.fixture_of(holder):
            self._do("go_to", holder)
        fixture = state.fixture_of(holder)
        if holder in self.house.fixtures:
            if self.house.fixtures[fixture].type.opening:
                self._move_door(fixture, True)
        elif state.is_shut_in(holder):
            self._move_door(fixture, True)
            self._do("go_to", holder)
        self._do("put", holder)

    def _bring(self, item: str, holder: str) -> None:
        if self.state.holder_of(item) == holder:
            return
        self._take(item)
        self._bring_held(holder)

    def _slice(self, item: str) -> None:
        state = self.state
        if item in state.sliced:
            return
        knives = [name for name, each in self.house.items.items() if each.type.cuts]
        if not knives:
            raise PlanError("There is no knife.")
        if state.held not in knives:
            self._take(min(knives, key=self._effort))
        self._go(item)
        if state.is_shut_in(item):
            self._move_door(state.fixture_of(item), True)
        self._do("slice", item)
        self._put_away()

    def _wash(self, item: str) -> None:
        if item not in self.state.dirty:
            return
        self._take(item)
        sinks = [each for each in self.house.fixtures_with("wash")
                 if self.state.free_slot(each) is not None]  # fmt: skip
        if not sinks:
            raise PlanError("There is no free sink.")
        sink = self._closest(sinks)
        tap = self.house.tap_of(sink)
        self._bring_held(sink)
        if item in self.state.dirty:
            self._switch(tap, False)
            self._switch(tap, True)
        self._switch(tap, False)
        self._do("pick", item)

    def _treat(self, item: str, role: str) -> None:
        """Plan to heat or cool an object, and to take it in hand again."""
        if item in (self.state.hot if role == "heat" else self.state.cold):
            return
        self._take(item)
        options = [each for each in self.house.fixtures_with(role)
                   if self.house.fixtures[each].type.opening]  # fmt: skip
        if not options:
            raise PlanError(f"There is nothing to {role} with.")
        appliance = self._closest(options)
        self._bring_held(appliance)
        self._move_door(appliance, False)
        if role == "heat":
            self._switch(appliance, True)
            self._switch(appliance, False)
        self._move_door(appliance, True)
        self._do("pick", item)

    def _closest(self, names: Sequence[str]) -> str:
        at = self.state.at
        room = self.house.fixtures[at].room if at else 0
        return min(names, key=lambda name: self.house.fixtures[name].room != room)
