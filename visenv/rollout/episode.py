"""Plays one episode, from the reset to its end or to the failure that aborts it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visenv.errors import ConfigurationError, DataError, PolicyError, ServiceError, VisenvError
from visenv.policy import Policy
from visenv.rollout.adapter import Env, EnvAdapter
from visenv.rollout.arguments import check_env, check_policy, check_reply, check_seed
from visenv.rollout.executor import EnvFailedError, EnvSlot, InlineSlot
from visenv.rollout.stats import RolloutStats
from visenv.types import (
    Aborted,
    Episode,
    EpisodeInfo,
    Failure,
    Reply,
    Sampling,
    Segment,
    Status,
    StepResult,
    Turn,
    TurnRequest,
)


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """Describes the position of an episode in a batch: its seed, its group, and its group index.

    Attributes:
        seed: Seed of `reset`, which selects the sample, and of the policy's sampling. If `index` is
            given, the index selects the sample, and the seed only seeds the sampling.
        group: Index of the group in the batch.
        member: Index of the episode in the group. The members of a group play the same sample with
            different sampling seeds.
        index: Row of a finite data source that is played; None plays the row that the seed selects.
        env: Name of the environment in a mixture; with ``""`` the mixture chooses it by the seed.
    """

    seed: int
    group: int = 0
    member: int = 0
    index: int | None = None
    env: str = ""

    @property
    def policy_seed(self) -> int:
        """Return the seed of the policy's sampling, which differs between members of a group."""
        return int(np.random.SeedSequence([self.seed, self.member]).generate_state(1)[0])


def check_spec(spec: object) -> None:
    """Check that an object is an `EpisodeSpec` with a seed.

    Raises:
        ConfigurationError: If it is not.
    """
    if not isinstance(spec, EpisodeSpec):
        raise ConfigurationError(
            f"An episode needs an EpisodeSpec, such as EpisodeSpec(seed=0), got {spec!r:.80}."
        )
    check_seed(spec.seed)


async def play(
    env: Env,
    policy: Policy[Any],
    spec: EpisodeSpec,
    sampling: Sampling | None = None,
) -> Episode:
    """Play one episode.

    If a sample cannot be read, the policy cannot reply or a service fails, no exception is raised.
    The result is then an aborted episode with the failure (`Episode.failure`), so that one bad row
    does not end a run.

    Args:
        env: An environment made by `gym.make`. No other code may use it during the call.
        policy: The policy that plays.
        spec: The sample, and the position of the episode in a batch.
        sampling: The sampling parameters. Their seed is replaced by one derived from `spec`.

    Returns:
        The finished episode.

    Raises:
        ConfigurationError: If an argument has another type, if a wrapper of the environment changes
            observations or violates the Gymnasium API, or if the policy cannot play this kind of
            environment.
    """
    check_env(env)
    check_policy(policy)
    check_spec(spec)
    slot = InlineSlot(EnvAdapter(env), isolate=False)
    return await play_in(slot, policy, spec, sampling or Sampling(), RolloutStats())


async def _no_wait() -> None:
    """Return without waiting."""


async def play_in(
    slot: EnvSlot,
    policy: Policy[Any],
    spec: EpisodeSpec,
    sampling: Sampling,
    stats: RolloutStats,
    on_last_turn: Callable[[], None] = lambda: None,
    wait_for_others: Callable[[], Awaitable[None]] = _no_wait,
) -> Episode:
    """Play one episode in the environment of a slot; see `play`.

    Args:
        slot: The environment, in this process or elsewhere. If it fails, the episode is aborted.
        policy: The policy that plays.
        spec: The sample, and the position of the episode in a batch.
        sampling: The sampling parameters.
        stats: Records counts and times of the episode.
        on_last_turn: Called after the last turn if deferred reward terms remain to be computed.
        wait_for_others: Awaited after each result or failure of the environment, before the policy
            replies or the episode ends.
    """
    seeded = sampling._replace(seed=spec.policy_seed)
    player = _Player(slot, policy, spec, seeded, stats, wait_for_others)
    try:
        await slot.open()
        await player.play()
        if player.is_pending:
            on_last_turn()
            await player.finish()
        return player.episode()
    except EnvFailedError as error:
        await wait_for_others()
        return await player.aborted(error.failure)
    except (DataError, PolicyError, ServiceError) as error:
        return await player.aborted(Failure.of(error))


class _Player:
    """Holds the state of one episode that is being played."""

    def __init__(
        self,
        slot: EnvSlot,
        policy: Policy[Any],
        spec: EpisodeSpec,
        sampling: Sampling,
        stats: RolloutStats,
        wait_for_others: Callable[[], Awaitable[None]],
    ) -> None:
        self._slot = slot
        self._policy = policy
        self._spec = spec
        self._sampling = sampling
        self._stats = stats
        self._wait_for_others = wait_for_others
        self._info: EpisodeInfo | None = None
        self._turns: list[Turn] = []
        self._result = StepResult()
        self._segments: tuple[Segment, ...] = ()

    async def play(self) -> None:
        """Take turns until the environment ends the episode."""
        spec, policy = self._spec, self._policy
        session = policy.open(spec.policy_seed)
        with self._stats.stepping:
            self._info, self._result = await self._slot.call(
                "begin",
                seed=spec.seed,
                options=None if spec.index is None else {"index": spec.index},
                advice=policy.advice_request,
                policy_seed=spec.policy_seed,
            )
        self._slot.begun = True
        await self._wait_for_others()
        while (request := self._result.request) is not None:
            shown = self._result
            session.observe(shown.messages, request.context)
            session.advice = shown.advice
            asked = time.perf_counter()
            with self._stats.sampling:
                reply = await policy.respond(session, request, self._sampling)
                check_reply(reply, policy)
            replied = time.perf_counter()
            self._stats.sampled(len(reply.token_ids))
            with self._stats.stepping:
                self._result = await self._slot.call("act", text=reply.text)
            self._stats.waited_for_sandbox(self._result.sandbox_wait_seconds)
            seconds = (replied - asked, time.perf_counter() - replied)
            self._turns.append(_turn(shown, reply, self._result, seconds))
            await self._wait_for_others()
        self._segments = await session.fetch_segments()

    @property
    def is_pending(self) -> bool:
        """Return whether the episode waits for deferred events or reward terms."""
        return self._result.pending

    async def finish(self) -> None:
        """Wait for deferred events and reward terms, and add them to the turns."""
        with self._stats.scoring:
            self._result = await self._slot.call("finish")
        result, turns = self._result, self._turns
        turns[-1] = replace(turns[-1], reward=result.reward, events=result.events)
        for place, events in result.late_events.items():
            turns[place] = replace(turns[place], events=events)

    def episode(self) -> Episode:
        """Return the finished episode."""
        result = self._result
        if result.failure is not None:
            return self._episode("aborted", failure=result.failure)
        status: Status = "terminated" if result.terminated else "truncated"
        return self._episode(status, reason=result.truncated_by)

    async def aborted(self, failure: Failure) -> Episode:
        """Return the episode with the status ``"aborted"`` and an `Aborted` event."""
        if self._turns:
            event = Aborted(len(self._turns) - 1, failure.name, failure.reason)
            last = self._turns[-1]
            self._turns[-1] = replace(last, events=(*last.events, event))
        self._result, self._segments = StepResult(), ()
        if self._info is None:
            self._info = await self._facts()
        return self._episode("aborted", failure=failure)

    async def _facts(self) -> EpisodeInfo:
        """Return the facts that are known about an episode whose reset failed."""
        if not self._slot.usable:
            return EpisodeInfo()
        try:
            info: EpisodeInfo = await self._slot.call("info")
        except VisenvError:
            return EpisodeInfo()
        return info

    def _episode(
        self, status: Status, *, reason: str = "", failure: Failure | None = None
    ) -> Episode:
        info, spec, result = self._info or EpisodeInfo(), self._spec, self._result
        turns = self._turns
        if failure is not None:  # steps before the failure may have given rewards
            turns = [replace(turn, reward=0.0) for turn in turns]
        return Episode(
            env_id=info.env_id,
            sample_id=info.sample_id,
            kind=info.kind,
            seed=spec.seed,
            group=spec.group,
            member=spec.member,
            turns=tuple(turns),
            status=status,
            reason=reason,
            failure=failure,
            closing=result.messages,
            segments=self._segments,
            terms=dict(result.terms),
            term_notes=dict(result.term_notes),
            metrics=dict(result.metrics),
            question=info.question,
            answers=info.answers,
            ground_truth=info.ground_truth,
            media=dict(info.media),
            env_spec=info.env_spec,
            index=spec.index,
            term_weights=dict(info.term_weights),
            world_version=info.world_version,
        )


def _turn(
    shown: StepResult, reply: Reply, result: StepResult, seconds: tuple[float, float]
) -> Turn:
    return Turn(
        shown.messages,
        reply.text,
        result.reward,
        result.events,
        reply.finish_reason,
        shown.request or TurnRequest(),
        result.hidden_frames,
        *seconds,
    )
