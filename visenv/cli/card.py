"""`visenv card ENV`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import tyro

from visenv.makers import env_id
from visenv.registration import load


@dataclass(frozen=True)
class Card:
    """Show an environment's card: what it is, its actions, reward, limits and arguments."""

    env: tyro.conf.Positional[str]
    """Id, with or without the namespace."""

    def run(self) -> None:
        """Print the card, and then the arguments of its maker."""
        import gymnasium as gym
        from rich.console import Console
        from rich.markdown import Markdown

        full = env_id(self.env)
        env = gym.make(full)
        maker = load("environment", full)
        console = Console()
        console.print(Markdown(f"# {full}\n\n{inspect.getdoc(type(env.unwrapped))}"))
        console.print(Markdown("### Arguments of gym.make"))
        console.print(inspect.getdoc(maker) or "", markup=False, highlight=False)
        env.close()
