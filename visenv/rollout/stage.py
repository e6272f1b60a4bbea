"""What playing an episode needs of an environment, and no more: little must travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from visenv.env import Observation, VisEnv
from visenv.types import StepRecord

Env = gym.Env[Observation, str]
MakeEnv = Callable[[], Env]


class Facts(NamedTuple):
    """What an episode is about; empty where the environment could not say.

    Attributes:
        env_id: Its registered id, or its class.
        sample_id: `Sample.id`.
        kind: `Sample.kind`.
        truth: `VisEnv.truth`.
    """

    env_id: str = ""
    sample_id: str = ""
    kind: str = ""
    truth: Mapping[str, Any] = {}


class Moment(NamedTuple):
    """What came of a reset or a step.

    Attributes:
        record: Messages, events and the request for the next turn.
        reward: Of the step.
        terminated: Whether the task ended.
        aborted: Why the environment gave up, or ``""``.
        truncated_by: The limit that was hit, or ``""``.
        facts: Told when the episode begins and when it ends.
    """

    record: StepRecord
    reward: float = 0.0
    terminated: bool = False
    aborted: str = ""
    truncated_by: str = ""
    facts: Facts | None = None


class Stage:
    """An environment on which episodes are played.

    Observations are left behind: they repeat the messages of the record, as arrays.

    Args:
        env: The environment.

    Attributes:
        env: The same.
    """

    def __init__(self, env: Env) -> None:
        self.env = env

    def begin(self, seed: int, options: dict[str, Any] | None) -> Moment:
        """Reset."""
        _, info = self.env.reset(seed=seed, options=options)
        ending = (False, info["aborted"], info["truncated_by"])
        return Moment(info["step"], 0.0, *ending, self.facts())

    def act(self, text: str) -> Moment:
        """Take a turn."""
        _, reward, terminated, _, info = self.env.step(text)
        record: StepRecord = info["step"]
        facts = self.facts() if record.ask is None else None
        ending = (terminated, info["aborted"], info["truncated_by"])
        return Moment(record, float(reward), *ending, facts)

    def facts(self) -> Facts:
        """What the present episode is about."""
        base = self.env.unwrapped
        env_id = base.spec.id if base.spec is not None else type(base).__name__
        sample = getattr(base, "sample", None)
        if sample is None:
            return Facts(env_id)
        truth = base.truth() if isinstance(base, VisEnv) else {}
        return Facts(env_id, sample.id, sample.kind, truth)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()
