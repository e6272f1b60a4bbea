"""Computes the reward of a saved episode again, from its events and ground truth.

The environment is made again from the spec in the episode (`visenv.evaluation.saved_env`). The
sample is read from its data source, or generated again from the seed, and must have the saved
hashes. Verdicts of scorers are taken from the episode itself, so that the reward is reproduced to
the bit without any judge; a new reward may request further verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.utils import seeding

from visenv import background
from visenv.data.source import draw, is_indexed, world_version
from visenv.env import VisEnv
from visenv.errors import ConfigurationError, DataError, VisenvError
from visenv.evaluation.saved_env import named_in, remake
from visenv.received import ReceivedNames, resolving
from visenv.records import truth_to_json
from visenv.rewards import RewardContext, RewardWrapper
from visenv.scorers.verdict_events import Verdicts, recorded_verdicts
from visenv.seeding import is_held_out
from visenv.types import Aborted, Episode, EventLog, Sample, Scored, Truncated, Turn
from visenv.wrappers import changes_steps, layers

Env = gym.Env[Any, Any]

_NOT_AGAIN = (
    "so its rewards cannot be computed again. The episode can still be read and viewed, with its "
    "saved rewards."
)


class Rescorer:
    """Computes rewards of saved episodes again.

    Args:
        options: Options of the environment to change, for example ``{"reward": "outcome"}`` or
            another ``"data"`` folder; by default all options are those of the episode.
        ask_missing: Whether verdicts that an episode does not contain are requested from scorers.
        trust: Whether episodes may name code, programs, models and servers, which then run with the
            rights of this process; or the classes and functions that they may name. By default
            they may name only registered objects, and objects in `options`.

    Attributes:
        trusted: The names in episodes that were accepted because of `trust`.
    """

    def __init__(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        ask_missing: bool = False,
        trust: bool | Collection[object] = False,
    ) -> None:
        self.trusted: dict[str, None] = {}
        self._options = dict(options or {})
        self._ask_missing = ask_missing
        self._trust = trust
        self._named = [*named_in(self._options)]
        self._envs: dict[str, Env] = {}

    def rescore(self, episode: Episode) -> Episode:
        """Return the episode with the environment's reward, terms and verdicts.

        An aborted episode has no reward and is returned unchanged.

        Raises:
            UntrustedNameError: If the episode names an object that is not registered, without
                `trust`.
            ConfigurationError: If the episode does not contain the spec of its environment, or the
                effect of a wrapper outside of the reward cannot be repeated.
            DataError: If the sample is not the one of the episode, or the environment cannot
                process the episode.
            ServiceError: If a verdict is missing and may not be requested, or a scorer failed.
        """
        if episode.failure is not None:
            return episode
        file = f"The episode of {episode.env_id} (seed {episode.seed})"
        names = ReceivedNames(file, self._trust, self._named)
        try:
            with resolving(names):
                rescored = self._rescored(episode)
        except VisenvError:
            raise
        except Exception as error:  # the options and events of a file can have any value
            raise DataError(
                f"{file} cannot be rescored: {type(error).__name__}: {error!s:.500}"
            ) from error
        self.trusted |= names.used
        return rescored

    def _rescored(self, episode: Episode) -> Episode:
        env = self._env(episode)
        base = env.unwrapped
        assert isinstance(base, VisEnv)
        base.sample = _sample_of(base, episode)
        wrapper, outer = _split(env)
        if wrapper is None:
            return _with_outcome(episode, base, outer)
        verdicts = recorded_verdicts(episode.events)
        return background.run(self._paid(episode, wrapper, outer, base.sample, verdicts))

    def close(self) -> None:
        """Close the environments."""
        while self._envs:
            self._envs.popitem()[1].close()

    def _env(self, episode: Episode) -> Env:
        if not episode.env_spec:
            raise ConfigurationError(
                f"The episode of {episode.env_id} (seed {episode.seed}) does not hold the spec of "
                "its environment: an option, such as a source, or a function that is not at the "
                "top of a module, cannot be written as JSON."
            )
        if episode.env_spec not in self._envs:
            self._envs[episode.env_spec] = remake(episode, self._options)
        return self._envs[episode.env_spec]

    async def _paid(
        self,
        episode: Episode,
        wrapper: RewardWrapper,
        outer: Sequence[gym.RewardWrapper[Any, Any]],
        sample: Sample,
        verdicts: Verdicts,
    ) -> Episode:
        """Compute the rewards of the turns again, in the original order."""
        wrapper.begin_episode()
        names = {term.name for term in wrapper.terms}
        log = EventLog()
        turns: list[Turn] = []
        context = RewardContext(log, sample)
        for number, turn in enumerate(episode.turns, start=1):
            step, by_player = 0.0, 0.0
            for payment in _payments(turn, last=number == len(episode.turns)):
                log.extend(payment.events)
                if payment.is_over or wrapper.each_step:
                    context = await wrapper.score(log, sample, verdicts, self._ask_missing)
                    reward = float(wrapper.reward_now(wrapper.total(context.terms)))
                    step += 0.0 if payment.by_player else reward
                    by_player += reward if payment.by_player else 0.0
            reward = _changed(step, outer) + by_player
            kept = [
                each for each in turn.events if type(each) is not Scored or each.term not in names
            ]
            turns.append(replace(turn, reward=reward, events=tuple(kept)))
        if turns:
            events = (*turns[-1].events, *context.verdict_events)
            turns[-1] = replace(turns[-1], events=events)
        return replace(
            episode,
            turns=tuple(turns),
            terms=context.terms,
            term_notes=context.notes,
            term_weights=wrapper.term_weights,
        )


class _Payment(NamedTuple):
    """Holds events that were logged and then rewarded together."""

    events: Sequence[Any]
    is_over: bool  # whether the episode was over
    by_player: bool  # a wrapper had ended the episode, so the player computed the reward


def _payments(turn: Turn, last: bool) -> Iterator[_Payment]:
    """Yield the events of a turn in the groups that were rewarded together.

    If a wrapper ended the episode, the step was rewarded first, and then its end.
    """
    ended_by_wrapper = any(map(_is_end_by_wrapper, turn.events))
    for by_player, events in groupby(_unscored(turn.events), key=_is_end_by_wrapper):
        is_over = last and (by_player or not ended_by_wrapper)
        yield _Payment(list(events), is_over, by_player)


def _changed(reward: float, outer: Sequence[gym.RewardWrapper[Any, Any]]) -> float:
    """Return a reward after the changes of the wrappers outside of the reward wrapper."""
    for layer in outer:
        reward = float(layer.reward(reward))
    return reward


def _is_end_by_wrapper(event: Any) -> bool:
    return type(event) is Truncated and event.reason == "wrapper"


def _unscored(events: Sequence[Any]) -> Iterator[Any]:
    return (event for event in events if type(event) not in (Scored, Aborted))


def _sample_of(base: VisEnv, episode: Episode) -> Sample:
    """Return the sample of the episode from the environment's source.

    Another version of the world, question, media or ground truth raises `DataError`.
    """
    where = f"The sample {episode.sample_id!r} of {episode.env_id} (seed {episode.seed})"
    if episode.seed < 0:
        raise DataError(f"{where}: a seed must be at least 0.")
    version = world_version(base.source)
    if version != episode.world_version:
        raise DataError(
            f"{where}: the world has changed since the episode was played (it was version "
            f"{episode.world_version}, and is version {version}), {_NOT_AGAIN}"
        )
    rng, _ = seeding.np_random(episode.seed)
    options = {} if episode.index is None else {"index": episode.index}
    sample = draw(base.source, rng, options, is_held_out(episode.seed))
    base.sample = sample
    if sample.id != episode.sample_id:
        raise DataError(f"{where} is not in this data source, which gives {sample.id!r} instead.")
    difference = _difference(base, episode)
    if difference and is_indexed(base.source):
        raise DataError(f"{where}: {difference}.")
    if difference:
        raise DataError(
            f"{where}: the world has changed since the episode was played, or another version of a "
            f"package draws it ({difference}), {_NOT_AGAIN}"
        )
    return sample


def _difference(base: VisEnv, episode: Episode) -> str:
    """Return how the sample of an environment differs from that of an episode, or an empty text."""
    sample = base.sample
    if sample.question != episode.question:
        return f"its question is now {sample.question!r:.200}, and was {episode.question!r:.200}"
    media = base.media_hashes()
    for name in sorted({*media, *episode.media}):
        if media.get(name) != episode.media.get(name):
            return f"{name} differs from that in the episode"
    saved, present = (
        json.dumps([list(answers), truth_to_json(truth)], sort_keys=True)
        for answers, truth in (
            (episode.answers, episode.ground_truth),
            (sample.answers, sample.ground_truth),
        )
    )
    return "" if saved == present else "answers or ground truth differ from those in the episode"


def _split(env: Env) -> tuple[RewardWrapper | None, list[gym.RewardWrapper[Any, Any]]]:
    """Return the outermost `RewardWrapper`, and the wrappers outside that change its rewards."""
    outer: list[gym.RewardWrapper[Any, Any]] = []
    for layer in layers(env):
        if isinstance(layer, RewardWrapper):
            return layer, outer[::-1]
        if isinstance(layer, gym.RewardWrapper):
            outer.append(layer)
        elif isinstance(layer, gym.wrappers.TimeLimit) or not isinstance(layer, gym.Wrapper):
            continue
        elif changes_steps(layer):
            raise ConfigurationError(
                f"The wrapper {type(layer).__name__} overrides step, which rescoring cannot repeat."
            )
    return None, outer[::-1]


def _with_outcome(
    episode: Episode, base: VisEnv, outer: Sequence[gym.RewardWrapper[Any, Any]]
) -> Episode:
    """Return the episode with the environment's own score as its reward, at the end."""
    base.log = EventLog(_unscored(episode.events))
    turns: list[Turn] = []
    for number, turn in enumerate(episode.turns, start=1):
        ends = number == len(episode.turns) and episode.status == "terminated"
        reward = float(base.task_score()) if ends else 0.0
        turns.append(replace(turn, reward=_changed(reward, outer)))
    return replace(episode, turns=tuple(turns), terms={}, term_notes={}, term_weights={})
