"""Splits segments into parts for one forward pass each, within a budget of read tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from visenv.policy import BatchBudget
from visenv.types import Segment

from .trees import PrefixNode, PrefixTrees, size


class _Cost(NamedTuple):
    """Counts the tokens and patches that one forward pass reads."""

    tokens: int
    patches: int

    def within(self, budget: BatchBudget) -> bool:
        """Return whether the cost is within a budget."""
        fits = budget.patches is None or self.patches <= budget.patches
        return fits and self.tokens <= budget.tokens


@dataclass(slots=True)
class _Part:
    """Holds the segments of one forward pass."""

    members: list[int] = field(default_factory=list)  # in the order in which they were added
    trees: dict[int, tuple[int, ...]] = field(default_factory=dict)  # the members by their tree
    cost: _Cost = field(default_factory=lambda: _Cost(0, 0))  # tokens and patches to read
    images: set[str] = field(default_factory=set)  # hashes of images and videos


class _Splitter:
    """Distributes segments over parts. The arguments are those of `split`."""

    def __init__(self, segments: Sequence[Segment], budget: BatchBudget) -> None:
        self._prefixes = PrefixTrees(segments)
        self._patches = [_patches(segment) for segment in segments]
        self._budget = budget
        self._sizes: dict[tuple[int, ...], int] = {}
        self._forest = self._prefixes.grow(range(len(segments)))
        self._tree = {
            member: number for number, node in enumerate(self._forest) for member in node.members
        }

    def _tokens(self, members: tuple[int, ...]) -> int:
        if members not in self._sizes:
            self._sizes[members] = size(self._prefixes.grow(members))
        return self._sizes[members]

    def _images(self, members: Sequence[int]) -> dict[str, int]:
        return {name: count for each in members for name, count in self._patches[each].items()}

    def _cost(self, members: tuple[int, ...]) -> _Cost:
        """Return the cost of a part with these members.

        Each distinct image or video counts once.
        """
        return _Cost(self._tokens(members), sum(self._images(members).values()))

    def units(self) -> Iterator[tuple[int, ...]]:
        """Yield groups of segments that should stay together, the largest trees first.

        A tree that exceeds the budget is split between its children, recursively. The children are
        yielded one after another, so that they tend to be in the same parts.
        """
        pending = self._sorted(self._forest)
        while pending:
            node = pending.pop()
            if len(node.members) == 1 or self._cost(node.members).within(self._budget):
                yield node.members
                continue
            onward = {member for child in node.children for member in child.members}
            yield from ((member,) for member in node.members if member not in onward)
            pending += self._sorted(node.children)

    def _sorted(self, nodes: Iterable[PrefixNode]) -> list[PrefixNode]:
        """Return the nodes, ordered by the number of tokens to read."""

        def key(node: PrefixNode) -> tuple[int, tuple[int, ...]]:
            return -self._tokens(node.members), node.members

        return sorted(nodes, key=key, reverse=True)

    def parts(self) -> list[list[int]]:
        """Return the parts.

        Each group is added to a part with room, where it adds the fewest tokens.
        """
        parts: list[_Part] = []
        for unit in self.units():
            costs = [self._with(part, unit) for part in parts]
            room = [place for place, cost in enumerate(costs) if cost.within(self._budget)]
            if room:
                place = min(room, key=lambda place: costs[place].tokens - parts[place].cost.tokens)
            else:
                place = len(parts)
                parts.append(_Part())
                costs.append(self._with(parts[place], unit))
            part, tree = parts[place], self._tree[unit[0]]
            part.cost = costs[place]
            part.members += unit
            part.trees[tree] = (*part.trees.get(tree, ()), *unit)
            part.images |= self._images(unit).keys()
        return [part.members for part in parts]

    def _with(self, part: _Part, unit: tuple[int, ...]) -> _Cost:
        """Return the cost of a part together with a group of segments.

        Segments of different trees share no node, so that only those of the group's tree are
        counted again.
        """
        own = part.trees.get(self._tree[unit[0]], ())
        tokens = self._tokens((*own, *unit)) - self._tokens(own)
        patches = sum(n for name, n in self._images(unit).items() if name not in part.images)
        return _Cost(part.cost.tokens + tokens, part.cost.patches + patches)


def _patches(segment: Segment) -> dict[str, int]:
    """Return the number of patches of each image and video of a segment, by its hash."""
    patches = {image.sha256: image.patches for image in segment.images}
    for run in segment.videos:  # the last run of a video ends with its last step
        steps, height, width = run.grid
        whole = (run.first_step + steps) * height * width
        patches[run.sha256] = max(whole, patches.get(run.sha256, 0))
    return patches


def split(segments: Sequence[Segment], budget: BatchBudget) -> list[list[int]]:
    """Split segments into parts; each part is computed as the trees of its own segments.

    Segments with common prefixes stay together as far as the budget allows. A prefix in several
    parts is computed again in each of them.
    """
    return _Splitter(segments, budget).parts()
