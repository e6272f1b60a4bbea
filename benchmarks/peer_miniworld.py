"""Runs MiniWorld (miniworld 2.1.0, pyglet 1.5) for `house.py`: a step with its frame.

That script runs this one with an interpreter that has MiniWorld. It answers each line ``"<side>
<steps>"`` with the medians of the CPU time and of the elapsed time of a step, in milliseconds.
MiniWorld needs pyglet 1.5, libEGL and libGLU; it opens an EGL context without a display.
"""

from __future__ import annotations

import statistics
import sys
import time

import pyglet

pyglet.options["headless"] = True  # before anything opens a window

import gymnasium as gym  # noqa: E402
import miniworld  # noqa: E402, F401 - registers its ids

ENV = "MiniWorld-Sign-v0"
"""A room with boxes and keys of several colors, and a sign."""


def step_ms(side: int, steps: int) -> tuple[float, float]:
    """Return the median CPU time and the median elapsed time of a step that turns."""
    env = gym.make(ENV, obs_width=side, obs_height=side)
    env.reset(seed=0)
    busy, elapsed = [], []
    for step in range(steps + 3):
        cpu, wall = time.process_time(), time.perf_counter()
        _, _, terminated, truncated, _ = env.step(step % 2)
        if step >= 3:
            busy.append(1e3 * (time.process_time() - cpu))
            elapsed.append(1e3 * (time.perf_counter() - wall))
        if terminated or truncated:
            env.reset(seed=step)
    env.close()
    return statistics.median(busy), statistics.median(elapsed)


if __name__ == "__main__":
    for line in sys.stdin:
        print(*step_ms(*map(int, line.split())), flush=True)
