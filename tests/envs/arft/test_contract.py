"""The contract of environments, for the presets and modes that the registered id does not cover."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
from typing_extensions import override

from visenv.testing.contract import EnvContract
from visenv.testing.record import Env


class TestTiny(EnvContract):
    """The preset of the tiny model."""

    env_id = "visenv/ArftCoding-v0"
    options: ClassVar[dict[str, Any]] = {"preset": "tiny"}

    @override
    def make(self) -> Env:
        return gym.make(self.env_id, **self.options)


class TestPublished(TestTiny):
    """The public code's harness, on samples of three steps, whose top is the highest."""

    options: ClassVar[dict[str, Any]] = {
        "preset": "tiny",
        "compat": "arft",
        "problems": ["dark", "rotation180"],
        "prompt": "full",
    }


class TestTinySearch(TestTiny):
    """The same of searching."""

    env_id = "visenv/ArftSearch-v0"


class TestPublishedSearch(TestTinySearch):
    """The public code's loop, where every turn has a step, so that the oracle reaches the top."""

    options: ClassVar[dict[str, Any]] = {
        "preset": "tiny",
        "compat": "arft",
        "similarity": "words",
        "hops": [2],
        "turns": 3,
        "prompt": "full",
    }
