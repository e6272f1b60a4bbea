"""Several engines as one: reciprocal rank fusion."""

from __future__ import annotations

from collections.abc import Sequence

from visenv.errors import ConfigurationError
from visenv.search.passage import Passage, Searcher

_DAMPING = 60
"""The constant of the original paper; ranks far down weigh little."""
_DEPTH = 4


class FusedSearch:
    """Adds up ``1 / (60 + rank)`` over the engines' results.

    Each engine is asked for four times as many passages as are wanted, so that one that several
    engines hold to be middling can win.

    Args:
        searchers: The engines.

    Raises:
        ConfigurationError: If there are fewer than two.

    Source: Cormack et al., "Reciprocal rank fusion outperforms Condorcet" (SIGIR 2009).
    """

    def __init__(self, searchers: Sequence[Searcher]) -> None:
        if len(searchers) < 2:
            raise ConfigurationError(f"Fusion needs two engines or more, got {len(searchers)}.")
        self.searchers = tuple(searchers)
        self.name = f"fused:{'+'.join(each.name for each in searchers)}"

    def search(self, query: str, count: int) -> list[Passage]:
        """The passages with the highest sum; ties in the order in which engines found them.

        Raises:
            ServiceError: If an engine failed.
        """
        scores: dict[Passage, float] = {}
        for searcher in self.searchers:
            for rank, passage in enumerate(searcher.search(query, count * _DEPTH), start=1):
                scores[passage] = scores.get(passage, 0.0) + 1 / (_DAMPING + rank)
        return sorted(scores, key=lambda passage: -scores[passage])[:count]

    def close(self) -> None:
        """Close every engine."""
        for searcher in self.searchers:
            searcher.close()
