"""Which segments go through the network together: parts, filled by what is really read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from visenv.policy import Budget
from visenv.types import Segment

from .trees import Node, Prefixes, size


class _Cost(NamedTuple):
    """What one forward pass reads."""

    tokens: int
    patches: int

    def within(self, budget: Budget) -> bool:
        """Return whether a budget has room for it."""
        fits = budget.patches is None or self.patches <= budget.patches
        return fits and self.tokens <= budget.tokens


class _Splitter:
    """Shares segments out over parts. The arguments are those of `split`."""

    def __init__(self, segments: Sequence[Segment], budget: Budget) -> None:
        self._prefixes = Prefixes(segments)
        self._patches = [
            {span.sha256: math.prod(span.grid) for span in segment.images} for segment in segments
        ]
        self._budget = budget

    def cost(self, members: Sequence[int]) -> _Cost:
        """Return what a part of these members reads; each distinct image counts once."""
        images = {name: count for each in members for name, count in self._patches[each].items()}
        return _Cost(size(self._prefixes.grow(members)), sum(images.values()))

    def units(self) -> Iterator[tuple[int, ...]]:
        """Yield what is kept together, the largest trees first.

        A tree that exceeds the budget is cut between its children, as often as needed; they follow
        one another, so that they meet in the same parts.
        """
        pending = self._sorted(self._prefixes.grow(range(len(self._patches))))
        while pending:
            node = pending.pop()
            if len(node.members) == 1 or self.cost(node.members).within(self._budget):
                yield node.members
                continue
            onward = {member for child in node.children for member in child.members}
            yield from ((member,) for member in node.members if member not in onward)
            pending += self._sorted(node.children)

    def _sorted(self, nodes: Iterable[Node]) -> list[Node]:
        """Return nodes, those that read most last."""

        def key(node: Node) -> tuple[int, tuple[int, ...]]:
            return -self.cost(node.members).tokens, node.members

        return sorted(nodes, key=key, reverse=True)

    def parts(self) -> list[list[int]]:
        """Return the parts: each unit goes where there is room and it adds the fewest tokens."""
        parts: list[list[int]] = []
        read: list[int] = []  # tokens of each part
        for unit in self.units():
            best: tuple[int, int, int] | None = None  # tokens added, place, tokens together
            for place, part in enumerate(parts):
                together = self.cost([*part, *unit])
                if together.within(self._budget):
                    added = (together.tokens - read[place], place, together.tokens)
                    best = added if best is None else min(best, added)
            if best is None:
                parts.append([*unit])
                read.append(self.cost(unit).tokens)
            else:
                _, place, read[place] = best
                parts[place] += unit
        return parts


def split(segments: Sequence[Segment], budget: Budget) -> list[list[int]]:
    """See `TrainablePolicy.split`: each part is read as the trees of its own segments.

    What begins alike is kept together, as far as the budget allows. What a tree holds that is cut
    is read again in each part.
    """
    return _Splitter(segments, budget).parts()
