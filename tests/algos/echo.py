"""Provides an environment of two letters, without PyTorch.

The environment shows a letter, then an image and another letter; each correct answer, its capital,
earns 0.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from typing_extensions import override

from visenv.types import Event, Image, Message, Sample, StepResult, TurnRequest, TurnTaken

LETTERS = "abcd"


class Echo(gym.Env[Any, str]):
    """Asks twice for the capital of a letter; `on_reset` and `aborts` can cause failures."""

    def __init__(
        self,
        on_reset: Callable[[int], None] | None = None,
        aborts: Callable[[int], bool] | None = None,
    ) -> None:
        self._on_reset = on_reset or (lambda seed: None)
        self._aborts = aborts or (lambda seed: False)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        assert seed is not None
        self._on_reset(seed)
        self._seed = seed
        self._letters = [LETTERS[index] for index in self.np_random.integers(4, size=2)]
        self._turn = 0
        self.sample = Sample("".join(self._letters), "Which capital?", kind=self._letters[0])
        return None, self._info(
            StepResult((Message("user", (self._letters[0],)),), (), TurnRequest())
        )

    @override
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        right = action == self._letters[self._turn].upper()
        event: Event = TurnTaken(self._turn, action, None)
        self._turn += 1
        record = StepResult((), (event,), terms={"right": float(right)})
        if self._turn == 1:
            gray = Image.from_pixels(np.full((2, 2, 3), self._seed % 256, np.uint8))
            messages = (Message("user", (gray, self._letters[1])),)
            record = record._replace(messages=messages, request=TurnRequest())
            return None, right / 2, False, False, self._info(record)
        aborted = "judge: away" if self._aborts(self._seed) else ""
        reward = 0.0 if aborted else right / 2
        return None, reward, not aborted, bool(aborted), self._info(record, aborted)

    def _info(self, record: StepResult, aborted: str = "") -> dict[str, Any]:
        return {"step": record, "aborted": aborted, "truncated_by": ""}
