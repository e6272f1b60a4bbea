"""Implements the command line: `visenv list | card | play | rollout | train | eval | … | export`.

Each command has a file with a dataclass, whose fields are its options and whose `run` executes it.
A command is imported only when it is used, so that `visenv --help` is fast. No file has the name of
a Python builtin, because the name of the file becomes a name in this module.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from visenv import __version__
from visenv.errors import ConfigurationError, UnknownNameError, VisenvError
from visenv.lasting_output import lasting_output
from visenv.launcher import is_first
from visenv.registration import load
from visenv.terminal import make_messages_printable, printable_lines
from visenv.user_code import bug_in

_OWN_NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""A name ``module:attribute`` of a person's own object, or of a data set in a folder."""


_TRAIN_HELP = """\
usage: visenv train [RECIPE | --env ENVIRONMENT] [--<field of the recipe> VALUE …]

Train a model by a recipe: phases, evaluation, controls, report. RECIPE is the name of a recipe of
visenv, such as zoom_tiny, or a TOML file. With --env, a default recipe trains a tiny model on the
environment: an id, or module:function for your own one.

The options are the fields of the recipe, such as --phases.rl.steps 100. They are listed here if the
packages for training are installed: pip install 'visenv[train]'."""


class Command(NamedTuple):
    """Holds the location of a command, and its description in one line."""

    place: str
    summary: str


COMMANDS = {
    "list": Command(
        "visenv.cli.environments:ListCommand",
        "list environments, policies, algorithms and data sets",
    ),
    "card": Command(
        "visenv.cli.environments:CardCommand",
        "show an environment: actions, reward, limits, options",
    ),
    "play": Command("visenv.cli.play:PlayCommand", "play an environment yourself"),
    "rollout": Command(
        "visenv.cli.rollout:RolloutCommand", "play episodes with a policy, and save them"
    ),
    "train": Command("", "train a model by a recipe: phases, evaluation, controls, report"),
    "eval": Command("visenv.cli.evaluate:EvaluateCommand", "evaluate a policy on a data set"),
    "suite": Command(
        "visenv.cli.suite:SuiteCommand", "evaluate a policy on all data sets of a table"
    ),
    "compare": Command(
        "visenv.cli.suite:CompareCommand", "compare algorithms on a suite of tiny tasks"
    ),
    "validate": Command(
        "visenv.cli.environments:ValidateCommand", "check that an environment follows the contract"
    ),
    "rescore": Command(
        "visenv.cli.saved_episodes:RescoreCommand", "compute the rewards of saved episodes again"
    ),
    "data": Command("visenv.cli.data:parse_step", "make training and benchmark data, step by step"),
    "index": Command(
        "visenv.cli.search:IndexCommand", "embed a folder of documents, for semantic search"
    ),
    "search": Command("visenv.cli.search:SearchCommand", "index a corpus for search, and query it"),
    "judge-check": Command(
        "visenv.cli.evaluate:JudgeCheckCommand", "compare a judge with exact ground truth"
    ),
    "doctor": Command(
        "visenv.cli.doctor:DoctorCommand",
        "show the isolation of model-written code, and the simulators",
    ),
    "simulators": Command(
        "visenv.cli.doctor:SimulatorsCommand",
        "install the simulators, or list them",
    ),
    "view": Command(
        "visenv.cli.saved_episodes:ViewCommand", "write the report of a run, or compare two runs"
    ),
    "export": Command(
        "visenv.cli.saved_episodes:ExportCommand",
        "export episodes as logs of Inspect, or as parquet",
    ),
}


_LONG_COMMANDS = {
    "train",
    "compare",
    "eval",
    "rollout",
    "suite",
    "rescore",
    "data",
    "index",
    "search",
}
"""Commands whose results are files; they go on if their output is closed or full."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The arguments after ``visenv``; by default those of the process.

    Returns:
        The exit status: 0, 1 after an error message, 2 if no command is given, 130 after Ctrl-C.

    Raises:
        SystemExit: With status 2 for invalid options, 0 after a command's ``--help``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"visenv {__version__}")
        return 0
    if not words or words[0] in ("-h", "--help"):
        print(_usage(), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    make_messages_printable()
    if _names_code(words) and "" not in sys.path:
        sys.path.append("")  # so that module:Class is also found in the current folder
    if words[0] not in _LONG_COMMANDS:
        return _run(words)
    with lasting_output():
        return _run(words)


def _run(words: Sequence[str]) -> int:
    """Run a command with its options; return the exit status."""
    try:
        if words[0] == "train":  # its options are in the recipes, which load PyTorch
            _train(words[1:])
        else:
            _command(words[0], words[1:]).run()
    except BrokenPipeError:  # the reader closed the pipe, as in `visenv list | head`
        sys.stderr.close()
        return 0
    except (VisenvError, OSError) as error:
        print(f"visenv: {printable_lines(error)}", file=sys.stderr)
        return 1
    except Exception as error:
        # A bug in a user's code gets one sentence. Any other bug needs its traceback.
        sentence = bug_in(error)
        if not sentence:
            raise
        print(f"visenv: {printable_lines(sentence)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        if is_first():  # all processes of a run stop together
            print(f"visenv: {str(interrupt) or 'interrupted'}", file=sys.stderr)
        return 130
    return 0


def _train(words: Sequence[str]) -> None:
    """Run `visenv train`; without PyTorch, its help says what is missing."""
    try:
        train = load("command", "train")
    except ConfigurationError as error:
        if not {"-h", "--help"} & set(words):
            raise
        print(_TRAIN_HELP, printable_lines(error), sep="\n\n")
        return
    train(words)


def _names_code(words: Sequence[str]) -> bool:
    """Return whether a command may need modules of the current folder.

    Otherwise, the folder is not searched: it can be a received one, and a missing optional package
    must not be replaced by one of its files.
    """
    return words[0] == "train" or "--trust" in words or any(map(_OWN_NAME.search, words))


def _usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}} {command.summary}" for name, command in COMMANDS.items()]
    more = "visenv COMMAND --help lists its options; visenv --version prints the version."
    return "\n".join(["usage: visenv COMMAND …", "", *lines, "", more])


def _command(name: str, words: Sequence[str]) -> Any:
    """Return the command with its options parsed from `words`."""
    import tyro

    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    module, _, attribute = COMMANDS[name].place.partition(":")
    made = getattr(importlib.import_module(module), attribute)
    if not inspect.isclass(made):  # the options depend on the first word
        return made(words)
    return tyro.cli(
        made,
        prog=f"visenv {name}",
        description=inspect.getdoc(made),
        args=words,
        # For --option a=1 --option b=2: each option takes one value, and not the next word too.
        config=(tyro.conf.UseAppendAction,),
    )
