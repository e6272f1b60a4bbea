"""Measures steps per second of an environment with a trivial task: the overhead of the library.

    python benchmarks/env_overhead.py --gem-python <interpreter that has gem-llm 0.1.0>

The game is the adder, with three turns per episode (call, call, answer) and a reset. The turns are
fixed, so that no policy is timed. visenv has everything enabled: `gym.make`, the reward wrapper,
the event log. The baselines run alternately in the same run: the same game and observations on
plain Gymnasium through `gym.make`, and the same game in GEM's `ToolEnvWrapper`, which has text
observations only.

The table shows steps per second of processor time and of wall time: the median over rounds, and the
best round, which is closest to an idle machine. Ratios are of processor time within a round.
Processor time does not include waiting, but depends on caches and cores that other processes use.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from typing_extensions import override

from visenv.env import Observation
from visenv.spaces import Unicode, observation_space
from visenv.testing import toy

TURNS = [
    "<think>add</think><tool>\nname: add\namount: 12\n</tool>",
    "<think>add</think><tool>\nname: add\namount: 30\n</tool>",
    "<think>say</think><answer>42</answer>",
]


class Pace(NamedTuple):
    """Holds steps per second of processor time, and of wall time."""

    processor: float
    wall: float


Speed = Callable[[int, bool], Pace]
"""Measures the pace over a number of episodes, seeded or not."""

_CALL = re.compile(r"<tool>\s*name: add\s+amount: (\d+)\s*</tool>")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class BareAdder(gym.Env[Observation, str]):
    """Implements the game with minimal code: no grammar, argument check, log or reward terms."""

    def __init__(self) -> None:
        self.observation_space = observation_space()  # type: ignore[assignment]
        self.action_space = Unicode()

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        first, second = divmod(int(self.np_random.integers(10_000)), 100)
        self.total, self.answer = 0, str(first + second)
        text = f"Add {first}, then {second}, and say the total."
        return {"text": text, "images": ()}, {}

    @override
    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        call = _CALL.search(action)
        if call is not None:
            self.total += int(call[1])
            text = f"<result>\ntotal {self.total}\n</result>"
            return {"text": text, "images": ()}, 0.0, False, False, {}
        answer = _ANSWER.search(action)
        right = answer is not None and answer[1].strip() == self.answer
        return {"text": "", "images": ()}, float(right), True, False, {}


def of_env(env: gym.Env[Observation, str]) -> Speed:
    def speed(episodes: int, seeded: bool) -> Pace:
        start, wall_start = time.process_time(), time.perf_counter()
        for episode in range(episodes):
            env.reset(seed=episode if seeded else None)
            for turn in TURNS:
                env.step(turn)
        steps = episodes * len(TURNS)
        processor, wall = time.process_time() - start, time.perf_counter() - wall_start
        return Pace(steps / processor, steps / wall)

    return speed


def of_gem(interpreter: str) -> Speed:
    script = Path(__file__).with_name("peer_gem.py")
    turns = [turn.encode("unicode_escape").decode() for turn in TURNS]
    peer = subprocess.Popen(
        [interpreter, str(script), *turns],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    assert peer.stdin is not None
    assert peer.stdout is not None
    ask, answers = peer.stdin, peer.stdout

    def speed(episodes: int, seeded: bool) -> Pace:
        wall_start = time.perf_counter()
        ask.write(f"{episodes} {seeded}\n")
        ask.flush()
        processor = float(answers.readline())
        return Pace(processor, episodes * len(TURNS) / (time.perf_counter() - wall_start))

    return speed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gem-python", help="an interpreter that has gem-llm 0.1.0")
    parser.add_argument("--episodes", type=int, default=2000, help="episodes in a round")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    gym.register("bare/Adder-v0", lambda **_: BareAdder())
    speeds: dict[str, Speed] = {
        "visenv": of_env(gym.make(toy.register())),
        "gymnasium": of_env(gym.make("bare/Adder-v0")),
    }
    if arguments.gem_python:
        speeds["GEM"] = of_gem(arguments.gem_python)
    print(f"python {platform.python_version()}, gymnasium {gym.__version__}, load {load()}")
    for seeded in (False, True):
        report(speeds, seeded, arguments.episodes, arguments.rounds)
    if "GEM" not in speeds:
        print("GEM was not measured: pass --gem-python.", file=sys.stderr)


def load() -> str:
    return " ".join(f"{average:.2f}" for average in os.getloadavg())


def report(speeds: dict[str, Speed], seeded: bool, episodes: int, rounds: int) -> None:
    for speed in speeds.values():
        speed(episodes // 4, seeded)  # warm-up
    measured = [
        {name: speed(episodes, seeded) for name, speed in speeds.items()} for _ in range(rounds)
    ]
    print("resets seeded" if seeded else "resets not seeded")
    print(f"  {'steps/s':10} {'processor':>10} {'wall':>10} {'best proc.':>10} {'best wall':>10}")
    for name in speeds:
        paces = [each[name] for each in measured]
        middle = Pace(*(statistics.median(column) for column in zip(*paces, strict=True)))
        best = Pace(*(max(column) for column in zip(*paces, strict=True)))
        ratio = statistics.median(
            each["visenv"].processor / each[name].processor for each in measured
        )
        figures = " ".join(f"{figure:10,.0f}" for figure in (*middle, *best))
        print(f"  {name:10} {figures}   visenv / {name} = {ratio:.2f}")


if __name__ == "__main__":
    main()
