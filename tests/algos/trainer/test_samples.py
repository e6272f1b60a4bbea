"""Tests the samples of a run: rows in epochs, environments by weight and by pass rate."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos import toy
from tests.algos.runs import Sloped, metrics
from visenv.algos.trainer import RolloutConfig, SavingConfig, Trainer, TrainerConfig
from visenv.algos.trainer.episode_sources.samples import DECAY, SampleOrder
from visenv.env import EpisodeLimits
from visenv.errors import RunError
from visenv.grammar import KeyValueGrammar
from visenv.rollout import Mixture
from visenv.testing.toy import Adder, Sums
from visenv.types import Episode, Turn

GROUPS = 4


class Rows:
    """Represents a finite source with a given number of rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, index: int) -> Any:
        return Sums().sample(np.random.default_rng(index))


def adder(rows: int | None) -> Adder:
    source = Sums() if rows is None else Rows(rows)
    return Adder(source=source, grammar=KeyValueGrammar(), limits=EpisodeLimits(4))


def order(rows: Sequence[int | None], ahead: int = 0, by_pass_rate: bool = False) -> SampleOrder:
    makers = {f"e{number}": partial(adder, count) for number, count in enumerate(rows)}
    mixture = Mixture(makers, dict.fromkeys(makers, 1.0), by_pass_rate)
    return SampleOrder(mixture, GROUPS, seed=3, ahead=ahead)


def played(samples: SampleOrder, steps: int) -> list[tuple[str, int | None]]:
    choices = [samples.choose(step, n) for step in range(steps) for n in range(GROUPS)]
    return [(choice.env, choice.row) for choice in choices]


@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.integers(1, 9), min_size=1, max_size=3), steps=st.integers(1, 12))
def test_rows_are_played_once_in_every_epoch(rows: list[int], steps: int) -> None:
    choices = played(order(rows), steps)
    for number, count in enumerate(rows):
        taken = [index for env, index in choices if env == f"e{number}"]
        for start in range(0, len(taken), count):
            epoch = taken[start : start + count]
            assert len(set(epoch)) == len(epoch)
            assert all(index is not None and 0 <= index < count for index in epoch)


def test_orders_of_two_epochs_differ_and_runs_agree() -> None:
    choices = played(order([16]), 8)
    assert choices[:16] != choices[16:]
    assert choices == played(order([16]), 8)


def test_order_does_not_depend_on_which_step_is_asked_first() -> None:
    straight, late = order([5, 7]), order([5, 7])
    expected = played(straight, 6)
    assert [late.choose(5, n)[1:] for n in range(GROUPS)] == expected[-GROUPS:]


def test_procedural_samples_have_no_row() -> None:
    assert {index for _, index in played(order([None]), 3)} == {None}


def test_replacing_groups_leave_the_epochs_as_they_are() -> None:
    plain, spare = order([6]), order([6])
    extra = [spare.choose(step, GROUPS + n).row for step in range(6) for n in range(3)]
    assert played(plain, 6) == played(spare, 6)
    assert all(index is not None and 0 <= index < 6 for index in extra)


def episode(samples: SampleOrder, step: int, number: int, accuracy: float) -> Episode:
    seed, _, _ = samples.choose(step, number)
    told = ("e-v0", "s", "", seed, number, 0, (Turn((), "", 0.0, (), "stop"),), "terminated")
    return Episode(*told, metrics={"accuracy": accuracy})  # type: ignore[arg-type]


def observe(samples: SampleOrder, step: int, rates: dict[str, float]) -> None:
    """Report a step to `samples` in which each environment has the given pass rate."""
    groups = [
        [episode(samples, step, number, rates[samples.choose(step, number).env])]
        for number in range(GROUPS)
    ]
    samples.observe(step, groups)


def test_pass_rates_by_hand() -> None:
    samples = order([None], by_pass_rate=True)
    observe(samples, 0, {"e0": 1.0})
    assert samples.state(1)["rates"]["1"]["e0"] == pytest.approx(DECAY * 0.5 + 0.1 * 1.0)
    observe(samples, 1, {"e0": 0.0})
    assert samples.state(2)["rates"]["2"]["e0"] == pytest.approx(0.9 * 0.55)


def test_environment_that_is_always_solved_is_played_less() -> None:
    samples = order([None, None], by_pass_rate=True)
    for step in range(60):
        observe(samples, step, {"e0": 1.0, "e1": 0.5})
    late = Counter(samples.choose(60, number).env for number in range(GROUPS, GROUPS + 300))
    # The weights are 0.05 and 0.25, so one group in six is of e0.
    assert late["e0"] / late.total() == pytest.approx(1 / 6, abs=0.06)


def test_steps_played_ahead_use_the_rates_that_were_known(tmp_path: Path) -> None:
    """Check that step n uses the pass rates up to step n - ahead - 1, whenever it is chosen."""
    early, late = (order([None, None], ahead=2, by_pass_rate=True) for _ in range(2))
    chosen: dict[int, Any] = {}
    for step in range(20):
        for coming in range(step, step + 3):  # in the order of a source that plays ahead
            chosen.setdefault(coming, [early.choose(coming, n) for n in range(GROUPS)])
        observe(early, step, {"e0": 0.0, "e1": 0.5})
        assert [late.choose(step, n) for n in range(GROUPS)] == chosen[step]
        observe(late, step, {"e0": 0.0, "e1": 0.5})


@pytest.mark.parametrize("ahead", [0, 2])
def test_order_continues_from_a_checkpoint(ahead: int) -> None:
    straight = order([5, None], ahead=ahead, by_pass_rate=True)
    for step in range(7):
        observe(straight, step, {"e0": 1.0, "e1": 0.25})
    resumed = order([5, None], ahead=ahead, by_pass_rate=True)
    resumed.restore(7, json.loads(json.dumps(straight.state(7))))
    for step in range(7, 20):
        expected = [straight.choose(step, n) for n in range(GROUPS)]
        assert [resumed.choose(step, n) for n in range(GROUPS)] == expected
        for samples in (straight, resumed):
            observe(samples, step, {"e0": 0.5, "e1": 0.75})


def test_data_with_another_number_of_rows_are_refused() -> None:
    state = json.loads(json.dumps(order([5, None]).state(0)))
    with pytest.raises(
        RunError, match="data of 'e0' had 5 rows when the run was stopped, and have 6"
    ):
        order([6, None]).restore(0, state)


@pytest.mark.component("torch", "tensorboard")
def test_run_with_a_mixture_by_pass_rate_resumes_to_the_bit(tmp_path: Path) -> None:
    mixture = Mixture({"a": toy.Echo, "b": toy.Echo}, {"a": 1.0, "b": 2.0}, by_pass_rate=True)
    rollouts = RolloutConfig(prompts_per_step=4, num_generations=2, max_tokens=3)

    def train(folder: Path, steps: int, resume: bool = False) -> toy.ToyPolicy:
        policy = toy.ToyPolicy()
        config = TrainerConfig(
            steps=steps, rollouts=rollouts, saving=SavingConfig(checkpoint_every=3)
        )
        trainer = Trainer(policy, Sloped(), config, folder=folder, resume=resume)
        trainer.train(mixture)
        return policy

    straight = train(tmp_path / "a", 6)
    train(tmp_path / "b", 3)
    assert train(tmp_path / "b", 6, resume=True).weights() == straight.weights()
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
