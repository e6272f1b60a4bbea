"""Tests that held-out samples share no document, world or state with those of training."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.environments import few
from tests.visenv.evaluation.draws import SEEDS, drawn, held_out_seeds, training_seeds
from visenv.data.source import rows_of
from visenv.envs.arft.search.world import library
from visenv.envs.arft.search.world.library import EntitiesWorld
from visenv.envs.arm.ground_truth import JudgingTruth
from visenv.envs.arm.world.reports import PRESETS as REPORTS
from visenv.envs.arm.world.reports import ReportQuestions, ReportsWorld
from visenv.envs.libero.datasets.tasks import open_tasks
from visenv.evaluation import places
from visenv.evaluation.rescore import Rescorer
from visenv.policies.oracle import OraclePolicy
from visenv.rollout import Collector, EpisodeSpec
from visenv.seeding import HELD_OUT
from visenv.types import Sample
from visenv.worlds.reports.library import ReportsLibrary


def document_of(sample: Sample) -> Any:
    return sample.ground_truth.document


def world_of(sample: Sample) -> Any:
    return sample.ground_truth.world.seed


FAST = [
    ("visenv/ArmDoc-v0", {"preset": "tiny"}, document_of),
    ("visenv/ArmDocVQA-v0", {"preset": "tiny"}, document_of),
]
SLOW = [  # whole documents and worlds are written, to ask about them
    ("visenv/ArmDoc-v0", {}, document_of),
    ("visenv/ArftSearch-v0", {"preset": "tiny"}, world_of),
    ("visenv/ArftSearch-v0", {}, world_of),
]


def check_others(
    env_id: str, options: dict[str, Any], thing_of: Callable[[Sample], Any], count: int
) -> None:
    env = gym.make(env_id, **options)
    training = {thing_of(drawn(env, seed)) for seed in training_seeds(count)}
    held_out = {thing_of(drawn(env, seed)) for seed in held_out_seeds(env, count)}
    env.close()
    assert len(training) > min(count, 1_000) / 4
    assert not training & held_out


@pytest.mark.parametrize(("env_id", "options", "thing_of"), few(FAST, 1))
def test_held_out_samples_are_about_other_things(
    env_id: str, options: dict[str, Any], thing_of: Callable[[Sample], Any]
) -> None:
    check_others(env_id, options, thing_of, SEEDS)


@pytest.mark.parametrize("count", few([25, SEEDS], 1))
@pytest.mark.parametrize(("env_id", "options", "thing_of"), SLOW)
def test_held_out_samples_with_whole_worlds_are_about_other_things(
    env_id: str, options: dict[str, Any], thing_of: Callable[[Sample], Any], count: int
) -> None:
    check_others(env_id, options, thing_of, count)


def test_held_out_reports_are_others_for_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the documents of 5,000 seeds of both, without writing them."""

    def ask(rng: np.random.Generator, text: Any, kind: str) -> Any:
        return None if rng.integers(8) == 0 else "?"  # no such question: another document

    def judge(_: object, rng: object, document: str, question: object) -> Sample:
        return Sample("1", "?", ground_truth=JudgingTruth(candidates=("a",), document=document))

    monkeypatch.setattr(ReportsLibrary, "text", lambda *_: None)
    monkeypatch.setattr(ReportsWorld, "_judge", judge)
    monkeypatch.setitem(REPORTS, "default", REPORTS["default"]._replace(ask=ask))
    check_others("visenv/ArmDoc-v0", {}, document_of, SEEDS)


@pytest.mark.parametrize("options", [{"preset": "tiny"}, {}])
def test_held_out_worlds_are_others_for_all_seeds(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Draw the worlds of 5,000 seeds of both, without writing their articles."""
    asked = SimpleNamespace(text="?", image=None, answers=("a",), kind="k", hops=(), options=())
    asked.hard = False

    def engine(preset: str, seed: int) -> SimpleNamespace:
        return SimpleNamespace(preset=preset, seed=seed, world=None)

    def make(world: EntitiesWorld, rng: np.random.Generator, worlds: tuple[int, int]) -> Sample:
        return world._make(rng, worlds)

    monkeypatch.setattr(library, "WorldEngine", engine)
    monkeypatch.setattr(EntitiesWorld, "_sample", make)  # without the cache
    env = gym.make("visenv/ArftSearch-v0", **options)
    base: Any = env.unwrapped
    monkeypatch.setattr(base.source, "_ask", lambda *_: asked)
    training = {world_of(drawn(env, seed)) for seed in training_seeds(SEEDS)}
    held_out = {world_of(drawn(env, seed)) for seed in held_out_seeds(env, SEEDS)}
    env.close()
    assert len(training) > 900
    assert not training & held_out


@pytest.mark.parametrize("env_id", ["visenv/ArmDoc-v0", "visenv/ArmDocVQA-v0"])
def test_reset_plays_the_held_out_sample_and_rescoring_finds_it(env_id: str) -> None:
    def make() -> gym.Env[Any, Any]:
        return gym.make(env_id, preset="tiny")

    env = make()
    (spec,) = places(env, 1)
    assert spec.seed >= HELD_OUT
    env.close()
    collector = Collector(make, OraclePolicy())
    (episode,) = collector.episodes([spec])
    (of_training,) = collector.episodes([EpisodeSpec(spec.seed - HELD_OUT)])
    collector.close()
    assert int(document_of(episode).rpartition("-")[2]) >= 10_000  # type: ignore[arg-type]
    assert int(document_of(of_training).rpartition("-")[2]) < 10_000  # type: ignore[arg-type]
    rescorer = Rescorer()
    assert rescorer.rescore(episode).reward == episode.reward
    rescorer.close()


@pytest.mark.parametrize("world", [ReportsWorld, ReportQuestions])
def test_range_that_a_person_names_holds_for_both(world: Any) -> None:
    source = world("tiny", documents=(3, 5))
    rng = np.random.default_rng(0)
    for sample in (source.sample, source.sample_held_out):
        assert {document_of(sample(rng)) for _ in range(20)} == {"cards-3", "cards-4"}
    worlds = EntitiesWorld("tiny", worlds=(7, 8))
    assert world_of(worlds.sample_held_out(rng)) == 7


def test_libero_plays_other_initial_states_in_an_evaluation() -> None:
    tasks = open_tasks("solved")
    training, held_out = (
        {tasks[row].id for row in rows_of(tasks, held_out)} for held_out in (False, True)
    )
    assert not training & held_out
    assert len(training | held_out) == len(tasks)
    # Each task is in both.
    named = [{name.rpartition("/")[0] for name in names} for names in (training, held_out)]
    assert named[1] <= named[0]
    assert len(named[1]) > 0.8 * len(named[0])
    # Published suites, and states that a person names, are played whole.
    for whole in (open_tasks("libero_10"), open_tasks("solved", states=10)):
        assert list(rows_of(whole, held_out=True)) == list(range(len(whole)))
