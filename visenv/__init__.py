"""visenv provides environments for training vision-language models to act over many turns.

    import gymnasium as gym
    import visenv                                # registers the ids

    env = gym.make("visenv/ZoomVQA-v0")
    observation, info = env.reset(seed=0)

Importing this module registers the environments and is fast: every public name below is loaded when
it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from visenv.registration import register_all

__version__ = "0.1.0"

_PUBLIC = {
    "Algorithm": "visenv.algorithm",
    "Batch": "visenv.algorithm",
    "Loss": "visenv.algorithm",
    "EpisodeLimits": "visenv.env",
    "VisEnv": "visenv.env",
    "Policy": "visenv.policy",
    "Session": "visenv.policy",
    "TrainablePolicy": "visenv.policy",
    "RewardTerm": "visenv.rewards",
    "RewardWrapper": "visenv.rewards",
    "Collector": "visenv.rollout",
    "play": "visenv.rollout",
    "TurnRequest": "visenv.types",
    "Episode": "visenv.types",
    "Image": "visenv.types",
    "Message": "visenv.types",
    "Reply": "visenv.types",
    "Sample": "visenv.types",
    "Sampling": "visenv.types",
    "Segment": "visenv.types",
    "StepResult": "visenv.types",
}

__all__ = sorted(["__version__", *_PUBLIC])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'visenv' has no attribute {name!r}")


register_all()
