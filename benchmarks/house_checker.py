"""Checks goals of House without the rules of `visenv.envs.embodied.world`.

`reaches` replays the names of actions on plain dictionaries and decides whether the goal is reached
after the last one. It assumes that all actions are valid, as those of an oracle are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from visenv.envs.embodied.dialects.habitat import OBJECTS, RECEPTACLES, fixture_words
from visenv.envs.embodied.world.goals import Clause, Fact, Goal
from visenv.envs.embodied.world.house import FurnishedHouse


class Replay:
    """Replays a plan on objects and fixtures as plain dictionaries.

    Args:
        house: The house.

    Attributes:
        inside: The direct holder of each object; the object in hand is missing.
        facts: All other true facts, as ``(predicate, name)``.
        history: Every ``(object, receptacle)`` pair of an object that was put down.
    """

    def __init__(self, house: FurnishedHouse) -> None:
        self.house = house
        self.inside = {name: place[0] for name, place in house.places.items()}
        self.order = dict(house.places)
        self.facts: set[tuple[str, str]] = {("dirty", name) for name in house.dirty}
        self.history: set[tuple[str, str]] = set()
        self.hand = self.looked = self.latest = ""
        self.facts |= {("open", name) for name in house.open}
        self._by_word = {word: name for name, word in fixture_words(house).items()}
        self._by_word |= {skill: self._by_word[word] for skill, word in RECEPTACLES.items()
                          if word in self._by_word}  # fmt: skip

    def play(self, action: str) -> None:
        """Execute an action by its name, in either dialect."""
        head, _, rest = action.partition(" the ")
        if action.startswith("find a "):
            self._look(action.removeprefix("find a "))
        elif head == "navigate to":
            self._look(self._by_word[rest])
        elif head == "pick up":
            self._pick(rest)
        elif head == "put down":
            self._put(self.latest)
        elif head == "drop":
            self._put(f"floor of {self.looked}")
        elif head == "place at":
            self._put(self._by_word[rest])
        elif head == "slice":
            self.facts.add(("sliced", self._nearest(rest)))
        elif head in ("open", "close"):
            self._door(self._by_word.get(rest, rest), head == "open")
        elif head in ("turn on", "turn off"):
            self._switch(rest, head == "turn on")
        else:
            raise ValueError(f"Unknown action {action!r}.")

    def bottom(self, name: str) -> str:
        """Return the fixture that carries an object, directly or through other objects."""
        while name in self.inside:
            name = self.inside[name]
        return name

    def _look(self, name: str) -> None:
        self.looked = name
        if name in self.house.fixtures or self.house.items[name].type.holds:
            self.latest = name

    def _spot(self) -> str:
        fixture = self.bottom(self.looked)
        return self.house.fixtures[fixture].host or fixture

    def _nearest(self, word: str) -> str:
        """Return the object that the name of a type refers to here."""
        squeezed = (OBJECTS.get(word) or word).replace(" ", "").lower()
        names = [each for each, item in self.house.items.items()
                 if item.kind.lower() == squeezed and each in self.inside
                 and self.bottom(each) == self._spot()]  # fmt: skip
        return (
            self.looked if self.looked in names else min(names, key=lambda each: self.order[each])
        )

    def _pick(self, word: str) -> None:
        self.hand = self._nearest(word)
        del self.inside[self.hand]

    def _put(self, holder: str) -> None:
        item, self.hand = self.hand, ""
        self.inside[item] = holder
        used = {self.order[each][1] for each, at in self.inside.items()
                if at == holder and each != item}  # fmt: skip
        self.order[item] = (holder, min({*range(99)} - used))
        carried = {each for each in self.house.items if item in self._path(each)}
        ends = {holder, self.bottom(item)}
        self.history |= {(each, end) for each in carried for end in ends}

    def _path(self, name: str) -> list[str]:
        path = [name]
        while path[-1] in self.inside:
            path.append(self.inside[path[-1]])
        return path

    def _door(self, fixture: str, opens: bool) -> None:
        if opens:
            self.facts.add(("open", fixture))
            self.latest = fixture
            return
        self.facts.discard(("open", fixture))
        if self.house.fixtures[fixture].kind == "Fridge":
            for name in self._all_in(fixture):
                self.facts.add(("cold", name))
                self.facts.discard(("hot", name))

    def _switch(self, fixture: str, on: bool) -> None:
        (self.facts.add if on else self.facts.discard)(("on", fixture))
        kind = self.house.fixtures[fixture].kind
        if on and kind in ("Microwave", "StoveBurner"):
            for name in self._all_in(fixture):
                self.facts.add(("hot", name))
                self.facts.discard(("cold", name))
        if on and kind == "Faucet":
            for name in self._all_in(self.house.fixtures[fixture].host):
                self.facts.discard(("dirty", name))

    def _all_in(self, fixture: str) -> list[str]:
        return [name for name in self.inside if self.bottom(name) == fixture]

    # ------------------------------------------------------------------ goals

    def satisfies(self, goal: Goal) -> bool:
        """Return whether every clause of a goal is true."""
        return all(self._clause(each) for each in (*goal.conditions, *goal.guards))

    def _clause(self, clause: Clause) -> bool:
        first, *rest = clause.domains
        fulfilled = 0
        for name in first:
            others = product(*rest)
            fulfilled += any(
                all(self._literal(fact, {"?0": name, **_numbered(values)})
                    for fact in clause.literals)
                for values in others
            )  # fmt: skip
        return fulfilled >= (len(first) if clause.quantifier == "forall" else clause.count)

    def _literal(self, fact: Fact, values: Mapping[str, str]) -> bool:
        first, *more = (values.get(name, name) for name in fact.arguments)
        if fact.predicate == "in":
            return self.inside.get(first) == more[0]
        if fact.predicate == "within":
            return more[0] in self._path(first)[1:]
        if fact.predicate == "held":
            return self.hand == first
        if fact.predicate == "never_in":
            return (first, more[0]) not in self.history
        if fact.predicate == "clean":
            return ("dirty", first) not in self.facts
        if fact.predicate == "closed":
            return ("open", first) not in self.facts
        return (fact.predicate, first) in self.facts


def _numbered(values: Iterable[str]) -> dict[str, str]:
    return {f"?{place}": value for place, value in enumerate(values, 1)}


def reaches(house: FurnishedHouse, goal: Goal, actions: Iterable[str]) -> bool:
    """Return whether valid actions, by their names, reach a goal."""
    replay = Replay(house)
    for action in actions:
        replay.play(action)
    return replay.satisfies(goal)
