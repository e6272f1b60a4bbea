"""Provides an environment with an image in every turn, for any policy, and a tiny model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from typing_extensions import override

from tests.tiny_models import tiny_model
from visenv.errors import ServiceError
from visenv.types import Image, Message, Sample, StepResult, TurnRequest, TurnTaken, Video

TURNS = 2


class Pictures(gym.Env[Any, str]):
    """Shows one image per turn; the reward depends on the length of the turns.

    Args:
        trouble: Called with the seed and the number of the step (-1 for the reset); may raise.
    """

    def __init__(self, trouble: Callable[[int, int], None] = lambda seed, turn: None) -> None:
        self._trouble = trouble

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        assert seed is not None
        self._seed = seed
        self._turn = 0
        self._trouble(seed, -1)
        self.sample = Sample(f"picture {seed}", "What is it?")
        return None, self._info(StepResult(self._show("left or right?"), (), TurnRequest()))

    @override
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._trouble(self._seed, self._turn)
        event = TurnTaken(self._turn, action, None)
        self._turn += 1
        over = self._turn == TURNS
        if over:
            record = StepResult((), (event,))
        else:
            record = StepResult(self._show(" now clear "), (event,), TurnRequest("<think>"))
        return None, float(len(action) % 7) / 4, over, False, self._info(record)

    def _show(self, text: str) -> tuple[Message, ...]:
        side = 48 + 24 * self._turn
        pixels = self.np_random.integers(0, 255, (side, 72, 3), dtype=np.uint8)
        return (Message("user", (Image.from_pixels(pixels), text)),)

    def _info(self, record: StepResult) -> dict[str, Any]:
        return {"step": record, "aborted": "", "truncated_by": ""}


class Films(Pictures):
    """Shows each picture as a video of two frames."""

    @override
    def _show(self, text: str) -> tuple[Message, ...]:
        frames = [*super()._show("")[0].images, *super()._show("")[0].images]
        return (Message("user", (Video(tuple(frames), (0.0, 0.5)), text)),)


def unavailable(seed: int, turn: int) -> None:
    """Raise a `ServiceError` in the second step of episodes with an odd seed."""
    if seed % 2 and turn == 1:
        raise ServiceError("judge", "away")


@pytest.fixture
def pictures() -> Any:
    """Return this module, which tests cannot import in pytest's importlib mode."""
    import sys

    return sys.modules[__name__]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("model") / "tiny")
