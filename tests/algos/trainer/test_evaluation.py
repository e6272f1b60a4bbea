"""Tests evaluation during training: scores, best weights, and no effect on the training itself."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from tests.algos import toy
from tests.algos.runs import Sloped, metrics
from tests.faults.processes.faulty_echo import FaultyEcho
from visenv.algos.trainer import HeldOut, RolloutConfig, Trainer, TrainerConfig
from visenv.algos.trainer.evaluation import HeldOutScore, flattened, play_held_out
from visenv.algos.trainer.placement import Placement
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.rollout import ProcessExecutor, ThreadExecutor
from visenv.types import Episode, Turn

pytestmark = pytest.mark.component("torch", "tensorboard")

CONFIG = TrainerConfig(
    steps=6, rollouts=RolloutConfig(prompts_per_step=3, num_generations=4, max_tokens=3)
)
HELD_OUT = HeldOut({"echo": toy.Echo}, {"echo": "reward"}, episodes=5, max_tokens=3, every=2)


def run(folder: Path, **changes: Any) -> toy.ToyPolicy:
    policy = toy.ToyPolicy(dropout=0.3)
    Trainer(policy, Sloped(), CONFIG, folder=folder, **changes).train(toy.Echo)
    return policy


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "evaluations.jsonl").read_text().splitlines()]


def test_evaluation_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    plain, evaluated = run(tmp_path / "a"), run(tmp_path / "b", held_out=HELD_OUT)
    assert plain.weights() == evaluated.weights()
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")


def test_evaluations_come_every_few_steps_on_the_same_samples(tmp_path: Path) -> None:
    seeds: list[int] = []
    held_out = replace(HELD_OUT, make_envs={"echo": lambda: toy.Echo(on_reset=seeds.append)})
    run(tmp_path / "run", held_out=held_out)
    assert [row["step"] for row in rows(tmp_path / "run")] == [2, 4, 6]
    assert len(seeds) == 3 * 2 * 5  # greedy and sampled
    assert len(set(seeds)) == 5


def test_environments_are_closed_if_an_evaluation_fails() -> None:
    made: list[Echo] = []

    class Echo(toy.Echo):
        is_closed = False

        @override
        def close(self) -> None:
            self.is_closed = True

    class Broken(toy.ToyPolicy):
        @override
        async def respond(self, *args: Any) -> Any:
            raise ZeroDivisionError

    def make() -> Echo:
        made.append(Echo())
        return made[-1]

    with pytest.raises(ZeroDivisionError):
        next(play_held_out(Broken(), {"echo": make}, 2, 3, 1.0))
    assert [env.is_closed for env in made] == [True] * len(made)
    assert len(made) > 1


@pytest.mark.slow
def test_environments_of_an_evaluation_run_where_the_placement_says(tmp_path: Path) -> None:
    policy = toy.ToyPolicy()
    # One of 25 steps ends its process, once.
    make = partial(FaultyEcho, tmp_path, os.getpid(), "calls os._exit")
    placement = Placement(ProcessExecutor, 2)
    plays = list(play_held_out(policy, {"echo": make}, 20, 3, 1.0, placement=placement))
    whole = list(play_held_out(policy, {"echo": toy.Echo}, 20, 3, 1.0))
    failures = [each.failure for played in plays for each in played.episodes if each.failure]
    assert {(each.source, each.reason) for each in failures} == {
        ("worker", "the process ended with exit code 3.")
    }
    assert len(failures) == len(list(tmp_path.glob("fault-*")))
    for played, expected in zip(plays, whole, strict=True):
        pairs = zip(played.episodes, expected.episodes, strict=True)
        assert all(each.failure or each.reward == other.reward for each, other in pairs)


def test_deterministic_mode_of_a_placement_depends_on_executor_and_policy() -> None:
    threads, engine = Placement(ThreadExecutor), toy.ToyEngine()
    placed = [
        (Placement(), toy.ToyPolicy()), (threads, toy.ToyPolicy()), (threads, engine)
    ]  # fmt: skip
    collectors = [placement.collector(toy.Echo, policy) for placement, policy in placed]
    assert [each._steps is not None for each in collectors] == [False, True, False]


def test_best_weights_are_those_of_the_highest_headline_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([0.25, 0.75, 0.75])  # of equal values, the first is kept
    monkeypatch.setattr(HeldOut, "headline", lambda *_: next(values))
    policy = toy.ToyPolicy(dropout=0.3)
    config = replace(CONFIG, saving=replace(CONFIG.saving, checkpoint_every=2, keep_checkpoints=3))
    folder = tmp_path / "run"
    Trainer(policy, Sloped(), config, folder=folder, held_out=HELD_OUT).train(toy.Echo)
    (best,) = (folder / "best").iterdir()
    assert best.name == "step_000004"
    assert json.loads((best / "score.json").read_text()) == {"step": 4, "headline": 0.75}
    checkpoint = folder / "checkpoints" / "step_000004" / "policy"
    names = {path.name for path in checkpoint.iterdir()}
    assert {path.name for path in best.iterdir()} == {*names, "score.json"}
    assert (best / "weights.pt").read_bytes() == (checkpoint / "weights.pt").read_bytes()


def test_headline_is_the_mean_over_environments_of_greedy_scores() -> None:
    told = HeldOut(
        {"a": toy.Echo, "b": toy.Echo, "c": toy.Echo},
        {"a": "accuracy", "b": "reward", "c": "accuracy"},
        1, 1, 1,
    )  # fmt: skip
    scores = {
        "a": {"greedy": HeldOutScore(1, 9.0, {"accuracy": 0.5}), "sampled": HeldOutScore(1, 9.0)},
        "b": {"greedy": HeldOutScore(1, 0.25), "sampled": HeldOutScore(1, 9.0)},
        "c": {
            "greedy": HeldOutScore(0, 9.0),
            "sampled": HeldOutScore(1, 9.0),
        },  # no episode has this metric: 0
    }
    assert told.headline(scores) == pytest.approx((0.5 + 0.25 + 0.0) / 3)


def test_misspelled_headline_is_no_score_of_0() -> None:
    held_out = HeldOut({"a": toy.Echo}, {"a": "acuracy"}, 1, 1, 1)
    scores = {"a": {"greedy": HeldOutScore(1, 9.0, {"accuracy": 0.5, "hit": 1.0})}}
    with pytest.raises(UnknownNameError, match=r"environment 'a' .*Did you mean 'accuracy'"):
        held_out.headline(scores)
    assert HeldOut({"a": toy.Echo}, {"a": "success"}, 1, 1, 1).headline(scores) == 0


def episode(kind: str, accuracy: float) -> Episode:
    turns = (Turn((), "", accuracy, (), "stop"),)
    told = ("e-v0", kind + str(accuracy), kind, 0, 0, 0, turns, "terminated")
    return Episode(*told, metrics={"accuracy": accuracy})  # type: ignore[arg-type]


def test_scores_are_listed_by_environment_way_and_kind() -> None:
    score = HeldOutScore.of([episode("count", 1.0), episode("count", 0.0), episode("text", 1.0)])
    assert score.kinds == {"count": {"accuracy": 0.5}, "text": {"accuracy": 1.0}}
    flat = flattened({"zoom": {"greedy": score}})
    assert flat["eval/zoom/greedy/accuracy"] == pytest.approx(2 / 3)
    assert flat["eval/zoom/greedy/accuracy/count"] == 0.5
    assert flat["eval/zoom/greedy/accuracy/text"] == 1.0
    assert flat["eval/zoom/greedy/reward"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "wrong", [{"episodes": 0}, {"every": 0}, {"max_tokens": 0}, {"headlines": {}}]
)
def test_held_out_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        replace(HELD_OUT, **wrong)


def test_engine_plays_the_held_out_samples_with_the_weights_of_the_step(tmp_path: Path) -> None:
    versions: list[int] = []

    class Watched(toy.ToyEngine):
        @override
        def open(self, seed: int) -> toy.ToySession:
            versions.append(self.version)
            return super().open(seed)

    config = replace(CONFIG, steps=2)
    trainer = Trainer(
        toy.ToyPolicy(), Sloped(), config, folder=tmp_path / "run", sampler=Watched(),
        held_out=HELD_OUT,
    )  # fmt: skip
    trainer.train(toy.Echo)
    assert versions[-10:] == [2] * 10
