"""Splits samples between SFT and RL, so that no sample is in both (appendix C.4)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep, seed_of
from visenv.errors import ConfigurationError

from .verify import sample_of

Part = Literal["sft", "rl"]


class Mix(CurationStep):
    """Keeps the rows of one part. The part of a sample depends only on its id and the seed.

    Args:
        part: ``"sft"`` or ``"rl"``.
        rl_share: The share of samples for RL; in the paper about 4.5K of 89.5K.
        seed: The seed of the split; the same for both parts.

    Raises:
        ConfigurationError: If `rl_share` is not between 0 and 1, or there is no such part.
    """

    name: ClassVar[str] = "argos-mix"

    def __init__(self, part: Part, rl_share: float = 0.05, seed: int = 0) -> None:
        if part not in ("sft", "rl") or not 0 <= rl_share <= 1:
            raise ConfigurationError(
                f"Expected 'sft' or 'rl' and rl_share from 0 to 1, got {part!r} and {rl_share}."
            )
        self._part = part
        self._rl_share = rl_share
        self._seed = seed

    @override
    def settings(self) -> dict[str, Any]:
        """Return the part, and the parameters of the split."""
        return {"part": self._part, "rl_share": self._rl_share, "seed": self._seed}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        """Keep the row if its sample is in this part."""
        is_rl = seed_of(sample_of(row), self._seed) < self._rl_share * 2**32
        mine = "rl" if is_rl else "sft"
        return kept(row) if mine == self._part else dropped(f"the sample is for {mine}")
