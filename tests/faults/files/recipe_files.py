"""Damages every kind of file of a run, resumes it, and prints what happened in each case.

::

    python -m tests.faults.files.recipe_files FOLDER [KIND …]

Every run is a fork of this process, so that PyTorch and transformers are loaded once. The parent
process computes nothing with tensors. The table is printed as JSON, one fault in each line.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

from tests.algos.experiment.kill_points import load_packages
from tests.algos.runs import metrics
from tests.algos.trainer.kill_points import dying
from tests.faults.files.damages import DAMAGES
from tests.faults.files.reports import names
from tests.faults.outcomes import REFUSED, SAME, SHOWN, UNUSED, Outcome
from visenv import cli
from visenv.algos.experiment import read_recipe, recipe_path, run_recipe
from visenv.algos.trainer.update import Updater

WORDS = [
    "--name", "job", "--no-controls", "--num-processes", "1",
    "--phases.warm-up.steps", "2",
    "--phases.warm-up.demonstrations.episodes", "2",
    "--phases.warm-up.demonstrations.batch-size", "2",
    "--phases.rl.steps", "3", "--phases.rl.algorithm_options.kl_coef", "0.1",
    "--phases.rl.rollouts.prompts_per_step", "1", "--phases.rl.rollouts.num-generations", "2",
    "--phases.rl.rollouts.max-tokens", "8",
    "--phases.rl.saving.checkpoint-every", "1", "--phases.rl.saving.episodes-every", "1",
    "--evaluation.episodes", "1", "--evaluation.max-tokens", "8", "--evaluation.every", "1",
]  # fmt: skip
"""A recipe with a warm-up of two steps and three steps of RL; a checkpoint after each step."""

PHASES = ("warm-up", "rl")

KINDS = {
    "recipe.json": "recipe.json",
    "results.json": "results.json",
    "model/model.safetensors": "model/model.safetensors",
    "model/config.json": "model/config.json",
    "model/tokenizer.json": "model/tokenizer.json",
    "model/checksums.json": "model/checksums.json",
    "weights of the warm-up": "warm-up/checkpoints/step_000002/policy/model.safetensors",
    "last checkpoint of the warm-up": "warm-up/checkpoints/step_000002",
    "metrics of the warm-up": "warm-up/metrics.jsonl",
    "model.safetensors of a checkpoint": "rl/checkpoints/step_000002/policy/model.safetensors",
    "tokenizer.json of a checkpoint": "rl/checkpoints/step_000002/policy/tokenizer.json",
    "model.safetensors of the reference": "rl/reference/step_000000/model.safetensors",
    "episodes of an evaluation": "evaluation/after-warm-up/*.jsonl",
    "file of TensorBoard": "rl/tensorboard/events.*",
}
"""Each kind of file of a run that was killed in the update of its third step of RL."""

ONLY_READ_BY_PEOPLE = {"episodes of an evaluation", "file of TensorBoard"}

FINISHED = {
    "recipe.json": "recipe.json",
    "results.json": "results.json",
    "metrics.jsonl": "rl/metrics.jsonl",
    "episodes of a step": "rl/episodes/step_000002.jsonl",
    "image of a step": "rl/episodes/images/*.png",
    "last weights": "rl/checkpoints/step_000003/policy/model.safetensors",
}
"""Some files of a finished run, which `visenv view` and the same command with ``--resume`` read."""

NOT_VIEWED = {"last weights"}
"""Files that `visenv view` does not read."""


def words(runs: Path, *more: str) -> list[str]:
    """Return the arguments of `visenv train` for a run in a folder."""
    return ["train", "zoom_tiny", *WORDS, "--runs", str(runs), *more]


def in_fork(work: Callable[[], object], log: Path) -> int:
    """Call a function in a fork, with its output in a file; return the exit status."""
    child = os.fork()
    if child == 0:
        with log.open("w") as file, redirect_stdout(file), redirect_stderr(file):
            try:
                status = work()
            except BaseException:  # noqa: BLE001 - as the interpreter does
                traceback.print_exc()
                status = 1
        os._exit(status if isinstance(status, int) else 0)
    _, state = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(state)


def start(runs: Path) -> None:
    """Run the recipe without its command, which would read its options again."""
    run_recipe(read_recipe(recipe_path("zoom_tiny"), [*WORDS, "--runs", str(runs)]))


def interrupted(runs: Path) -> int:
    """Start a run that is killed in the update of its third step of RL."""

    def work() -> None:
        dying(Updater, "update", 2 + 3)()
        start(runs)

    runs.mkdir()
    return in_fork(work, runs / "log.txt")


def resume(runs: Path, *more: str) -> tuple[int, str]:
    """Resume a run by its command; return the exit status and the output."""
    log = runs / "log.txt"
    status = in_fork(lambda: cli.main(words(runs, "--resume", *more)), log)
    return status, log.read_text()


def result_of(runs: Path) -> dict[str, Any]:
    """Return all results of a run that must not depend on an interruption."""
    job = runs / "job"
    scores = json.loads((job / "results.json").read_text())
    newest = {phase: max((job / phase / "checkpoints").glob("step_*")) for phase in PHASES}
    weights = {
        phase: (path / "policy/model.safetensors").read_bytes() for phase, path in newest.items()
    }
    evaluations = [json.loads(line) for line in _lines(job / "rl" / "evaluations.jsonl")]
    return {
        "scores": scores["scores"],
        "steps": scores["steps"],
        "weights": weights,
        "metrics": [metrics(job / phase) for phase in PHASES],
        "evaluations": evaluations,
    }


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def view(runs: Path, kind: str, path: Path) -> str:
    """Write the report of a run by its command; return what happened to a damaged file."""
    job = runs / "job"
    status = in_fork(lambda: cli.main(["view", str(job), "--no-open"]), runs / "log.txt")
    said = (runs / "log.txt").read_text()
    if "Traceback" in said:
        return "traceback"
    if status:
        return REFUSED if str(path) in said else "file not named"
    if kind in NOT_VIEWED:
        return "file named" if names(job, path) else UNUSED
    return SHOWN if names(job, path) else "not noticed"


def finished_outcomes(folder: Path, straight: Path, expected: dict[str, Any]) -> Iterator[Outcome]:
    """Yield the outcome of each damage of each kind of file of a finished run.

    Args:
        folder: A folder for copies of the run.
        straight: The folder of the run.
        expected: Its result.
    """
    for kind, name in FINISHED.items():
        for damage, apply in DAMAGES.items():
            for command in ("view", "resume"):
                runs, path = _damaged(folder, straight, name, apply)
                fault = Outcome(f"{kind} of a finished run", f"{damage} ({command})", "")
                if command == "resume":
                    status, output = resume(runs)
                    result, said = _judged(status, output, path, runs, expected)
                    yield replace(fault, result=result, said=said)
                    continue
                yield replace(fault, result=view(runs, kind, path))


def _damaged(
    folder: Path, source: Path, name: str, apply: Callable[[Path], None]
) -> tuple[Path, Path]:
    """Return a copy of the runs in which a file is damaged, and the path of the file."""
    runs = folder / "copy"
    shutil.rmtree(runs, ignore_errors=True)
    shutil.copytree(source, runs)
    path = max((runs / "job").glob(name))
    apply(path)
    return runs, path


def outcomes(
    folder: Path, kinds: list[str], straight: dict[str, Any], source: Path
) -> Iterator[Outcome]:
    """Yield the outcome of each damage of each kind of file.

    Args:
        folder: A folder for copies of the run.
        kinds: Keys of `KINDS`.
        straight: The result of the run without an interruption.
        source: The folder of the run that was interrupted.
    """
    for kind in kinds:
        for damage, apply in DAMAGES.items():
            is_folder = "." not in KINDS[kind]
            if is_folder and damage != "deleted":
                continue
            how = shutil.rmtree if is_folder else apply
            runs, path = _damaged(folder, source, KINDS[kind], how)
            status, output = resume(runs)
            result, said = _judged(status, output, path, runs, straight)
            if result == SAME and kind in ONLY_READ_BY_PEOPLE:
                result = UNUSED
            yield Outcome(kind, damage, result, said)


def _judged(
    status: int, output: str, path: Path, runs: Path, straight: dict[str, Any]
) -> tuple[str, str]:
    """Return the result and the last sentence of a resumed run."""
    said = [line for line in output.splitlines() if line.startswith(("visenv: ", "Warning: "))]
    last = (said[-1] if said else "").replace(str(runs), "runs")
    if "Traceback" in output:
        return "traceback", output.splitlines()[-1]
    if status == 0:
        return (SAME if result_of(runs) == straight else "other result"), last
    named = path.name in last or path.parent.name in last
    return (REFUSED if named else "file not named"), last or output[-300:]


def main(folder: Path, kinds: list[str]) -> None:
    """Print the outcome of every fault as a line of JSON."""
    load_packages()
    with redirect_stdout(io.StringIO()):
        straight = folder / "straight"
        straight.mkdir()
        assert in_fork(lambda: start(straight), straight / "log.txt") == 0, (
            straight / "log.txt"
        ).read_text()
        assert interrupted(folder / "interrupted") < 0
    expected = result_of(straight)
    status, output = resume(shutil.copytree(folder / "interrupted", folder / "undamaged"))
    assert status == 0, output
    assert result_of(folder / "undamaged") == expected
    for outcome in chain(
        outcomes(folder, kinds, expected, folder / "interrupted"),
        finished_outcomes(folder, straight, expected),
    ):
        print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(KINDS))
