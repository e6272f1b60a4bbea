"""Tests teachers of any environment: names, options, errors and seeds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.grammar import KeyValueGrammar
from visenv.policies.oracle import OraclePolicy
from visenv.policies.teacher import TeacherPolicy
from visenv.rollout import Collector, EpisodeSpec, play
from visenv.teacher import make_teacher
from visenv.testing import toy
from visenv.testing.record import base_of
from visenv.types import Answered, Episode

ADDER: VisEnv = base_of(toy.make())


class Untaught(toy.Adder):
    """Is an environment without a teacher."""

    teachers = {}  # noqa: RUF012


def untaught() -> VisEnv:
    return Untaught(source=toy.Sums(), grammar=KeyValueGrammar(), limits=EpisodeLimits(turns=3))


def errors(policy: TeacherPolicy) -> list[int]:
    """Return by how much the policy's answers of 40 episodes exceed the right ones."""
    specs = [EpisodeSpec(seed) for seed in range(40)]
    taught, right = (Collector(toy.make, each).episodes(specs) for each in (policy, OraclePolicy()))
    return [_answer(a) - _answer(b) for a, b in zip(taught, right, strict=True)]


def test_default_is_the_first_teacher() -> None:
    assert make_teacher(ADDER, "default", 0.5, {"most": 3}) == toy.StatesMore(0.5, 3)
    assert make_teacher(ADDER, "states_more", 1, {}) == toy.StatesMore()


def test_flaw_of_an_episode_depends_on_its_seed_alone() -> None:
    assert set(errors(TeacherPolicy())) == {0, 1, 2}
    assert errors(TeacherPolicy()) == errors(TeacherPolicy("states_more"))


def test_strength_and_options_reach_the_teacher() -> None:
    assert set(errors(TeacherPolicy(strength=0.0))) == {0}
    assert errors(TeacherPolicy(strength=2.0)) == [2 * each for each in errors(TeacherPolicy())]
    assert max(errors(TeacherPolicy(most=9))) > 2


def test_environment_without_a_teacher_is_named() -> None:
    with pytest.raises(ConfigurationError, match="Untaught has no teacher"):
        make_teacher(untaught(), "default", 1.0, {})
    with pytest.raises(ConfigurationError, match="Untaught has no teacher"):
        asyncio.run(play(untaught(), TeacherPolicy(), EpisodeSpec(0)))


def test_unknown_names_are_suggested() -> None:
    with pytest.raises(
        UnknownNameError, match=r"teacher of Adder called 'state'\..* 'states_more'"
    ):
        make_teacher(ADDER, "state", 1.0, {})
    with pytest.raises(UnknownNameError, match=r"option of the teacher 'states_more' called 'mos'"):
        make_teacher(ADDER, "states_more", 1.0, {"mos": 1})


@pytest.mark.parametrize(
    ("strength", "options"), [(-1.0, {}), (float("nan"), {}), (1.0, {"most": "many"}), ("much", {})]
)
def test_invalid_values_are_refused(strength: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"strength|option most"):
        make_teacher(ADDER, "states_more", strength, options)


def _answer(episode: Episode) -> int:
    (answer,) = [event.answer for event in episode.events if isinstance(event, Answered)]
    return int(answer)
