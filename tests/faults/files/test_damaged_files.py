"""Tests that a damaged file of a run is named or restored, and never changes a result silently."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.environments import few
from tests.faults.files.damages import DAMAGES
from tests.faults.outcomes import GOOD, REFUSED, SAME, UNUSED, Outcome
from tests.faults.runs import results, train
from visenv.algos.trainer.update import Updater
from visenv.checksums import write_checksums
from visenv.errors import RunError, VisenvError

pytestmark = pytest.mark.component("torch")

KINDS = {
    "state of a checkpoint": "checkpoints/step_000003/state.json",
    "weights of a checkpoint": "checkpoints/step_000003/policy/weights.pt",
    "checksums of these weights": "checkpoints/step_000003/policy/checksums.json",
    "optimizer of a checkpoint": "checkpoints/step_000003/optimizer/shard_00000_of_00001.pt",
    "metrics in a checkpoint": "checkpoints/step_000003/logs/metrics.jsonl",
    "evaluations in a checkpoint": "checkpoints/step_000003/logs/evaluations.jsonl",
    "weights of an older checkpoint": "checkpoints/step_000002/policy/weights.pt",
    "metrics.jsonl": "metrics.jsonl",
    "evaluations.jsonl": "evaluations.jsonl",
    "settings of the journal": "journal/run.json",
    "episodes of the journal": "journal/step_000003/episodes_0.jsonl",
    "selection of the journal": "journal/step_000003/kept_0_of_1.json",
    "image of the journal": "journal/step_000003/images/*.png",
    "weights of the reference": "reference/step_000000/weights.pt",
    "checksums of the reference": "reference/step_000000/checksums.json",
    "weights of the best step": "best/step_*/weights.pt",
    "score of the best step": "best/step_*/score.json",
    "saved episodes": "episodes/step_000002.jsonl",
    "image of saved episodes": "episodes/images/*.png",
    "run.lock": "run.lock",
}
"""Each kind of file of a phase that was killed in its fourth step, after it had played it."""

ONLY_READ_BY_PEOPLE = {
    "weights of an older checkpoint",
    "weights of the best step",
    "saved episodes",
    "image of saved episodes",
}
"""Files that the run does not read again; those who load or view them check them."""


class Runs(NamedTuple):
    """Holds a run that was killed, and the results of one that was not."""

    killed: Path
    expected: tuple[Any, ...]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")
    expected = results(folder / "straight", train(folder / "straight"))
    with pytest.MonkeyPatch.context() as patched:
        _kill_in_update(patched, 4)
        with pytest.raises(_Killed):
            train(folder / "killed")
    assert (folder / "killed/journal/step_000003/kept_0_of_1.json").exists()
    return Runs(folder / "killed", expected)


class _Killed(BaseException):
    """Ends a run as `kill -9` does: nothing catches it."""


def _kill_in_update(patched: pytest.MonkeyPatch, step: int) -> None:
    original = Updater.update
    calls = 0

    def counted(self: Any, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == step:
            raise _Killed
        return original(self, *arguments)

    patched.setattr(Updater, "update", counted)


def outcome_of(
    kind: str, damage: str, runs: Runs, folder: Path, capsys: pytest.CaptureFixture[str]
) -> Outcome:
    """Damage a file of a copy of the run, resume the run, and return what happened."""
    shutil.copytree(runs.killed, folder)
    path = max(folder.glob(KINDS[kind]))
    DAMAGES[damage](path)
    damaged = path.read_bytes() if path.exists() else None
    capsys.readouterr()
    try:
        policy = train(folder, resume=True)
    except VisenvError as error:
        said = str(error).replace(str(folder), "run")
        named = path.name in said or str(path.parent.relative_to(folder)) in said
        return Outcome(kind, damage, REFUSED if named else "file not named", said)
    said = " ".join(line for line in capsys.readouterr().err.splitlines() if "Warning" in line)
    if results(folder, policy) != runs.expected:
        return Outcome(kind, damage, "other result", said)
    still = path.read_bytes() if path.exists() else None
    is_unused = kind in ONLY_READ_BY_PEOPLE and still == damaged
    return Outcome(kind, damage, UNUSED if is_unused else SAME, said.replace(str(folder), "run"))


FEW = [
    ("state of a checkpoint", "half of the file", REFUSED),
    ("weights of a checkpoint", "one bit", REFUSED),
    ("state of a checkpoint", "another digit", REFUSED),
    ("optimizer of a checkpoint", "one bit", REFUSED),
    ("optimizer of a checkpoint", "deleted", REFUSED),
    ("weights of the reference", "one bit", REFUSED),
    ("score of the best step", "one bit", REFUSED),
    ("metrics.jsonl", "deleted", SAME),
    ("evaluations.jsonl", "another digit", SAME),
    ("settings of the journal", "empty", REFUSED),
    ("selection of the journal", "another digit", SAME),
    ("episodes of the journal", "another digit", SAME),
    ("image of the journal", "empty", SAME),
    ("metrics.jsonl", "one bit", SAME),
    ("evaluations.jsonl", "half of the file", SAME),
    ("selection of the journal", "empty", SAME),
]


@pytest.mark.parametrize(("kind", "damage", "result"), few(FEW, 13))
def test_damaged_file_is_named_or_restored(
    kind: str,
    damage: str,
    result: str,
    runs: Runs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = outcome_of(kind, damage, runs, tmp_path / "run", capsys)
    assert outcome.result == result, outcome


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_changes_a_result_silently(
    kind: str,
    runs: Runs,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_fault: Callable[[Outcome], None],
) -> None:
    for damage in DAMAGES:
        outcome = outcome_of(kind, damage, runs, tmp_path / damage, capsys)
        record_fault(outcome)
        assert outcome.result in GOOD, outcome
        assert (outcome.result == UNUSED) <= (kind in ONLY_READ_BY_PEOPLE), outcome


def test_restored_metrics_are_reported_with_the_first_step(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(runs.killed, tmp_path / "run")
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text(lines[0] + lines[2])  # step 2 is missing
    assert results(folder, train(folder, resume=True)) == runs.expected
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "metrics.jsonl had no row, or a damaged one, of 1 of 3 steps (the first is step 2)" in said
    )


def test_changed_digit_of_the_results_of_a_recipe_is_an_error(tmp_path: Path) -> None:
    from visenv.algos.experiment.results import Results

    path = tmp_path / "results.json"
    Results(path).finish("rl", 7, 1.5)
    assert Results(path).steps == {"rl": 7}
    path.write_text(path.read_text().replace('"rl": 7', '"rl": 8'))
    with pytest.raises(RunError, match=r"results\.json holds no results of a run: it is damaged"):
        Results(path)


def test_gap_in_the_metrics_of_a_checkpoint_is_an_error(runs: Runs, tmp_path: Path) -> None:
    folder = shutil.copytree(runs.killed, tmp_path / "run")
    logs = folder / "checkpoints/step_000003/logs"
    for path in (folder / "metrics.jsonl", logs / "metrics.jsonl"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[2:]))
    write_checksums(logs)
    with pytest.raises(RunError, match=r"metrics\.jsonl has no metrics of 2 of 3 steps \(from ste"):
        train(folder, resume=True)


def test_step_that_was_read_from_the_journal_has_the_same_names_and_counts(
    runs: Runs, tmp_path: Path
) -> None:
    folder = shutil.copytree(runs.killed, tmp_path / "run")
    saved = json.loads((folder / "journal/step_000003/kept_0_of_1.json").read_text())
    train(folder, resume=True)
    rows = [
        [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        for run in (folder, runs.killed.with_name("straight"))
    ]
    (*_, resumed), (*_, straight) = rows
    assert resumed.keys() == straight.keys()
    for name in ("groups", "episodes", "retries", "cancelled"):
        assert resumed.get(f"rollout/{name}") == straight.get(f"rollout/{name}"), name
    assert resumed["rollout/longest_seconds"] == saved["report"]["rollout/longest_seconds"]
    assert resumed["seconds/play"] >= saved["seconds"] > 0
