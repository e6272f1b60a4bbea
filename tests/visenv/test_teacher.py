"""Tests teachers of any environment: names, options, errors and seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest
from typing_extensions import override

from visenv.env import EpisodeLimits, VisEnv
from visenv.errors import ConfigurationError, UnknownNameError
from visenv.grammar import KeyValueGrammar, ParsedTurn
from visenv.policies.oracle import OraclePolicy
from visenv.policies.teacher import TeacherPolicy
from visenv.rollout import Collector, EpisodeSpec, play
from visenv.teacher import AimingTeacher, LapsingTeacher, Teacher, make_teacher
from visenv.testing import toy
from visenv.testing.record import base_of
from visenv.types import Answered, Episode

ADDER: VisEnv = base_of(toy.make())


class Untaught(toy.Adder):
    """Is an environment without a teacher."""

    teachers = {}  # noqa: RUF012


@dataclass(frozen=True)
class SaysZero(LapsingTeacher[toy.Adder]):
    """States the total 0 in a share of the episodes."""

    summary: ClassVar[str] = "States the total 0."

    @override
    def mistaken_turn(self, env: toy.Adder, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        return turn if turn.answer is None else turn._replace(answer="0")


@dataclass(frozen=True)
class Aims(AimingTeacher[toy.Adder]):
    """Plays like the oracle; `error` is tested alone."""

    summary: ClassVar[str] = ""

    @override
    def turn(self, env: toy.Adder, rng: np.random.Generator) -> ParsedTurn:
        return env.oracle_turn()


class Lapsing(toy.Adder):
    """Is an environment whose teacher lapses."""

    teachers: ClassVar[Mapping[str, type[Teacher[Any]]]] = MappingProxyType({"zero": SaysZero})


def lapsing() -> VisEnv:
    return Lapsing(
        source=toy.Sums(),
        grammar=KeyValueGrammar(),
        tools=[toy.Add()],
        limits=EpisodeLimits(turns=3),
    )


def zeros(**options: float) -> set[int]:
    """Return the seeds of the episodes, of 100, in which the teacher states the total 0."""
    specs = [EpisodeSpec(seed) for seed in range(100)]
    played = Collector(lapsing, TeacherPolicy(**options)).episodes(specs)  # type: ignore[arg-type]
    return {episode.seed for episode in played if not _answer(episode)}


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


def test_mistaken_episodes_are_a_share_that_grows_with_strength_and_rate() -> None:
    some, more = zeros(strength=0.5), zeros()
    assert zeros(strength=0.0) < some < more < zeros(strength=1 / 0.6)
    assert zeros(strength=0.5, rate=0.6) == zeros(strength=1.0, rate=0.3)
    drawn = [np.random.default_rng(EpisodeSpec(seed).policy_seed).random() for seed in range(100)]
    assert more == {seed for seed, number in enumerate(drawn) if number < 0.6}


def test_error_of_an_aim_is_offset_and_noise_times_strength() -> None:
    first, second = np.random.default_rng(3).standard_normal(2)
    teacher = Aims(0.5, (2.0, -1.0), 4.0)
    assert teacher.error(np.random.default_rng(3)) == pytest.approx(
        (1 + 2 * first, -0.5 + 2 * second), abs=1e-12
    )
    assert Aims(0.0, (2.0, -1.0), 4.0).error(np.random.default_rng(3)) == (0.0, 0.0)


@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_noise_and_rate_are_in_their_ranges(value: float) -> None:
    with pytest.raises(ConfigurationError, match="noise must be 0 or more"):
        Aims(noise=value)
    with pytest.raises(ConfigurationError, match="rate must be from 0 to 1"):
        SaysZero(rate=value)
    with pytest.raises(ConfigurationError, match="rate must be from 0 to 1"):
        SaysZero(rate=1.1)


def _answer(episode: Episode) -> int:
    (answer,) = [event.answer for event in episode.events if isinstance(event, Answered)]
    return int(answer)
