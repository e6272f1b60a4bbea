"""Tests asynchronous reward terms and events under a collector: deferred, awaited, and in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import pytest
from typing_extensions import override

from tests.waiting import LIMIT, until
from visenv.env import VisEnv
from visenv.errors import ConfigurationError, ServiceError
from visenv.grammar import ParsedTurn
from visenv.policies.oracle import OraclePolicy
from visenv.policy import Session
from visenv.rewards import RewardContext, RewardTerm, RewardWrapper
from visenv.rollout import Collector, Env, EpisodeSpec, ThreadExecutor, play
from visenv.testing import toy
from visenv.types import Episode, Reply, Sampling, TurnRequest


def made(*terms: RewardTerm, combine: Any = None, **options: Any) -> Env:
    return RewardWrapper(gym.make(toy.register(), **options), terms, combine=combine)


def played(env: Env) -> Episode:
    return asyncio.run(play(env, OraclePolicy(), EpisodeSpec(0)))


def test_episode_holds_the_weights_of_a_weighted_sum_and_the_times_of_its_turns() -> None:
    terms = (RewardTerm("a", 0.5, lambda _: 0.8), RewardTerm("b", -2.0, lambda _: 0.1))
    episode = played(made(*terms))
    # 0.5 * 0.8 - 2.0 * 0.1 = 0.2
    assert dict(episode.term_weights) == {"a": 0.5, "b": -2.0}
    weighed = sum(episode.term_weights[name] * (episode.terms[name] or 0) for name in "ab")
    assert weighed == pytest.approx(0.2, abs=1e-12) == episode.reward
    assert all((turn.sampling_seconds or 0) > 0 for turn in episode.turns)
    assert all((turn.env_seconds or 0) > 0 for turn in episode.turns)
    combined = made(*terms, combine=lambda values: float(values["a"] or 0))
    assert played(combined).term_weights == {}


def stepped(env: Env) -> list[float]:
    """Return the rewards of the oracle's turns in a plain loop."""
    turns = [turn.text for turn in played(env).turns]
    env.reset(seed=0)
    for layer in _layers(env):
        if isinstance(layer, (VisEnv, RewardWrapper)):
            layer.defers = False
    return [float(env.step(turn)[1]) for turn in turns]


def _layers(env: Any) -> Iterable[Any]:
    yield env
    while isinstance(env, gym.Wrapper):
        env = env.env
        yield env


class Barrier:
    """Returns a reward only when `count` episodes wait for it at the same time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.waiting: list[asyncio.Future[float]] = []

    async def __call__(self, context: RewardContext) -> float:
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append(answer)
        if len(self.waiting) == self.count:
            for each in self.waiting:
                each.set_result(1.0)
        return await asyncio.wait_for(answer, LIMIT)


def test_deferred_terms_free_the_slots_of_their_episodes() -> None:
    # With one slot, a second episode can only wait for the judge if the first has left the slot.
    judge = RewardTerm("judge", 1.0, Barrier(6))
    collector = Collector(lambda: made(judge), OraclePolicy(), concurrency=1)
    rewards = [episode.reward for group in collector.groups(range(6)) for episode in group]
    assert rewards == [1.0] * 6


class Halved(gym.RewardWrapper[Any, Any]):
    @override
    def reward(self, reward: Any) -> float:
        return float(reward) / 2


async def waits(context: RewardContext) -> float:
    await asyncio.sleep(0)
    return 1.0


def test_wrapper_that_halves_sees_the_reward_of_an_asynchronous_term() -> None:
    def make() -> Env:
        return Halved(made(RewardTerm("judge", 1.0, waits)))

    collector = Collector(make, OraclePolicy())
    rewards = [episode.reward for group in collector.groups(range(3)) for episode in group]
    assert rewards == [0.5] * 3
    assert stepped(make()) == [0.0, 0.0, 0.5]


def test_wrapper_that_halves_does_not_keep_other_episodes_waiting() -> None:
    judge = RewardTerm("judge", 1.0, Barrier(4))
    collector = Collector(lambda: Halved(made(judge)), OraclePolicy())
    rewards = [episode.reward for group in collector.groups(range(4)) for episode in group]
    assert rewards == [0.5] * 4


def test_plain_step_waits_for_a_term_inside_a_running_loop() -> None:
    async def notebook() -> list[float]:
        env = made(RewardTerm("judge", 1.0, waits))
        env.reset(seed=0)
        return [float(env.step("<think>so</think><answer>1</answer>")[1])]

    assert asyncio.run(notebook()) == [1.0]


def test_collector_plays_inside_a_running_loop() -> None:
    async def notebook() -> list[float]:
        collector = Collector(lambda: made(RewardTerm("judge", 1.0, waits)), OraclePolicy())
        return [episode.reward for group in collector.groups([0, 1]) for episode in group]

    assert asyncio.run(notebook()) == [1.0, 1.0]


def test_terms_read_earlier_terms_and_note_why_they_do_not_apply() -> None:
    def first(context: RewardContext) -> float:
        return 0.25

    async def second(context: RewardContext) -> float | None:
        assert context.terms == {"first": 0.25}
        return context.skip("the first is too small")

    def third(context: RewardContext) -> None:
        return None

    env = made(
        RewardTerm("first", 2.0, first),
        RewardTerm("second", 1.0, second),
        RewardTerm("third", 1.0, third),
    )
    episode = played(env)
    assert (episode.reward, episode.terms) == (0.5, {"first": 0.25, "second": None, "third": None})
    assert episode.term_notes == {"second": "the first is too small", "third": "does not apply"}


def test_combine_makes_the_reward_of_the_terms() -> None:
    def gate(terms: Any) -> float:
        return 0.0 if terms["a"] < 0.5 else terms["a"] * terms["b"]

    terms = (RewardTerm("a", 1.0, lambda _: 0.5), RewardTerm("b", 1.0, lambda _: 0.25))
    assert played(made(*terms, combine=gate)).reward == 0.125


@pytest.mark.parametrize("value", ["1", True, [1.0], 10**400])
def test_term_that_is_no_number_is_named(value: Any) -> None:
    env = made(RewardTerm("odd", 1.0, lambda _: value))
    if value is True:  # a bool is a number in Python, so it counts as 1
        assert played(env).reward == 1.0
        return
    with pytest.raises(ConfigurationError, match="'odd' must be a float or None"):
        played(env)


def test_judge_that_fails_aborts_the_episode_after_its_retries() -> None:
    asked = []

    async def down(context: RewardContext) -> float:
        asked.append(context.sample.id)
        raise ServiceError("judge", "is down")

    env = lambda: made(RewardTerm("judge", 1.0, down))  # noqa: E731
    collector = Collector(env, OraclePolicy(), retries=2)
    ((episode,),) = collector.groups([0])
    assert (episode.status, episode.reward, len(asked)) == ("aborted", 0.0, 3)
    assert episode.failure is not None
    assert episode.failure[:3] == ("service", "judge", "is down")


class Seen(NamedTuple):
    """Represents an event of the task."""

    turn: int
    thought: str


class Watched(toy.Adder):
    """Logs an event for each turn."""

    @override
    def turn_events(self, turn: ParsedTurn) -> Any:
        return [Seen(self.turn, turn.thought or "")]


class WatchedLater(toy.Adder):
    @override
    async def turn_events(self, turn: ParsedTurn) -> Any:
        number = self.turn
        for _ in range(3):
            await asyncio.sleep(0)
        return [Seen(number, turn.thought or "")]


def seen_by_reward(context: RewardContext) -> float:
    return float(len(context.log.of_type(Seen)))


def watched(kind: type[toy.Adder]) -> Env:
    inner = gym.make(toy.register()).unwrapped
    assert isinstance(inner, VisEnv)
    env = kind(source=inner.source, grammar=inner.grammar, tools=[toy.Add()], limits=inner.limits)
    return RewardWrapper(env, [RewardTerm("seen", 1.0, seen_by_reward)])


def test_turn_events_are_logged_before_the_reward_reads_them() -> None:
    now, later = played(watched(Watched)), played(watched(WatchedLater))
    assert (now.reward, later.reward) == (3.0, 3.0)
    assert [turn.events for turn in now.turns] == [turn.events for turn in later.turns]
    assert stepped(watched(WatchedLater)) == [0.0, 0.0, 3.0]


class Recording(OraclePolicy):
    """Records the order in which turns are requested."""

    def __init__(self, order: list[tuple[str, int]]) -> None:
        super().__init__()
        self.order = order

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        self.order.append((session.messages[0].plain(), len(session.messages)))
        await asyncio.sleep(0)
        return await super().respond(session, request, sampling)


class Verdicts:
    """Returns the verdicts of ten episodes in a given order, when all ten wait for theirs.

    Args:
        order: A number for each verdict, in the order in which they are requested; the verdict with
            the lowest number is returned first.
    """

    def __init__(self, order: Sequence[int]) -> None:
        self.order = order
        self.asked = self.given = 0

    async def __call__(self, context: RewardContext) -> float:
        place = self.order[self.asked]
        self.asked += 1
        await until(lambda: self.asked == 10 and self.given == place)
        self.given += 1
        return 1.0


def rollout(
    deterministic: bool,
    judge: Callable[[RewardContext], Any],
    ended: list[tuple[int, int]] | None = None,
) -> Any:
    """Play ten episodes; return the order of the requests and the order in which they ended.

    Args:
        deterministic: The mode of the collector.
        judge: The reward.
        ended: A list to which the group and member of each episode is added when it ends.
    """
    requests: list[tuple[str, int]] = []
    ended = [] if ended is None else ended

    def make() -> Env:
        return made(RewardTerm("judge", 1.0, judge))

    collector = Collector(make, Recording(requests), concurrency=3, deterministic=deterministic)
    collector.groups(range(5), 2, lambda episode: ended.append((episode.group, episode.member)))
    return requests, ended


def test_deterministic_mode_does_not_depend_on_when_verdicts_arrive() -> None:
    mixed = [3, 8, 0, 5, 9, 1, 7, 2, 6, 4]
    runs = [rollout(True, Verdicts(order)) for order in (range(10), range(9, -1, -1), mixed)]
    assert all(run == runs[0] for run in runs)
    assert runs[0][1] == [(group, member) for group in range(5) for member in range(2)]


def test_unordered_modes_return_episodes_as_their_verdicts_arrive() -> None:
    started: list[int] = []
    ended: list[tuple[int, int]] = []

    async def last_first(context: RewardContext) -> float:
        started.append(1)
        if len(started) == 1:
            await until(lambda: len(ended) == 9)
        return 1.0

    rollout(False, last_first, ended)
    assert len(ended) == 10
    assert ended[-1] == (0, 0)


def test_oracle_plays_the_same_in_threads() -> None:
    inline = Collector(toy.make, OraclePolicy(expert_rate=0.5, guess=True)).groups(range(4), 2)
    threads = Collector(
        toy.make, OraclePolicy(expert_rate=0.5, guess=True), executor=ThreadExecutor()
    ).groups(range(4), 2)
    assert inline == threads
