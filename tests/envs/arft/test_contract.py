"""Tests the contract of environments for presets and modes that the registered ids lack."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import pytest
from typing_extensions import override

from visenv.testing.contract import EnvContract
from visenv.testing.record import Env


class TestTiny(EnvContract):
    """Tests the preset of the tiny model."""

    env_id = "visenv/ArftCoding-v0"
    options: ClassVar[dict[str, Any]] = {"preset": "tiny"}

    @override
    def make(self) -> Env:
        return gym.make(self.env_id, **self.options)


@pytest.mark.soak
class TestPublished(TestTiny):
    """Tests the public code's harness on samples of three steps, which have the highest reward."""

    options: ClassVar[dict[str, Any]] = {
        "preset": "tiny",
        "compat": "arft",
        "problems": ["dark", "rotation180"],
        "prompt": "full",
    }


class TestTinySearch(TestTiny):
    """Tests the tiny preset of searching."""

    env_id = "visenv/ArftSearch-v0"


@pytest.mark.soak
class TestPublishedSearch(TestTinySearch):
    """Tests the public code's loop with one step for each turn, so that the oracle is optimal."""

    options: ClassVar[dict[str, Any]] = {
        "preset": "tiny",
        "compat": "arft",
        "similarity": "words",
        "hops": [2],
        "turns": 3,
        "prompt": "full",
    }
