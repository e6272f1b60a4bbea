"""Selects the best grounded rollout of each sample, and splits the samples for SFT and RL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from visenv.cli.data.base import CurationCommand, Episodes, part, read


@dataclass(frozen=True, kw_only=True)
class ArgosVerifyCommand(CurationCommand):
    """Keep the best rollout of each sample if its score reaches the threshold."""

    episodes: Episodes
    """File of episodes: several rollouts of each sample, scored by the verifier."""
    threshold: float = 0.7
    """Minimum score."""

    def run(self) -> None:
        """Keep the best rollouts, and print the share of kept rollouts."""
        lines = read(self.episodes)
        step = part("argos-verify")
        images: Path = self.episodes.parent / "images"
        self._work(step(lines, images, self.out.parent, self.threshold), lines)
        share = len(read(self.out)) / max(1, len(lines))
        print(f"yield {share:.1%} of the rollouts (paper: {step.paper_yield:.1%})")


@dataclass(frozen=True, kw_only=True)
class ArgosMixCommand(CurationCommand):
    """Keep the rows of one part, SFT or RL; the parts have no common samples."""

    episodes: Episodes
    """File of episodes."""
    keep: Literal["sft", "rl"]
    """The part to keep."""
    rl_share: float = 0.05
    """Share of the samples in the RL part."""
    seed: int = 0
    """Seed of the split; use the same for both parts."""

    def run(self) -> None:
        """Keep the rows; images remain in their folder."""
        self._work(part("argos-mix")(self.keep, self.rl_share, self.seed), read(self.episodes))
