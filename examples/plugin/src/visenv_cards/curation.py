"""Defines a step of `visenv data` that selects deals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.errors import ConfigurationError

from .data import checked
from .world import CARDS


@dataclass(eq=False)
class Colorful(CurationStep):
    """Keeps deals with several colors, whose question cannot be answered from another card."""

    name: ClassVar[str] = "colorful"

    colors: int = 2
    """Minimum number of different colors."""

    def __post_init__(self) -> None:
        if not 1 <= self.colors <= CARDS:
            raise ConfigurationError(f"colors must be from 1 to {CARDS}, got {self.colors}.")

    @override
    def settings(self) -> dict[str, Any]:
        return {"colors": self.colors}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep a deal with enough colors."""
        cards, _ = checked(row)
        return kept(row) if len(set(cards)) >= self.colors else dropped("too few colors")
