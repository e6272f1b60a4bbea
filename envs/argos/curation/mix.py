"""Splits samples between SFT and RL, so that no sample is in both (appendix C.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep, seed_of
from visenv.errors import ConfigurationError

from .verify import sample_of

Part = Literal["sft", "rl"]


@dataclass(eq=False)
class Mix(CurationStep):
    """Keeps the rows of one part. The part of a sample depends only on its id and the seed.

    Raises:
        ConfigurationError: If `rl_share` is not between 0 and 1, or there is no such part.
    """

    name: ClassVar[str] = "argos-mix"

    keep: Part
    """The part to keep."""
    rl_share: float = 0.05
    """Share of the samples in the RL part; in the paper about 4.5K of 89.5K."""
    seed: int = 0
    """Seed of the split; use the same for both parts."""

    def __post_init__(self) -> None:
        if self.keep not in ("sft", "rl") or not 0 <= self.rl_share <= 1:
            raise ConfigurationError(
                f"Expected 'sft' or 'rl' and rl_share from 0 to 1, got {self.keep!r} and "
                f"{self.rl_share}."
            )

    @override
    def settings(self) -> dict[str, Any]:
        """Return the part, and the parameters of the split."""
        return {"part": self.keep, "rl_share": self.rl_share, "seed": self.seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep the row if its sample is in this part."""
        is_rl = seed_of(sample_of(row), self.seed) < self.rl_share * 2**32
        mine = "rl" if is_rl else "sft"
        return kept(row) if mine == self.keep else dropped(f"the sample is for {mine}")
