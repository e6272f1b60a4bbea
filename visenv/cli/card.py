"""`visenv card ENV`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from visenv.cli.arguments import EnvName
from visenv.makers import env_id, env_maker
from visenv.registration import load

_ARGUMENT = re.compile(r"^    (\S+):", re.MULTILINE)


@dataclass(frozen=True)
class Card:
    """Show an environment's card: what it is, its actions, reward, limits and arguments."""

    env: EnvName
    """Id (visenv/ may be left out), module:Id or module:Class."""

    def run(self) -> None:
        """Print the card, and then the arguments of its maker."""
        from rich.console import Console
        from rich.markdown import Markdown

        full = env_id(self.env)
        env = env_maker(self.env)()
        card = inspect.getdoc(type(env.unwrapped)) or ""
        env.close()
        card = re.sub(r"### Arguments\n.*?(?=\n###|\Z)", "", card, flags=re.DOTALL)
        arguments = arguments_of(load("environment", self.env))
        Console().print(Markdown(f"# {full}\n\n{card}\n\n### Arguments of gym.make\n{arguments}"))


def arguments_of(maker: Callable[..., Any]) -> str:
    """Return the arguments of a maker as a list, or their names if its docstring has none.

    Those of a ``**settings: Unpack[...]`` class are included.
    """
    parameters = inspect.signature(maker).parameters
    documented: list[Any] = [maker]
    settings = parameters.get("settings")
    if settings is not None and settings.kind is settings.VAR_KEYWORD:
        documented += get_args(get_type_hints(maker).get("settings"))
    lists = [arguments_list(inspect.cleandoc(each.__doc__ or "")) for each in documented]
    return "\n".join(filter(None, lists)) or "\n".join(f"- **`{name}`**" for name in parameters)


def arguments_list(docstring: str) -> str:
    """The ``Args:`` of a Google-style docstring as a Markdown list."""
    _, _, rest = docstring.partition("Args:\n")
    section = re.split(r"\n(?=\S)", rest)[0]
    return inspect.cleandoc(_ARGUMENT.sub(r"- **`\1`**:", section).replace("\n    ", "\n"))
