"""Tests `play` and `Collector`: turns, aborted episodes, the order and the number of episodes."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

from visenv import background
from visenv.env import EpisodeLimits, Observation
from visenv.errors import ConfigurationError, DataError, PolicyError, ServiceError
from visenv.grammar import KeyValueGrammar
from visenv.policies.oracle import OraclePolicy
from visenv.policy import Policy, Session
from visenv.rollout import Collector, EpisodeSpec, play
from visenv.testing import toy
from visenv.testing.toy import SumTruth
from visenv.types import (
    Aborted,
    Episode,
    Failure,
    Message,
    Reply,
    Sample,
    Sampling,
    TurnRequest,
)

ADD = "<tool>\nname: add\namount: 3\n</tool>"
ANSWER = "<answer>3</answer>"


class Scripted(Policy[Session]):
    """Replies with fixed turns, records its arguments, and raises the turns that are exceptions."""

    def __init__(self, *turns: str | Exception) -> None:
        self.turns = turns
        self.samplings: list[Sampling] = []
        self.seeds: list[int] = []

    @override
    def open(self, seed: int) -> Session:
        self.seeds.append(seed)
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        said = sum(message.role == "assistant" for message in session.messages)
        self.samplings.append(sampling)
        turn = self.turns[said]
        if isinstance(turn, Exception):
            raise turn
        reply = Reply.of_text(turn)
        session.said(reply)
        return reply


def played(env: gym.Env[Observation, str], policy: Policy[Any], **place: Any) -> Episode:
    return asyncio.run(play(env, policy, EpisodeSpec(**{"seed": 0, **place})))


def test_play_returns_every_turn() -> None:
    env = gym.make(toy.register())
    episode = played(env, Scripted(ADD, ANSWER), seed=7, group=2, member=1)
    assert (episode.env_id, episode.status, episode.reason) == (toy.ENV_ID, "terminated", "")
    assert (episode.seed, episode.group, episode.member) == (7, 2, 1)
    assert [turn.text for turn in episode.turns] == [ADD, ANSWER]
    opening, result = (turn.messages for turn in episode.turns)
    assert opening == (Message("user", (env.unwrapped.sample.question,)),)  # type: ignore[attr-defined]
    assert result == (Message("user", ("<result>\ntotal 3\n</result>",)),)
    # A wrong answer after a successful tool call: 0.8 * 0 + 0.2 * 1.
    assert episode.reward == 0.2
    assert episode.terms == {"correct": 0.0, "tool": 1.0}
    assert episode.metrics == {"accuracy": 0.0}
    assert episode.ground_truth == env.unwrapped.sample.ground_truth  # type: ignore[attr-defined]
    assert (episode.question, episode.answers) == (
        env.unwrapped.sample.question,  # type: ignore[attr-defined]
        env.unwrapped.sample.answers,  # type: ignore[attr-defined]
    )
    assert env.spec is not None
    assert episode.env_spec == env.spec.to_json()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"concurrency": 0}, "concurrency must be an integer of at least 1, got 0"),
        ({"concurrency": -1}, "at least 1, got -1"),
        ({"concurrency": 2.5}, "at least 1, got 2.5"),
        ({"retries": -1}, "retries must be an integer of at least 0, got -1"),
        ({"policy": Scripted}, "got the class Scripted: pass Scripted"),
        ({"policy": "oracle"}, "must have the methods open and respond"),
        ({"make_env": toy.make()}, "got the environment.*play\\(env, policy, spec\\)"),
        ({"make_env": "visenv/ZoomVQA-v0"}, "must be a function that makes an environment"),
    ],
)
def test_collector_refuses_wrong_arguments(change: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {"make_env": toy.make, "policy": Scripted(ADD), **change}
    with pytest.raises(ConfigurationError, match=problem):
        Collector(**given)


def test_play_refuses_wrong_arguments() -> None:
    with pytest.raises(ConfigurationError, match="got the class Scripted"):
        played(toy.make(), Scripted)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"must be an environment.*Call it first"):
        played(toy.make, Scripted(ADD))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (0, r"EpisodeSpec\(seed=0\), got 0"),
        (EpisodeSpec(-1), "A seed must be an integer of at least 0, got -1"),
        (EpisodeSpec("7"), "got '7'"),  # type: ignore[arg-type]
        (EpisodeSpec(1.5), "got 1.5"),  # type: ignore[arg-type]
        (EpisodeSpec(True), "got True"),
    ],
)
def test_episode_needs_a_spec_with_a_seed(spec: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        background.run_here(play(toy.make(), Scripted(ADD), spec))
    collector = Collector(toy.make, Scripted(ADD))
    with pytest.raises(ConfigurationError, match=problem):
        collector.episodes([spec])
    collector.close()


def test_function_that_makes_no_environment_is_refused() -> None:
    collector = Collector(lambda: None, Scripted(ADD))  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigurationError, match=r"must be an environment of gym\.make, got None"):
        collector.groups([0])


def test_policy_that_returns_no_reply_is_named() -> None:
    class Silent(OraclePolicy):
        @override
        async def respond(self, *_: Any) -> Any:
            return "<answer>3</answer>"

    collector = Collector(toy.make, Silent(), retries=1)
    with pytest.raises(ConfigurationError, match=r"policy Silent must return a visenv\.Reply, got"):
        collector.groups([0])
    collector.close()


def test_source_that_returns_no_sample_is_named() -> None:
    class Dicts:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> Any:
            return {"question": "Add."}

    def make() -> Any:
        return toy.Adder(source=Dicts(), grammar=KeyValueGrammar(), limits=EpisodeLimits(2))

    collector = Collector(make, Scripted(ADD), retries=1)
    with pytest.raises(ConfigurationError, match="source Dicts must return Sample objects"):
        collector.groups([0])
    collector.close()


def test_seed_of_numpy_is_a_seed() -> None:
    collector = Collector(toy.make, Scripted(ADD))
    ((episode,),) = collector.groups(np.array([3]))  # type: ignore[arg-type]
    collector.close()
    assert episode.seed == 3


def test_play_gives_the_limit_as_the_reason_of_a_truncated_episode() -> None:
    episode = played(toy.make(turns=1), Scripted(ADD))
    assert (episode.status, episode.reason) == ("truncated", "turns")
    assert episode.closing == (Message("user", ("<result>\ntotal 3\n</result>",)),)


def test_play_aborts_when_a_service_fails() -> None:
    trouble = "<tool>\nname: trouble\nkind: service\n</tool>"
    for on_abort in ("truncate", "raise"):
        env = toy.make(trouble=True, on_abort=on_abort)
        episode = played(env, Scripted(ADD, trouble))
        assert episode.status == "aborted"
        assert episode.failure == Failure("service", "search", "the server is down")
        assert episode.reward == 0.0
        assert episode.segments == ()


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (PolicyError("no reply"), Failure("policy", "PolicyError", "no reply")),
        (
            ServiceError("engine", "out of memory"),
            Failure("service", "engine", "out of memory"),
        ),
    ],
)
def test_play_aborts_when_the_policy_fails(error: Exception, failure: Failure) -> None:
    episode = played(toy.make(), Scripted(ADD, error))
    assert (episode.status, episode.failure) == ("aborted", failure)
    assert [turn.text for turn in episode.turns] == [ADD]
    assert episode.events[-1] == Aborted(0, failure.name, failure.reason)
    assert (episode.reward, episode.metrics, episode.terms) == (0.0, {}, {})


def test_play_returns_no_turns_when_the_policy_fails_at_once() -> None:
    episode = played(toy.make(), Scripted(PolicyError("no reply")))
    assert (episode.status, episode.turns, episode.sample_id != "") == ("aborted", (), True)


def test_play_raises_a_bug_of_the_policy() -> None:
    with pytest.raises(ZeroDivisionError):
        played(toy.make(), Scripted(ZeroDivisionError()))


class Unreadable:
    """Holds two rows, the second of them broken."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Sample:
        if index == 1:
            raise DataError("row 1 has no question")
        return Sample("row-0", "what?", answers=("3",), ground_truth=SumTruth(add=(1, 2)))


def of_rows() -> toy.Adder:
    return toy.Adder(source=Unreadable(), grammar=KeyValueGrammar(), limits=EpisodeLimits(2))


def test_play_aborts_on_an_unreadable_row_without_facts_of_the_last_episode() -> None:
    env = of_rows()
    assert played(env, Scripted(ANSWER), index=0).sample_id == "row-0"
    episode = played(env, Scripted(ANSWER), index=1)
    assert episode.status == "aborted"
    assert episode.failure == Failure("data", "DataError", "row 1 has no question")
    assert (episode.sample_id, episode.turns, episode.ground_truth) == ("", (), None)


def test_collector_members_share_the_sample_and_sample_differently() -> None:
    policy = Scripted(ANSWER)
    with_policy = Collector(toy.make, policy, Sampling(temperature=0.5))
    first, second = with_policy.groups([3, 4], size=3)
    assert len({episode.sample_id for episode in first}) == 1
    assert first[0].sample_id != second[0].sample_id
    assert len({sampling.seed for sampling in policy.samplings}) == 6
    assert {sampling.temperature for sampling in policy.samplings} == {0.5}
    assert policy.seeds == [sampling.seed for sampling in policy.samplings]
    # The seed depends only on the place of the episode.
    assert policy.seeds[1] == int(np.random.SeedSequence([3, 1]).generate_state(1)[0])
    with_policy.close()


class Gated(Scripted):
    """Replies to the episodes in reverse order, after all have asked."""

    def __init__(self, episodes: int) -> None:
        super().__init__()
        self.waiting: list[asyncio.Event] = []
        self.most = 0
        self.episodes = episodes

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        mine = asyncio.Event()
        self.waiting.append(mine)
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == self.episodes:
            self.waiting[-1].set()
        await mine.wait()
        self.waiting.remove(mine)
        if self.waiting:
            self.waiting[-1].set()
        return Reply.of_text(ANSWER)


def test_collector_groups_come_in_order_whatever_ends_first() -> None:
    ended: list[tuple[int, int]] = []
    collector = Collector(toy.make, Gated(6))
    groups = collector.groups(
        [5, 6, 7], size=2, on_episode=lambda each: ended.append((each.group, each.member))
    )
    order = [(group, member) for group in range(3) for member in range(2)]
    assert [(each.group, each.member) for group in groups for each in group] == order
    assert [group[0].seed for group in groups] == [5, 6, 7]
    assert ended == order[::-1]


class Counting(Scripted):
    """Records how many turns are requested at the same time."""

    def __init__(self) -> None:
        super().__init__(ADD, ANSWER)
        self.now = self.most = 0

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return await super().respond(session, request, sampling)


def test_collector_bounds_concurrency_and_reuses_environments() -> None:
    made: list[gym.Env[Observation, str]] = []
    closed: list[int] = []

    def make() -> gym.Env[Observation, str]:
        env = toy.make()
        env.unwrapped.close = lambda: closed.append(len(made))  # type: ignore[method-assign]
        made.append(env)
        return env

    policy = Counting()
    collector = Collector(make, policy, concurrency=3)
    groups = collector.groups(range(5), size=2)
    assert (policy.most, len(made)) == (3, 3)
    assert [len(group) for group in groups] == [2] * 5
    collector.groups([9], size=3)
    assert len(made) == 3
    closed.clear()
    collector.close()
    assert len(closed) == 3


def test_collector_continues_after_an_invalid_row() -> None:
    places = [EpisodeSpec(seed=0, group=row, index=row) for row in (0, 1, 0)]
    episodes = Collector(of_rows, Scripted(ANSWER)).episodes(places)
    assert [episode.status for episode in episodes] == ["terminated", "aborted", "terminated"]
    assert [episode.reward for episode in episodes] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("rows", "environments"), [((1, 0), 2), ((0, 1, 0), 1)])
def test_collector_drops_an_environment_whose_first_reset_failed(
    rows: tuple[int, ...], environments: int
) -> None:
    """Check the replacement: after a failed reset, `step` of Gymnasium's checker is a TypeError."""
    made: list[Any] = []

    def make() -> Any:
        made.append(gym.wrappers.PassiveEnvChecker(of_rows()))
        return made[-1]

    places = [EpisodeSpec(seed=0, group=place, index=row) for place, row in enumerate(rows)]
    episodes = Collector(make, Scripted(ANSWER), concurrency=1).episodes(places)
    expected = ["aborted" if row == 1 else "terminated" for row in rows]
    assert [episode.status for episode in episodes] == expected
    assert len(made) == environments
