"""Runs GEM (gem-llm 0.1.0) for `env_overhead.py`: the adder game with its `ToolEnvWrapper`.

That script runs this one with an interpreter that has GEM. It answers each line ``"<episodes>
<seeded>"`` with steps per second. GEM's dependencies conflict with those of visenv, hence the
second interpreter.
"""

from __future__ import annotations

import random
import re
import sys
import time
from typing import Any

from gem.core import Env
from gem.tools.base_tool import BaseTool
from gem.tools.tool_env_wrapper import ToolEnvWrapper

_CALL = re.compile(r"<tool>\s*name: add\s+amount: (\d+)\s*</tool>")
_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class Adder(BaseTool):  # type: ignore[misc]
    tool_type = "add"
    name = "add"
    total = 0

    def instruction_string(self) -> str:
        return "Add an amount with <tool>."

    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        found = _CALL.search(action)
        if found is None:
            return False, True, "", ""
        self.total += int(found[1])
        return True, False, f"<result>\ntotal {self.total}\n</result>", found[0]


class Sums(Env):  # type: ignore[misc]
    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed)
        first, second = random.randrange(100), random.randrange(100)
        self.answer = str(first + second)
        return f"Add {first}, then {second}, and say the total.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        found = _ANSWER.search(action)
        right = found is not None and found[1].strip() == self.answer
        return "", float(right), True, False, {}


def steps_per_second(env: Any, turns: list[str], episodes: int, seeded: bool) -> float:
    start = time.process_time()
    for episode in range(episodes):
        env.reset(seed=episode if seeded else None)
        for turn in turns:
            env.step(turn)
    return episodes * len(turns) / (time.process_time() - start)


def main() -> None:
    turns = [line.encode().decode("unicode_escape") for line in sys.argv[1:]]
    env = ToolEnvWrapper(Sums(), [Adder()])
    for line in sys.stdin:
        episodes, seeded = line.split()
        print(steps_per_second(env, turns, int(episodes), seeded == "True"), flush=True)


if __name__ == "__main__":
    main()
