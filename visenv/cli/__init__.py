"""The command line: `visenv list | card | play | rollout | train | eval | view`.

One file per command: a dataclass whose fields are its options and whose `run` does the work.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

from visenv.errors import VisenvError
from visenv.registration import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: What stands after ``visenv``; the process's own by default.

    Returns:
        The exit status: 0, 1 for an error that was explained, 130 after Ctrl-C.
    """
    import tyro

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["train"]:  # its options live with the recipe, which loads PyTorch
            recipe = load("recipe", "warm-up-then-rl")
            command: Any = tyro.cli(recipe, prog="visenv train", args=words[1:])
        else:
            command = tyro.cli(_commands(), prog="visenv", args=words)
        command.run()
    except VisenvError as error:
        print(f"visenv: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("visenv: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as in `visenv list | head`
        sys.stderr.close()
        return 0
    return 0


def _commands() -> Any:
    """The union of all commands, as tyro wants it."""
    from tyro.conf import subcommand

    from visenv.cli.card import Card
    from visenv.cli.evaluate import Evaluate
    from visenv.cli.list import List
    from visenv.cli.play import Play
    from visenv.cli.rollout import Rollout
    from visenv.cli.train import Train
    from visenv.cli.view import View

    return (
        Annotated[List, subcommand("list", description=List.__doc__)]
        | Annotated[Card, subcommand("card", description=Card.__doc__)]
        | Annotated[Play, subcommand("play", description=Play.__doc__)]
        | Annotated[Rollout, subcommand("rollout", description=Rollout.__doc__)]
        | Annotated[Train, subcommand("train", description=Train.__doc__)]
        | Annotated[Evaluate, subcommand("eval", description=Evaluate.__doc__)]
        | Annotated[View, subcommand("view", description=View.__doc__)]
    )
