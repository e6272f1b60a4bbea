"""Implements `visenv card ENV`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from visenv.cli.arguments import DataName, EnvName, check_at_least
from visenv.errors import ConfigurationError
from visenv.terminal import printable_lines


@dataclass(frozen=True)
class CardCommand:
    """Show the card of an environment: spaces, presets, rewards, limits, arguments and scores.

    The oracle, a random player, a blind player and the teachers of the task play held-out episodes
    for the table of scores, and one episode of the oracle is shown.
    """

    env: EnvName
    """Id (visenv/ may be omitted), module:Id or module:Class."""
    episodes: int = 4
    """Number of episodes of each player for the table of scores; 0 omits the table."""
    data: DataName = None
    """Data set of the episodes, for example rows:my.jsonl; by default that of the environment."""
    picture: Path | None = None
    """File to write an animation of the oracle's episode to; its name ends with .webp."""

    def run(self) -> None:
        """Print the card, and write the animation."""
        from rich.console import Console

        from visenv.cards import animate, card_markdown, make_card
        from visenv.cards.terminal import WrappedMarkdown
        from visenv.files import replacing

        check_at_least(0, episodes=self.episodes)
        if self.picture is not None and self.picture.suffix.lower() != ".webp":
            raise ConfigurationError(
                f"--picture writes WebP: name a .webp file, not {self.picture}."
            )
        if self.picture is not None and not self.picture.parent.is_dir():
            raise ConfigurationError(f"There is no folder {self.picture.parent} for --picture.")
        card = make_card(self.env, self.episodes, self.data)
        Console().print(WrappedMarkdown(printable_lines(card_markdown(card))))
        if self.picture is not None:
            if card.episode is None:
                raise ConfigurationError(
                    f"--picture draws an episode of {card.env_id}, and none was played. "
                    f"{card.problem}"
                )
            with replacing(self.picture) as partial:
                partial.write_bytes(animate(card.episode))
