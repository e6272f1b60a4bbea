"""Tests replicas and DeepSpeed with two processes, started by the launchers that users run."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.algos import toy
from tests.algos.distributed.launching import launch, start
from tests.algos.runs import metrics
from tests.environments import few
from tests.listeners import family, listeners, require_listed
from tests.policies.transformers import families
from tests.tiny_models import tiny_model
from visenv.registration import load

PROGRAM = Path(__file__).with_name("program.py")

pytestmark = [
    pytest.mark.component("accelerate", "deepspeed", "torch"),
    pytest.mark.timeout(900),
]


class Launched(NamedTuple):
    """Holds the first launch of a ZeRO stage, and the folder of the runs of all its launches.

    Attributes:
        folder: The parent of the folders of the runs.
        model: The folder of the real model; empty for the toy model.
        done: Two processes, which check gradients, and train the runs ``straight`` and ``two-one``.
    """

    folder: Path
    model: str
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Launched]:
    """Return a function that starts the first launch of a ZeRO stage, once for each stage."""

    @cache
    def run(how: str) -> Launched:
        folder = tmp_path_factory.mktemp(how)
        model = str(tiny_model(folder / "tiny")) if how == "ZeRO-3" else ""
        tasks = ["straight", "begin two-one"]
        if how != "ZeRO-1":
            tasks = ["check", "bf16", "flat", *tasks]
        return Launched(folder, model, _launch(how, folder, model, *tasks))

    return run


def _launch(how: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return launch(how, PROGRAM, *arguments)


def _weights(folder: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = torch.load(folder / "final.pt", weights_only=True)
    return weights


@pytest.mark.component("transformers")
@pytest.mark.parametrize("how", few(["ZeRO-3", "ZeRO-2"], 1))
def test_gradients_are_those_of_one_process(launched: Callable[[str], Launched], how: str) -> None:
    folder, _, done = launched(how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all cases agree") == 2, done.stderr
    assert done.stdout.count("bf16 agrees") == 2, done.stderr
    assert "built successfully" not in done.stdout  # DeepSpeed's word for a compiled kernel
    (flat,) = metrics(folder / "flat")
    assert (flat["skipped"], flat["grad_norm"]) == (1, 0)
    assert "OVERFLOW" not in done.stdout + done.stderr  # DeepSpeed's word for a skipped step


@pytest.mark.soak
@pytest.mark.component("transformers")
@pytest.mark.parametrize("how", ["ZeRO-3", "ZeRO-2"])
def test_killed_run_resumes_to_the_same_bits(launched: Callable[[str], Launched], how: str) -> None:
    folder, model, _ = launched(how)
    killed = _launch(how, folder, model, "killed")
    assert "exitcode  : -9" in killed.stderr, killed.stderr
    left = sorted(path.name for path in folder.glob("killed/checkpoints/*"))
    assert left == [".step_000002", "step_000001"]  # the checkpoint of step 2 was not published
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


@pytest.mark.soak
def test_zero_2_learns_what_one_process_does_which_reads_its_checkpoint(
    launched: Callable[[str], Launched], tmp_path: Path
) -> None:
    folder = launched("ZeRO-2").folder
    shutil.copytree(folder / "straight", tmp_path / "straight")
    alone = _launch("alone", tmp_path, "", "alone", "go on with straight")
    assert alone.returncode == 0, alone.stderr
    rows = zip(metrics(tmp_path / "alone"), metrics(folder / "straight"), strict=True)
    for one, two in rows:
        assert two == pytest.approx(one, rel=1e-4, abs=1e-6)
        by_part = {name: value for name, value in one.items() if name.startswith("env/")}
        assert any("/kind/" in name for name in by_part)
        assert by_part == {name: value for name, value in two.items() if name.startswith("env/")}
    runs = tmp_path / "alone", folder / "straight"
    for one, two in zip(*map(_evaluations, runs), strict=True):
        assert two == pytest.approx(one, rel=1e-4, abs=1e-6)
    read, written = _weights(tmp_path / "straight"), _weights(folder / "straight")
    assert all(torch.equal(read[name], written[name]) for name in written)
    policy = toy.ToyPolicy(seed=7)
    policy.load_weights(folder / "straight" / "checkpoints" / "step_000003" / "policy")
    assert all(map(torch.equal, policy.parameters(), written.values()))


@pytest.mark.soak
@pytest.mark.component("transformers")
def test_zero_3_loads_a_real_model_in_shards_and_saves_it_whole(
    launched: Callable[[str], Launched],
) -> None:
    folder, model, _ = launched("ZeRO-3")
    done = _launch("ZeRO-3", folder, model, "shards")
    assert done.returncode == 0, done.stderr
    # A model that is loaded in shards learns the same; sharding.py measures its memory.
    rows = zip(metrics(folder / "straight"), metrics(folder / "shards"), strict=True)
    for one, two in rows:
        assert two == pytest.approx(one, rel=1e-9)
    *_, checkpoint = sorted((folder / "shards" / "checkpoints").iterdir())
    loaded = load("policy", "transformers")(model, threads=1)
    loaded.load_weights(checkpoint / "policy")
    named = dict(loaded.module.named_parameters())
    for name, weight in _weights(folder / "straight").items():
        torch.testing.assert_close(named[name], weight, rtol=1e-5, atol=1e-6)
    policy = load("policy", "transformers")(model, threads=1)
    policy.load_weights(folder / "straight" / "checkpoints" / "step_000003" / "policy")
    named = dict(policy.module.named_parameters())
    for name, weight in _weights(folder / "straight").items():
        assert torch.equal(named[name], weight)


@pytest.mark.component("transformers")
@pytest.mark.parametrize("how", few(["ZeRO-3", "ZeRO-2", "ZeRO-1"], 1))
def test_run_of_two_processes_continues_with_one(
    launched: Callable[[str], Launched], how: str
) -> None:
    folder, model, _ = launched(how)
    done = _launch(f"{how}, one process", folder, model, "go on with two-one")
    assert done.returncode == 0, done.stderr
    _check_continued(folder / "two-one", folder / "straight")


@pytest.mark.soak
@pytest.mark.component("transformers")
@pytest.mark.parametrize("how", ["ZeRO-3", "ZeRO-2", "ZeRO-1"])
def test_run_of_one_process_continues_with_two(
    launched: Callable[[str], Launched], how: str
) -> None:
    folder, model, _ = launched(how)
    alone = _launch(f"{how}, one process", folder, model, "one", "begin one-two")
    assert alone.returncode == 0, alone.stderr
    done = _launch(how, folder, model, "go on with one-two")
    assert done.returncode == 0, done.stderr
    _check_continued(folder / "one-two", folder / "one")


def _check_continued(run: Path, whole: Path) -> None:
    """Check a run that continued with another number of processes against a complete run."""
    # Weights and moments are copied exactly. Step 1 consists of two updates.
    saved, loaded = _optimizer(run / "update 2"), _optimizer(run / "loaded")
    assert saved.keys() == loaded.keys() != set()
    for part, value in saved.items():
        assert torch.equal(loaded[part], value), part
    # Only the order of sums differs in the next update. The moments are linear in the gradient
    # and in its square. AdamW amplifies the rounding of gradients near 0 in the weights.
    expected, found = _optimizer(whole / "update 3"), _optimizer(run / "update 3")
    assert expected.keys() == found.keys() == saved.keys()
    certain = {
        parameter: value.abs() > 1e-5
        for (parameter, key), value in expected.items()
        if key == "exp_avg"
    }
    assert any(chosen.any() for chosen in certain.values())
    for (parameter, key), value in expected.items():
        chosen = certain[parameter] if key == "weights" else torch.ones_like(value) == 1
        torch.testing.assert_close(
            found[parameter, key][chosen], value[chosen], rtol=2e-4, atol=1e-6
        )
    for row, other in zip(metrics(whole)[:2], metrics(run), strict=False):
        assert other == pytest.approx(row, rel=1e-4, abs=1e-6)


def _optimizer(folder: Path) -> dict[tuple[str, str], torch.Tensor]:
    """Join the shards of an optimizer: weights, moments and step of every parameter."""
    parts: dict[tuple[str, str], list[tuple[int, torch.Tensor]]] = defaultdict(list)
    for path in folder.glob("shard_*.pt"):
        for name, entry in torch.load(path, weights_only=True)["parameters"].items():
            for key, values in entry["values"].items():
                parts[name, key].append((entry["start"], values))
            for key, number in entry["numbers"].items():
                parts[name, key] = [(0, torch.as_tensor(number).reshape(1))]
    return {
        part: torch.cat([values for _, values in sorted(found, key=lambda pair: pair[0])])
        for part, found in parts.items()
    }


@pytest.mark.attack("servers: the table of listeners is complete")
def test_processes_listen_as_documented_and_stop_with_a_checkpoint_when_their_launcher_is_killed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "long"
    launcher = start("replicas", PROGRAM, tmp_path, "", "long")
    with launcher:
        _wait_until((folder / "checkpoints" / "step_000002").is_dir)
        processes = [int(path.read_text()) for path in sorted(folder.glob("*.pid"))]
        found = listeners(family(launcher.pid))
        launcher.kill()
    require_listed("torchrun", found)
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


@pytest.mark.component("transformers")
def test_replicas_agree_and_one_that_hangs_is_an_error_with_a_name(tmp_path: Path) -> None:
    padded = families.build("gemma3", tmp_path / "gemma3")
    done = _launch("replicas", tmp_path, padded, "check", "check toy", "demonstrations", "hang")
    assert done.stdout.count("all cases agree") == 4, done.stderr
    assert done.stdout.count("demonstrations agree") == 2, done.stderr
    said = (
        "RunError: Process 0 of 2 lost another one, or waited for it longer than the timeout of 3"
    )
    assert said in done.stderr
    assert "Timed out waiting 3000ms" in done.stderr  # the other process did not end
