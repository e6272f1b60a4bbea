"""Grounded traces: the best rollout of each sample, and the parts for SFT and RL."""

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
    """Least score."""

    def run(self) -> None:
        """Keep them, and print the share of rollouts that was kept."""
        lines = read(self.episodes)
        step = part("argos-verify")
        images: Path = self.episodes.parent / "images"
        self._work(step(lines, images, self.out.parent, self.threshold), lines)
        share = len(read(self.out)) / max(1, len(lines))
        print(f"yield {share:.1%} of the rollouts (paper: {step.paper_yield:.1%})")


@dataclass(frozen=True, kw_only=True)
class ArgosMixCommand(CurationCommand):
    """Keep the rows of one part, SFT or RL; no sample is in both."""

    episodes: Episodes
    """File of episodes."""
    keep: Literal["sft", "rl"]
    """The part."""
    rl_share: float = 0.05
    """Share of the samples that are for RL."""
    seed: int = 0
    """Of the choice, the same for both parts."""

    def run(self) -> None:
        """Keep them; images stay where they are."""
        self._work(part("argos-mix")(self.keep, self.rl_share, self.seed), read(self.episodes))
