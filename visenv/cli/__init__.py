"""The command line: `visenv list | card | play | rollout | train | eval | … | view | export`.

One file per command: a dataclass whose fields are its options and whose `run` does the work. A
command is imported when it is asked for, so that `visenv --help` is there at once; no file is
called as a builtin is, since its name becomes one of this module.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from visenv import __version__
from visenv.errors import UnknownNameError, VisenvError
from visenv.old_names import check_options
from visenv.registration import load


class Command(NamedTuple):
    """Names where a command is, and what it does in a line."""

    place: str
    summary: str


COMMANDS = {
    "list": Command(
        "visenv.cli.listing:ListCommand", "environments, policies, algorithms, data sets"
    ),
    "card": Command(
        "visenv.cli.card:CardCommand", "an environment: its actions, reward, limits, options"
    ),
    "play": Command("visenv.cli.play:PlayCommand", "play an environment yourself"),
    "rollout": Command(
        "visenv.cli.rollout:RolloutCommand", "let a policy play, and keep the episodes"
    ),
    "train": Command("", "train a model by a recipe: phases, evaluation, controls, report"),
    "eval": Command(
        "visenv.cli.evaluate:EvaluateCommand", "a policy's scores on a data set, a table"
    ),
    "suite": Command(
        "visenv.cli.suite:SuiteCommand", "a policy's scores on all data sets of a table"
    ),
    "validate": Command(
        "visenv.cli.validate:ValidateCommand", "check an environment against the contract"
    ),
    "rescore": Command(
        "visenv.cli.rescore:RescoreCommand", "compute rewards of saved episodes again"
    ),
    "data": Command(
        "visenv.cli.data:DataCommand", "make training and benchmark data, step by step"
    ),
    "index": Command(
        "visenv.cli.index:IndexCommand", "embed a folder of documents, for search by meaning"
    ),
    "search": Command("visenv.cli.search:SearchCommand", "index a corpus for search, and try it"),
    "judge-check": Command(
        "visenv.cli.judge_check:JudgeCheckCommand", "compare a judge with exact ground truth"
    ),
    "doctor": Command(
        "visenv.cli.doctor:DoctorCommand",
        "how model-written code is isolated here, and the simulators",
    ),
    "simulators": Command(
        "visenv.cli.simulators:SimulatorsCommand",
        "install LIBERO, habitat-lab and ai2thor beside visenv",
    ),
    "view": Command(
        "visenv.cli.view:ViewCommand", "a run's report: curves, episodes, groups; two runs"
    ),
    "export": Command(
        "visenv.cli.export:ExportCommand", "episodes as logs of Inspect, or as parquet"
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: What stands after ``visenv``; the process's own by default.

    Returns:
        The exit status: 0, 1 for an error that was explained, 2 when no command is given, 130
        after Ctrl-C.

    Raises:
        SystemExit: With status 2 for options that cannot be read, 0 after a command's ``--help``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"visenv {__version__}")
        return 0
    if not words or words[0] in ("-h", "--help"):
        print(_usage(), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if "" not in sys.path:
        sys.path.append("")  # so that module:Class is also found in the current folder
    try:
        if words[0] == "train":  # its options live with the recipes, which load PyTorch
            load("recipe", "train")(words[1:])
        else:
            _command(words[0], words[1:]).run()
    except BrokenPipeError:  # the reader of our output has gone, as in `visenv list | head`
        sys.stderr.close()
        return 0
    except (VisenvError, OSError) as error:
        print(f"visenv: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print(f"visenv: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130
    return 0


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}} {command.summary}" for name, command in COMMANDS.items()]
    more = "visenv COMMAND --help lists its options; visenv --version prints the version."
    return "\n".join(["usage: visenv COMMAND …", "", *lines, "", more])


def _command(name: str, words: Sequence[str]) -> Any:
    """Return the command with its options read from `words`.

    Raises:
        UnknownNameError: If there is no such command; names the nearest.
    """
    import tyro

    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    check_options(words)
    module, _, attribute = COMMANDS[name].place.partition(":")
    made = getattr(importlib.import_module(module), attribute)
    return tyro.cli(
        made,
        prog=f"visenv {name}",
        description=inspect.getdoc(made),
        args=words,
        # --option a=1 --option b=2: one value each, so that none swallows what follows it.
        config=(tyro.conf.UseAppendAction,),
    )
