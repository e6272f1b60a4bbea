"""Defines the base class of dialects: the numbered actions of an episode and their feedback."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ..world.house import FurnishedHouse
from ..world.planner import Operation, apply
from ..world.state import OK, HouseState


class Action(NamedTuple):
    """Describes one of the numbered actions.

    Attributes:
        name: The name of the action in prompts, for example ``"pick up the apple"``.
        verb: The verb of the operation (`visenv.envs.embodied.world.planner`).
        object: The name of a fixture or object, or, if `by_kind`, a type of objects.
        by_kind: Whether `object` is a type, so that the state determines the object.
    """

    name: str
    verb: str
    object: str = ""
    by_kind: bool = False


class ActionOutcome(NamedTuple):
    """Holds the result of an action: whether it was valid, and the feedback for the policy."""

    ok: bool
    feedback: str


class Dialect(ABC):
    """Defines the actions of a house in the words of one benchmark.

    Args:
        house: The house of the episode.

    Attributes:
        latches_progress: Whether a condition still counts if it was met only before.
        rooms: Number of rooms of its houses; 0 if it works with any house.
        fixtures: The types of fixtures of its houses; empty for all.
        types: The types of objects of its tasks; empty for all.
        open_at_first: Types of fixtures that are open at the beginning.
        actions: The numbered actions; the id of an action is its index.
    """

    name: ClassVar[str]
    latches_progress: ClassVar[bool]
    rooms: ClassVar[int] = 0
    fixtures: ClassVar[Sequence[str]] = ()
    types: ClassVar[Sequence[str]] = ()
    open_at_first: ClassVar[Sequence[str]] = ()

    def __init__(self, house: FurnishedHouse) -> None:
        self.house = house
        self.actions: Sequence[Action] = tuple(self.make_actions())
        self.names = tuple(action.name for action in self.actions)
        self._ids = {
            (action.verb, action.object): index for index, action in enumerate(self.actions)
        }

    @abstractmethod
    def make_actions(self) -> list[Action]:
        """Return the numbered actions."""

    @abstractmethod
    def explain(self, state: HouseState, action: Action, code: str) -> str:
        """Return the feedback about an action.

        Args:
            state: The state after the action.
            action: The action that was executed or refused.
            code: `OK`, or the code of the rule that forbids it.
        """

    def perform(self, state: HouseState, index: int) -> ActionOutcome:
        """Carry out the action with this id."""
        action = self.actions[index]
        target = self._object_of(state, action)
        code = "not_here" if target is None else apply(state, Operation(action.verb, target))
        return ActionOutcome(code == OK, self.explain(state, action, code))

    def id_of(self, state: HouseState, operation: Operation) -> int:
        """Return the id of the action that carries out an operation.

        Raises:
            KeyError: If the dialect has no such action.
        """
        verb, name = operation
        if verb in ("pick", "slice"):
            name = self.house.items[name].kind
        return self._ids[verb, self.written_object(state, verb, name)]

    def id_by_object(self, verb: str, name: str) -> int:
        """Return the id of the action with this verb and object.

        Raises:
            KeyError: If the dialect has no such action.
        """
        return self._ids[verb, name]

    def written_object(self, state: HouseState, verb: str, name: str) -> str:
        """Return the object of the action for an operation on `name`."""
        return name

    def _object_of(self, state: HouseState, action: Action) -> str | None:
        """Return the object that an action refers to, or None if there is none within reach."""
        if action.verb == "put" and not action.object:
            return state.target
        if not action.by_kind:
            return action.object
        near = self.within_reach(state, action.object)
        preferred = [name for name in (state.found, state.focus) if name in near]
        return preferred[0] if preferred else near[0] if near else self._hidden(state, action)

    def _hidden(self, state: HouseState, action: Action) -> str | None:
        """Return the object that was found last if the action refers to it, or None."""
        items = self.house.items
        found = state.found
        is_meant = found in items and items[found].kind == action.object and found != state.held
        return found if is_meant and state.fixture_of(found) == state.at else None

    def within_reach(self, state: HouseState, kind: str) -> list[str]:
        """Return the objects of a type that can be used from the position of the agent."""
        if not state.at:
            return []
        near = [
            name
            for name in self.house.of_kind(kind)
            if state.fixture_of(name) == state.at and not state.is_shut_in(name)
        ]
        return sorted(near, key=lambda name: state.places[name])


def kinds_of(house: FurnishedHouse) -> list[str]:
    """Return the types of the objects of a house, in alphabetical order."""
    return sorted({each.kind for each in house.items.values()})
