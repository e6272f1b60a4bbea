"""Tests the example with three levels: each runs as its page describes, and computes correctly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from tests.environments import few
from tests.programs import load_program, run_python
from tests.tiny_models import tiny_model
from visenv.registration import load
from visenv.rollout import Collector
from visenv.types import Episode, Sampling, Turn

EXAMPLE = Path(__file__).parents[2] / "examples" / "plug_new_algorithm.py"

pytestmark = pytest.mark.component("torch", "transformers", "tensorboard")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    return load_program("examples/plug_new_algorithm.py")


def test_episodes_worse_than_the_group_teach_nothing(example: ModuleType) -> None:
    turn = Turn((), "", 0.0, (), "stop")
    group = [
        Episode("e-v0", "s", "", 0, 0, 0, (replace(turn, reward=reward),), "terminated")
        for reward in (1.0, 0.0)
    ]
    ((better, worse),) = example.BetterHalf().advantages([group])
    # mean .5, standard deviation with n - 1: sqrt(.5); (1 - .5) / .7071 = .7071
    assert float(better) == pytest.approx(0.7071, abs=2e-4)
    assert float(worse) == 0


def test_tensors_score_as_our_scorer_does(example: ModuleType, tmp_path: Path) -> None:
    import torch

    policy = load("policy", "transformers")(tiny_model(tmp_path), threads=1)
    collector = Collector(example.make_env, policy, Sampling(max_tokens=6))
    ((episode,),) = collector.groups([0])
    inputs = example.tensors(episode, policy)
    sampled = inputs.pop("sampled")
    with torch.no_grad():
        logits = policy.network.model(**inputs).logits
        logits[..., torch.from_numpy(policy.codec.banned)] = -torch.inf
        # the last turn has a regular expression, which our scorer applies
        (first, *_) = episode.segments[0].turns
        ours = policy.score(episode.segments, {each.sha256: each for each in episode.images})
    logprobs = torch.log_softmax(logits, -1)[0, :-1]
    theirs = logprobs.gather(1, inputs["input_ids"][0, 1:, None])[:, 0]
    assert sampled[0, first.start : first.end].all()
    torch.testing.assert_close(
        theirs[first.start - 1 : first.end - 1],
        ours.logprobs[0, first.start : first.end],
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("level", few(["gymnasium", "episodes", "algorithm"], 1))
def test_plug_new_algorithm_runs_as_documented(level: str, tmp_path: Path) -> None:
    sizes = ["--steps", "2", "--prompts-per-step", "2", "--num-generations", "2"]
    command = [str(EXAMPLE), "--level", level, *sizes]
    command += ["--folder", str(tmp_path / "plug")]
    done = run_python(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    if level == "algorithm":
        rows = (tmp_path / "plug" / "run" / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(row)["step"] for row in rows] == [1, 2]
    else:
        said = [line.partition(":")[0] for line in done.stdout.splitlines()]
        assert said == ["step 1", "step 2"]


def test_learner_of_texts_learns(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    example.main(example.Args(level="gymnasium", steps=10, prompts_per_step=6))
    rewards = [float(line.rpartition(" ")[2]) for line in capsys.readouterr().out.splitlines()]
    assert sum(rewards[-3:]) > sum(rewards[:3]) + 0.1
