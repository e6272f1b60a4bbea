"""Playing one episode, from the reset to its end or to what aborts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from visenv.errors import DataError, PolicyError, ServiceError
from visenv.policy import Policy
from visenv.pool.failure import Failure
from visenv.rollout.executor import EnvFailedError, InlineSeat, Seat
from visenv.rollout.meter import Meter
from visenv.rollout.stage import Env, Facts, Moment, Stage
from visenv.types import (
    Aborted,
    Ask,
    Episode,
    Reply,
    Sampling,
    Segment,
    Status,
    StepRecord,
    Turn,
)


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
    seat = InlineSeat(Stage(env), isolate=False)
    return await play_at(seat, policy, place, sampling or Sampling(), Meter())


async def play_at(
    seat: Seat, policy: Policy[Any], place: Place, sampling: Sampling, meter: Meter
) -> Episode:
    """`play` in an environment wherever it is; one that fails aborts the episode, too."""
    seed = int(np.random.SeedSequence([place.seed, place.member]).generate_state(1)[0])
    sampling = sampling._replace(seed=seed)
    options = None if place.index is None else {"index": place.index}
    facts: Facts | None = None
    turns: list[Turn] = []
    try:
        env = await seat.open()
    except EnvFailedError as error:
        return _aborted(Facts(), place, turns, error.failure)
    session = policy.open(env, seed)
    try:
        with meter.stepping:
            now: Moment = await seat.call("begin", seed=place.seed, options=options)
        seat.begun = True
        facts = now.facts
        while now.record.ask is not None:
            shown = now.record
            session.observe(shown.messages, now.record.ask.context)
            with meter.sampling:
                reply = await policy.respond(session, now.record.ask, sampling)
            meter.sampled(len(reply.token_ids))
            with meter.stepping:
                now = await seat.call("act", text=reply.text)
            turns.append(_turn(shown, reply, now))
        segments = session.segments()
    except EnvFailedError as error:
        return _aborted(facts or await _facts(seat), place, turns, error.failure)
    except (DataError, PolicyError, ServiceError) as error:
        return _aborted(facts or await _facts(seat), place, turns, Failure.of(error))
    return _ended(now.facts or Facts(), place, turns, segments, now)


def boundary(episode: Episode) -> str:
    """What an aborted episode failed at, such as ``"judge"``, ``"timeout"`` or ``"PolicyError"``.

    Reasons read ``"<boundary>: <what went wrong>"``; for any other it is ``"other"``.
    """
    name, colon, _ = episode.reason.partition(":")
    return name if colon else "other"


def _turn(shown: StepRecord, reply: Reply, result: Moment) -> Turn:
    ask = shown.ask or Ask()
    events = result.record.events
    return Turn(shown.messages, reply.text, result.reward, events, reply.finish_reason, ask)


def _ended(
    facts: Facts,
    place: Place,
    turns: Sequence[Turn],
    segments: tuple[Segment, ...],
    last: Moment,
) -> Episode:
    status: Status = "terminated" if last.terminated else "truncated"
    reason = "" if last.terminated else last.truncated_by
    if last.aborted:
        status, reason = "aborted", last.aborted
        turns = _unpaid(turns)
    return _episode(facts, place, turns, segments, status, reason, last.record)


def _aborted(facts: Facts, place: Place, turns: Sequence[Turn], failure: Failure) -> Episode:
    turns = _unpaid(turns)
    if turns:
        event = Aborted(len(turns) - 1, failure.boundary, failure.reason)
        turns[-1] = replace(turns[-1], events=(*turns[-1].events, event))
    return _episode(facts, place, turns, (), "aborted", str(failure), StepRecord())


def _unpaid(turns: Sequence[Turn]) -> list[Turn]:
    """The turns without their rewards: earlier ones may have paid."""
    return [replace(turn, reward=0.0) for turn in turns]


async def _facts(seat: Seat) -> Facts:
    """What an episode is about whose beginning failed."""
    if not seat.usable:
        return Facts()
    try:
        facts: Facts = await seat.call("facts")
    except EnvFailedError:
        return Facts()
    return facts


def _episode(
    facts: Facts,
    place: Place,
    turns: Sequence[Turn],
    segments: tuple[Segment, ...],
    status: Status,
    reason: str,
    last: StepRecord,
) -> Episode:
    return Episode(
        env_id=facts.env_id,
        sample_id=facts.sample_id,
        kind=facts.kind,
        seed=place.seed,
        group=place.group,
        member=place.member,
        turns=tuple(turns),
        status=status,
        reason=reason,
        closing=last.messages,
        segments=segments,
        terms=dict(last.terms),
        metrics=dict(last.metrics),
        truth=facts.truth,
    )
