"""`visenv card ENV`."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

from visenv.cli.arguments import EnvName
from visenv.makers import env_id
from visenv.registration import load

_ARGUMENT = re.compile(r"^    (\S+):", re.MULTILINE)


@dataclass(frozen=True)
class Card:
    """Show an environment's card: what it is, its actions, reward, limits and arguments."""

    env: EnvName
    """Id, with or without the namespace."""

    def run(self) -> None:
        """Print the card, and then the arguments of its maker."""
        import gymnasium as gym
        from rich.console import Console
        from rich.markdown import Markdown

        full = env_id(self.env)
        env = gym.make(full)
        card = inspect.getdoc(type(env.unwrapped)) or ""
        env.close()
        card = re.sub(r"### Arguments\n.*?(?=\n###|\Z)", "", card, flags=re.DOTALL)
        arguments = arguments_list(inspect.getdoc(load("environment", full)) or "")
        Console().print(Markdown(f"# {full}\n\n{card}\n\n### Arguments of gym.make\n{arguments}"))


def arguments_list(docstring: str) -> str:
    """The ``Args:`` of a Google-style docstring as a Markdown list."""
    _, _, rest = docstring.partition("Args:\n")
    section = re.split(r"\n(?=\S)", rest)[0]
    return inspect.cleandoc(_ARGUMENT.sub(r"- **`\1`**:", section).replace("\n    ", "\n"))
