"""Runs a player of House that misbehaves: ``hostile_player.py <behavior> <number of actions>``.

The player misbehaves after this number of actions. With the behavior ``"floor plan"``, it works
normally and serves the house of seed 5 as the scene FloorPlan1.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from typing_extensions import override

from visenv.envs.embodied.simulators.thor.player import HousePlayer, main

BEHAVIOR, AFTER = sys.argv[1], int(sys.argv[2])


class HostilePlayer(HousePlayer):
    """Misbehaves after some actions."""

    count = 0

    @override
    def answer(self, action: Mapping[str, Any]) -> tuple[str, Any]:
        if BEHAVIOR == "floor plan":
            if action["action"] == "GetScenesInBuild":
                return "", ["FloorPlan1_physics"]
            if action["action"] == "Reset":
                self.load(5, {"subset": "base"})
                return "", None
            return super().answer(action)
        self.count += 1
        if self.count > AFTER:
            if BEHAVIOR == "print":
                print("x" * 100_000, flush=True)
            if BEHAVIOR == "hang":
                time.sleep(600)
            if BEHAVIOR == "die":
                print("last words", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(action)

    @override
    def event(self, action: Mapping[str, Any], error: str, result: Any) -> dict[str, Any]:
        found = super().event(action, error, result)
        if self.count > AFTER:
            if BEHAVIOR == "wrong number":
                found["sequenceId"] += 7
            if BEHAVIOR == "no objects":
                del found["agents"][0]["objects"]
        return found

    @override
    def frame(self) -> Any:
        drawn = super().frame()
        small = self.count > AFTER and BEHAVIOR == "small frame"
        return np.zeros((3, 3, 3), np.uint8) if small else drawn


if __name__ == "__main__":
    main(HostilePlayer)
