"""Tests the example of a new algorithm: its numbers, and that it runs as its page describes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.programs import load_program, run_python
from visenv.types import Episode, Segment, Turn, TurnSpan

EXAMPLE = Path(__file__).parents[2] / "examples" / "new_algorithm.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_program("examples/new_algorithm.py")


def _episode(reward: float, tokens: int) -> Episode:
    zeros, mask = np.zeros(tokens + 1, np.int32), np.arange(tokens + 1) > 0
    spans = (TurnSpan(0, 1, tokens + 1, "stop"),)
    numbers = (zeros, mask, zeros.astype(np.float32), zeros)
    segment = Segment(*numbers, spans, (), (9,), 1.0, "none")
    turn = Turn((), "", reward, (), "stop")
    return Episode("e-v0", "s", "", 0, 0, 0, (turn,), "terminated", segments=(segment,))


@pytest.mark.component("torch")
def test_baseline_counts_tokens(example: ModuleType) -> None:
    # (3 · 1 + 1 · 0 + 4 · .5) / 8 = .625
    group = [_episode(1.0, 3), _episode(0.0, 1), _episode(0.5, 4)]
    assert example.baseline(group) == 0.625
    assert [float(each) for each in example.OPO().advantages([group])[0]] == [0.375, -0.625, -0.125]
    # the policy sampled no token, so that there is nothing to learn
    assert example.baseline([_episode(1.0, 0)]) == 0.0


@pytest.mark.component("torch")
def test_loss_by_hand(example: ModuleType) -> None:
    import torch

    from visenv.algorithm import Batch

    logprobs = torch.tensor([[-1.0, -2.0], [-3.0, -9.0]])
    advantages = torch.tensor([[0.5, 0.5], [-0.5, 9.0]])
    mask = torch.tensor([[True, True], [True, False]])
    batch = Batch(
        logprobs, logprobs, logprobs, None, mask.float(), advantages, mask, mask.sum(-1), 3, 2
    )
    # -(.5 · (-1 - 2) + -.5 · -3) / 2 = 0; with A = 1 for both, the loss would be 3
    assert float(example.OPO().loss(batch).value) == 0.0
    ones = replace(batch, advantages=torch.ones(2, 2))
    assert float(example.OPO().loss(ones).value) == 3.0


@pytest.mark.soak
@pytest.mark.component("torch", "transformers", "tensorboard")
def test_new_algorithm_runs_as_documented(tmp_path: Path) -> None:
    sizes = ["--steps", "2", "--prompts-per-step", "2", "--num-generations", "2", "--threads", "1"]
    command = [str(EXAMPLE), *sizes, "--folder", str(tmp_path / "opo")]
    done = run_python(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "visenv view" in done.stdout
    rows = (tmp_path / "opo" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["step"] for row in rows] == [1, 2]
    again = run_python(*command, cwd=tmp_path)
    assert again.returncode == 1
    assert "holds a run already" in again.stderr
