"""Playing episodes: one at a time, or many groups at once without lock step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from visenv.env import Observation, VisEnv
from visenv.errors import DataError, PolicyError, ServiceError
from visenv.policy import Policy, Session
from visenv.types import Aborted, Ask, Episode, Group, Reply, Sampling, Status, StepRecord, Turn

Env = gym.Env[Observation, str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an episode belongs: its seed, its group in the batch, and its place in the group.

    Attributes:
        seed: Passed to `reset`; with `index` it only seeds the sampling.
        group: Index of the group in the batch.
        member: Place in the group; members share the sample and sample differently.
        index: Row of a finite source to play instead of the one the seed picks.
    """

    seed: int
    group: int = 0
    member: int = 0
    index: int | None = None


async def play(
    env: Env,
    policy: Policy[Any],
    place: Place,
    sampling: Sampling | None = None,
) -> Episode:
    """Play one episode.

    A sample that cannot be read, a policy that cannot reply and a service that failed give an
    aborted episode with the reason, not an exception: one bad row must not end a run.

    Args:
        env: An environment made by `gym.make`, not in use elsewhere.
        policy: Who plays.
        place: Which sample, and where the episode belongs.
        sampling: How to sample; its seed is replaced by one derived from `place`.

    Returns:
        The finished episode.
    """
    seed = int(np.random.SeedSequence([place.seed, place.member]).generate_state(1)[0])
    sampling = (sampling or Sampling())._replace(seed=seed)
    options = None if place.index is None else {"index": place.index}
    turns: list[Turn] = []
    session = policy.open(env, seed)
    try:
        _, info = env.reset(seed=place.seed, options=options)
        record: StepRecord = info["step"]
        while record.ask is not None:
            session.observe(record.messages, record.ask.context)
            reply = await policy.respond(session, record.ask, sampling)
            _, reward, terminated, _, info = env.step(reply.text)
            turns.append(_turn(record, reply, float(reward), info["step"]))
            record = info["step"]
    except (DataError, PolicyError, ServiceError) as error:
        return _aborted(env, place, turns, session, error)
    status: Status = "terminated" if terminated else "truncated"
    reason = "" if terminated else info["truncated_by"]
    if info["aborted"]:
        status, reason = "aborted", info["aborted"]
        turns = [replace(turn, reward=0.0) for turn in turns]  # earlier steps may have paid
    return _episode(env, place, turns, session, status, reason, record)


def _turn(shown: StepRecord, reply: Reply, reward: float, result: StepRecord) -> Turn:
    ask = shown.ask or Ask()
    return Turn(shown.messages, reply.text, reward, result.events, reply.finish_reason, ask)


def _aborted(
    env: Env, place: Place, turns: list[Turn], session: Session, error: Exception
) -> Episode:
    boundary, reason = type(error).__name__, str(error)
    if isinstance(error, ServiceError):
        boundary, reason = error.boundary, error.reason
    if turns:
        event = Aborted(len(turns) - 1, boundary, reason)
        turns[-1] = replace(turns[-1], events=(*turns[-1].events, event))
    turns = [replace(turn, reward=0.0) for turn in turns]
    return _episode(env, place, turns, None, "aborted", f"{boundary}: {reason}", StepRecord())


def _episode(
    env: Env,
    place: Place,
    turns: Sequence[Turn],
    session: Session | None,
    status: Status,
    reason: str,
    last: StepRecord,
) -> Episode:
    base = env.unwrapped
    sample = getattr(base, "sample", None)
    return Episode(
        env_id=base.spec.id if base.spec is not None else type(base).__name__,
        sample_id=sample.id if sample else "",
        kind=sample.kind if sample else "",
        seed=place.seed,
        group=place.group,
        member=place.member,
        turns=tuple(turns),
        status=status,
        reason=reason,
        closing=last.messages,
        segments=session.segments() if session is not None else (),
        terms=dict(last.terms),
        metrics=dict(last.metrics),
        truth=base.truth() if isinstance(base, VisEnv) and sample else {},
    )


class Collector:
    """Plays groups of episodes at once; each environment is reused when its episode ends.

    No lock step: an episode goes on as soon as its own reply is there. Replies of a local model are
    batched by the policy.

    Args:
        make_env: Makes one environment.
        policy: Who plays.
        sampling: How to sample.
        concurrency: Most episodes in flight.
    """

    def __init__(
        self,
        make_env: Callable[[], Env],
        policy: Policy[Any],
        sampling: Sampling | None = None,
        concurrency: int = 128,
    ) -> None:
        self.policy = policy
        self.sampling = sampling or Sampling()
        self._make_env = make_env
        self._concurrency = concurrency
        self._idle: list[Env] = []

    def groups(
        self,
        seeds: Sequence[int],
        size: int = 1,
        on_episode: Callable[[Episode], None] | None = None,
    ) -> list[Group]:
        """Play ``len(seeds)`` groups of `size` episodes.

        Args:
            seeds: One seed for each group.
            size: Episodes in a group.
            on_episode: Called as each episode ends (progress bars).

        Returns:
            The groups in the order of `seeds`, aborted episodes included and marked.
        """
        places = [Place(seed, g, m) for g, seed in enumerate(seeds) for m in range(size)]
        episodes = self.episodes(places, on_episode)
        return [episodes[start : start + size] for start in range(0, len(episodes), size)]

    def episodes(
        self, places: Sequence[Place], on_episode: Callable[[Episode], None] | None = None
    ) -> list[Episode]:
        """Play one episode for each place; in their order, aborted ones included."""
        return asyncio.run(self._play_all(places, on_episode))

    async def play(self, place: Place) -> Episode:
        """Play one episode in an environment that is idle, or in a new one."""
        env = self._idle.pop() if self._idle else self._make_env()
        try:
            return await play(env, self.policy, place, self.sampling)
        finally:
            self._idle.append(env)

    async def _play_all(
        self, places: Sequence[Place], on_episode: Callable[[Episode], None] | None
    ) -> list[Episode]:
        gate = asyncio.Semaphore(self._concurrency)

        async def one(place: Place) -> Episode:
            async with gate:
                episode = await self.play(place)
            if on_episode is not None:
                on_episode(episode)
            return episode

        return list(await asyncio.gather(*(one(place) for place in places)))

    def close(self) -> None:
        """Close the environments; the policy stays open."""
        while self._idle:
            self._idle.pop().close()
