"""Tests replicas and DeepSpeed with two processes, started by the launchers that users run.

On the first use of DeepSpeed on a machine, its build takes a minute or two.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.algos import toy
from tests.algos.distributed.launching import launch, start
from tests.algos.runs import metrics
from visenv.registration import load

PROGRAM = Path(__file__).with_name("program.py")

pytestmark = [
    pytest.mark.component("accelerate", "deepspeed", "torch"),
    pytest.mark.timeout(900),
]


RUNS = ("alone", "straight")


def _launch(how: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return launch(how, PROGRAM, *arguments)


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(folder / "final.pt", weights_only=True)
    return weights


def _try(how: str, model: str | Path, folder: Path, *more: str) -> None:
    """Check that gradients agree and that a run killed while saving resumes correctly."""
    begun = _launch(how, folder, model, "check", "bf16", "straight", "flat", *more, "killed")
    assert begun.stdout.count("all cases agree") == 2, begun.stderr
    assert begun.stdout.count("bf16 agrees") == 2, begun.stderr
    assert "exitcode  : -9" in begun.stderr, begun.stderr
    (flat,) = metrics(folder / "flat")
    assert (flat["skipped"], flat["grad_norm"]) == (1, 0)
    assert "OVERFLOW" not in begun.stdout + begun.stderr  # DeepSpeed's word for a skipped step
    saved = [path.name for path in (folder / "killed" / "checkpoints").iterdir()]
    assert sorted(saved) == [".step_000002", "step_000001"]
    resumed = _launch(how, folder, model, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert metrics(folder / "straight") == metrics(folder / "killed")
    evaluated = [
        (folder / name / "evaluations.jsonl").read_text() for name in ("straight", "killed")
    ]
    assert evaluated[0] == evaluated[1] != ""
    assert (folder / "straight" / "best" / "step_000002" / "score.json").exists()
    one, other = _weights(folder / "straight"), _weights(folder / "killed")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_zero_2_learns_what_one_process_does_which_reads_its_checkpoint(tmp_path: Path) -> None:
    _try("ZeRO-2", "", tmp_path)
    alone = _launch("alone", tmp_path, "", "alone", "resume")
    assert alone.returncode == 0, alone.stderr
    rows = zip(metrics(tmp_path / "alone"), metrics(tmp_path / "straight"), strict=True)
    for one, two in rows:
        assert two == pytest.approx(one, rel=1e-4, abs=1e-6)
        by_part = {name: value for name, value in one.items() if name.startswith("env/")}
        assert any("/kind/" in name for name in by_part)
        assert by_part == {name: value for name, value in two.items() if name.startswith("env/")}
    for one, two in zip(*map(_evaluations, (tmp_path / name for name in RUNS)), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-6)
    read, written = _weights(tmp_path / "killed"), _weights(tmp_path / "straight")
    assert all(torch.equal(read[name], written[name]) for name in written)
    policy = toy.ToyPolicy(seed=7)
    policy.load_weights(tmp_path / "straight" / "checkpoints" / "step_000003" / "policy")
    expected = _weights(tmp_path / "straight").values()
    assert all(map(torch.equal, policy.parameters(), expected))


@pytest.mark.component("transformers")
def test_zero_3_trains_a_real_model(tmp_path: Path) -> None:
    model = load("model", "tiny")(tmp_path / "tiny", seed=0)
    _try("ZeRO-3", model, tmp_path, "shards")
    # A model that is loaded in shards learns the same; sharding.py measures its memory.
    rows = zip(metrics(tmp_path / "straight"), metrics(tmp_path / "shards"), strict=True)
    for one, two in rows:
        assert two == pytest.approx(one, rel=1e-9)
    *_, checkpoint = sorted((tmp_path / "shards" / "checkpoints").iterdir())
    loaded = load("policy", "transformers")(model, threads=1)
    loaded.load_weights(checkpoint / "policy")
    named = dict(loaded.module.named_parameters())
    for name, weight in _weights(tmp_path / "straight").items():
        torch.testing.assert_close(named[name], weight, rtol=1e-5, atol=1e-6)
    policy = load("policy", "transformers")(model, threads=1)
    policy.load_weights(tmp_path / "straight" / "checkpoints" / "step_000003" / "policy")
    named = dict(policy.module.named_parameters())
    for name, weight in _weights(tmp_path / "straight").items():
        assert torch.equal(named[name], weight)


@pytest.mark.component("transformers")
@pytest.mark.parametrize("how", ["ZeRO-1", "ZeRO-2", "ZeRO-3"])
def test_run_continues_with_another_number_of_processes(tmp_path: Path, how: str) -> None:
    model = load("model", "tiny")(tmp_path / "tiny", seed=0) if how == "ZeRO-3" else ""
    one = f"{how}, one process"
    for launched, tasks, begun, shards in (
        (how, ["straight", "begin two-one"], "two-one", 2),
        (one, ["go on with two-one", "begin one-two"], "one-two", 1),
        (how, ["go on with one-two"], "straight", 0),
    ):
        done = _launch(launched, tmp_path, model, *tasks)
        assert done.returncode == 0, done.stderr
        saved = (tmp_path / begun / "checkpoints").glob("step_000001/optimizer/*")
        assert len(list(saved)) == shards  # later checkpoints replace that of step 1
    straight = tmp_path / "straight"
    for resumed in (tmp_path / "two-one", tmp_path / "one-two"):
        rows = zip(metrics(straight), metrics(resumed), strict=True)
        for row, other in rows:
            assert other == pytest.approx(row, rel=1e-4, abs=1e-6)
        weights = _weights(resumed)
        # The order of sums differs, and AdamW amplifies the rounding of gradients near 0. A lost
        # moment would change the weights by a step, i.e. by the learning rate of 0.01.
        for name, expected in _weights(straight).items():
            torch.testing.assert_close(weights[name], expected, rtol=0, atol=1e-3 * 0.01)


def test_processes_stop_with_a_checkpoint_when_their_launcher_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "long"
    launcher = start("replicas", PROGRAM, tmp_path, "", "long")
    with launcher:
        _wait_until((folder / "checkpoints" / "step_000002").is_dir)
        processes = [int(path.read_text()) for path in sorted(folder.glob("*.pid"))]
        launcher.kill()
    assert len(processes) == 2
    _wait_until(lambda: not any(map(_is_alive, processes)))
    *_, last = sorted((folder / "checkpoints").iterdir())
    steps = len((folder / "metrics.jsonl").read_text().splitlines())
    assert last.name == f"step_{steps:06d}"  # both processes saved one checkpoint, of the same step


def _evaluations(folder: Path) -> list[dict[str, float]]:
    """Return the rows that the evaluations of a run wrote."""
    lines = (folder / "evaluations.jsonl").read_text().splitlines()
    assert lines
    return [json.loads(line) for line in lines]


def _is_alive(process: int) -> bool:
    """Return whether a process runs; zombie processes do not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_until(happened: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "It did not happen in time."
        time.sleep(0.1)


def test_replicas_agree_and_one_that_hangs_is_an_error_with_a_name(tmp_path: Path) -> None:
    done = _launch("replicas", tmp_path, "", "check", "hang")
    assert done.stdout.count("all cases agree") == 2, done.stderr
    said = (
        "RunError: Process 0 of 2 lost another one, or waited for it longer than the timeout of 3"
    )
    assert said in done.stderr
    assert "Timed out waiting 3000ms" in done.stderr  # the other process did not end
