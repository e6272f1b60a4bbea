"""Builds prefix trees of segments, so that common prefixes are read once.

The members of a group share their prompt, with its images. Some share turns, and the rebuilt
contexts of one episode share the parts that were kept. A prefix tree of any depth contains each of
these prefixes once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from visenv.types import Segment

_WORTH = 64
"""Fewest tokens that a node must save, because it costs its own attention calls in each layer."""


@dataclass(slots=True, eq=False)
class PrefixNode:
    """Holds tokens that are read once for all segments that begin with them and their ancestors.

    Attributes:
        members: The segments, in ascending order.
        start: Index of the first token, in each member.
        end: Index after the last token, in each member.
        children: Nodes of the continuations. Each member that continues is in exactly one child.
    """

    members: tuple[int, ...]
    start: int
    end: int
    children: list[PrefixNode] = field(default_factory=list)

    def __len__(self) -> int:
        return self.end - self.start


def walk(forest: Iterable[PrefixNode]) -> Iterator[PrefixNode]:
    """Yield every node of some trees, a parent before its children."""
    pending = list(forest)
    while pending:
        node = pending.pop()
        yield node
        pending += node.children


def size(forest: Iterable[PrefixNode]) -> int:
    """Return the number of tokens that are read."""
    return sum(map(len, walk(forest)))


class PrefixTrees:
    """Finds the common prefixes of segments.

    In lexical order, segments with common prefixes are neighbors. The common prefix of several
    segments is the shortest of the common prefixes of neighbors among them.

    Args:
        segments: The segments; trees refer to them by index.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        keys = _keys(segments)
        order = sorted(range(len(keys)), key=lambda index: keys[index].tobytes())
        self._rank = {index: rank for rank, index in enumerate(order)}
        self._lengths = [len(key) for key in keys]
        common = [_common(keys[one], keys[other]) for one, other in pairwise(order)]
        self._common = np.array(common, np.int64)  # [segments - 1], between neighbors

    def grow(self, members: Iterable[int]) -> list[PrefixNode]:
        """Return the trees of these segments.

        From the root, segments stay together as long as they have common tokens. A node that would
        save less than `_WORTH` tokens is omitted, and its tokens are added to its children.
        """
        order = sorted(members, key=self._rank.__getitem__)
        common = self._between(order)
        roots: list[PrefixNode] = []
        # Runs of `order`: from, to, number of tokens that are already read, list for new nodes.
        runs = [(0, len(order), 0, roots)] if order else []
        while runs:
            first, last, start, nodes = runs.pop()
            between = common[first : last - 1]
            end = min(between) if between else self._lengths[order[first]]
            saved = (last - first - 1) * (end - start)
            if end > start and (saved >= _WORTH or not between):
                nodes.append(PrefixNode(tuple(sorted(order[first:last])), start, end))
                nodes, start = nodes[-1].children, end
            cuts = [first + 1 + place for place, each in enumerate(between) if each == end]
            if cuts:
                borders = pairwise([first, *cuts, last])
                runs += [(one, other, start, nodes) for one, other in borders]
        return roots

    def _between(self, order: Sequence[int]) -> list[int]:
        """Return the length of the common prefix of neighbors in `order`, ``[segments - 1]``."""
        if len(order) < 2:
            return []
        ranks = [self._rank[index] for index in order]
        # The minimum over each run of ranks: [segments - 1].
        least: list[int] = np.minimum.reduceat(self._common[: ranks[-1]], ranks[:-1]).tolist()
        return least


def grow(segments: Sequence[Segment]) -> list[PrefixNode]:
    """Return the trees of all these segments."""
    return PrefixTrees(segments).grow(range(len(segments)))


def _keys(segments: Sequence[Segment]) -> list[NDArray[np.int64]]:
    """Return the tokens of each segment, with placeholders replaced by a number of their item.

    A common prefix then never ends inside an image of one run or a run of a video, because equal
    items have the same number of placeholders.
    """
    numbers: dict[tuple[str, int], int] = {}
    keys = []
    for segment in segments:
        key = segment.token_ids.astype(np.int64)
        for span in segment.spans:
            number = numbers.setdefault((span.sha256, span.length), len(numbers))
            for run in span.runs:
                key[run.offset : run.end] = -1 - number
        keys.append(key)
    return keys


def _common(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """Return the number of equal first tokens."""
    length = min(len(one), len(other))
    different = np.flatnonzero(one[:length] != other[:length])  # [places that differ]
    return int(different[0]) if len(different) else length
