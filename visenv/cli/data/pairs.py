"""Writes preference pairs, and removes duplicates."""

from __future__ import annotations

from dataclasses import dataclass

from visenv.cli.data.base import CurationCommand, Pairs, WriterStepCommand, part, read


@dataclass(frozen=True, kw_only=True)
class NegativesCommand(WriterStepCommand):
    """Write flawed responses with a policy, and make preference pairs of them."""

    count: int = 1
    """Number of flawed responses to each question."""
    flaws: tuple[str, ...] = ()
    """Kinds of errors to choose from; by default all."""

    def run(self) -> None:
        """Write the preference pairs."""
        flaws = {"flaws": self.flaws} if self.flaws else {}
        self._write("negatives", count=self.count, **flaws)


@dataclass(frozen=True, kw_only=True)
class DedupeCommand(CurationCommand):
    """Drop pairs whose responses are too similar, and near copies of earlier pairs."""

    pairs: Pairs
    """File of preference pairs."""
    contrast: float = 0.9
    """Pairs whose responses are at least this similar are dropped, 0 to 1."""
    duplicate: float = 0.95
    """Pairs at least this similar to an earlier one with the same images are dropped, 0 to 1."""

    def run(self) -> None:
        """Drop duplicate pairs."""
        step = part("dedupe")(self.contrast, self.duplicate)
        self._work(step, read(self.pairs))
