"""Damages every kind of file of a run, resumes it, and prints what happened in each case.

::

    python -m tests.faults.files.damaged_files FOLDER [KIND …]

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # otherwise the first optimizer step loads it in every fork

from tests.algos.experiment.kill_points import load_packages
from tests.algos.runs import metrics
from tests.algos.trainer.kill_points import dying
from visenv import cli
from visenv.algos.experiment import read_recipe, recipe_path, run_recipe

WORDS = [
    "--name", "job", "--no-controls", "--model.options.threads", "1",
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

KINDS = {
    "recipe": "recipe.json",
    "results": "results.json",
    "model: weights": "model/model.safetensors",
    "model: configuration": "model/config.json",
    "model: tokenizer": "model/tokenizer.json",
    "model: checksums": "model/checksums.json",
    "warm-up: weights": "warm-up/checkpoints/step_000002/policy/model.safetensors",
    "warm-up: metrics": "warm-up/metrics.jsonl",
    "checkpoint: state": "rl/checkpoints/step_000002/state.json",
    "checkpoint: weights": "rl/checkpoints/step_000002/policy/model.safetensors",
    "checkpoint: tokenizer": "rl/checkpoints/step_000002/policy/tokenizer.json",
    "checkpoint: optimizer": "rl/checkpoints/step_000002/optimizer/shard_00000_of_00001.pt",
    "checkpoint: metrics": "rl/checkpoints/step_000002/logs/metrics.jsonl",
    "earlier checkpoint: weights": "rl/checkpoints/step_000001/policy/model.safetensors",
    "metrics": "rl/metrics.jsonl",
    "evaluations": "rl/evaluations.jsonl",
    "journal: settings": "rl/journal/run.json",
    "journal: episodes": "rl/journal/step_000002/episodes_0.jsonl",
    "journal: selection": "rl/journal/step_000002/kept_0_of_1.json",
    "journal: image": "rl/journal/step_000002/images/*.png",
    "reference: weights": "rl/reference/step_000000/model.safetensors",
    "best weights": "rl/best/step_*/model.safetensors",
    "score of the best weights": "rl/best/step_*/score.json",
    "saved episodes": "rl/episodes/step_000002.jsonl",
    "image of saved episodes": "rl/episodes/images/*.png",
    "episodes of an evaluation": "evaluation/after-warm-up/*.jsonl",
    "TensorBoard": "rl/tensorboard/events.*",
}
"""Each kind of file of a run that was interrupted in its third step of RL."""


def _half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: os.truncate(path, 0),
    "half": _half,
    "one bit": _flipped,
    "deleted": Path.unlink,
}


@dataclass(frozen=True)
class Outcome:
    """Describes what happened when a damaged run was resumed.

    Attributes:
        kind: The kind of the file, one of `KINDS`.
        damage: One of `DAMAGES`.
        result: ``"same result"``, ``"refused"`` (one sentence that names the file), or what is
            wrong: ``"traceback"``, ``"no name"``, ``"other result"``.
        said: The sentence of the error, or of the warning.
    """

    kind: str
    damage: str
    result: str
    said: str


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
        dying(torch.optim.AdamW, "step", 2 + 3)()
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
    weights = {
        path.parent.name: path.read_bytes()
        for path in job.glob("*/checkpoints/step_*/policy/*.safetensors")
    }
    evaluations = [json.loads(line) for line in _lines(job / "rl" / "evaluations.jsonl")]
    return {
        "scores": scores["scores"],
        "steps": scores["steps"],
        "weights": weights[max(weights)],
        "metrics": [metrics(job / phase) for phase in ("warm-up", "rl")],
        "evaluations": evaluations,
    }


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


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
            runs = folder / "copy"
            shutil.rmtree(runs, ignore_errors=True)
            shutil.copytree(source, runs)
            path = max((runs / "job").glob(KINDS[kind]))
            apply(path)
            status, output = resume(runs)
            yield Outcome(kind, damage, *_judged(status, output, path, runs, straight))


def _judged(
    status: int, output: str, path: Path, runs: Path, straight: dict[str, Any]
) -> tuple[str, str]:
    said = [line for line in output.splitlines() if line.startswith(("visenv: ", "Warning: "))]
    last = (said[-1] if said else "").replace(str(runs), "runs")
    if "Traceback" in output:
        return "traceback", output.splitlines()[-1]
    if status == 0:
        same = result_of(runs) == straight
        return ("same result" if same else "other result"), last
    named = path.name in last or path.parent.name in last
    return ("refused" if named else "no name"), last or output[-300:]


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
    for outcome in outcomes(folder, kinds, expected, folder / "interrupted"):
        print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or list(KINDS))
