"""Steps per second of an environment whose task costs nothing: what the library itself costs.

    python benchmarks/env_overhead.py --gem-python <interpreter that has gem-llm 0.1.0>

The adder game, three turns an episode (call, call, answer) and a reset, fixed turns so that no
policy is timed. visenv has everything on: `gym.make`, the reward wrapper, the event log. Peers in
the same run, turn about: the same game on bare Gymnasium through `gym.make`, and in GEM's
`ToolEnvWrapper`. Seconds are of processor time, so that other work on the machine counts less.
"""

from __future__ import annotations

import argparse
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym

from visenv.env import Observation
from visenv.spaces import Unicode, observation_space
from visenv.testing import toy

TURNS = [
    "<think>add</think><tool>\nname: add\namount: 12\n</tool>",
    "<think>add</think><tool>\nname: add\namount: 30\n</tool>",
    "<think>say</think><answer>42</answer>",
]
Speed = Callable[[int, bool], float]
"""Steps per second over so many episodes, seeded or not."""

_CALL = re.compile(r"<tool>\s*name: add\s+amount: (\d+)\s*</tool>")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class BareAdder(gym.Env[Observation, str]):
    """The least code that plays the game: no grammar, argument check, log or reward terms."""

    def __init__(self) -> None:
        self.observation_space = observation_space()  # type: ignore[assignment]
        self.action_space = Unicode()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        first, second = divmod(int(self.np_random.integers(10_000)), 100)
        self.total, self.answer = 0, str(first + second)
        text = f"Add {first}, then {second}, and say the total."
        return {"text": text, "images": ()}, {}

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
    def speed(episodes: int, seeded: bool) -> float:
        start = time.process_time()
        for episode in range(episodes):
            env.reset(seed=episode if seeded else None)
            for turn in TURNS:
                env.step(turn)
        return episodes * len(TURNS) / (time.process_time() - start)

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

    def speed(episodes: int, seeded: bool) -> float:
        ask.write(f"{episodes} {seeded}\n")
        ask.flush()
        return float(answers.readline())

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
    print(f"python {platform.python_version()}, gymnasium {gym.__version__}")
    for seeded in (False, True):
        report(speeds, seeded, arguments.episodes, arguments.rounds)
    if "GEM" not in speeds:
        print("GEM was not measured: pass --gem-python.", file=sys.stderr)


def report(speeds: dict[str, Speed], seeded: bool, episodes: int, rounds: int) -> None:
    for speed in speeds.values():
        speed(episodes // 4, seeded)  # warm
    measured = [
        {name: speed(episodes, seeded) for name, speed in speeds.items()} for _ in range(rounds)
    ]
    print("resets seeded" if seeded else "resets not seeded")
    for name in speeds:
        middle = statistics.median(each[name] for each in measured)
        ratio = statistics.median(each["visenv"] / each[name] for each in measured)
        print(f"  {name:10} {middle:10,.0f} steps/s   visenv / {name} = {ratio:.2f}")


if __name__ == "__main__":
    main()
