"""Measures the speed of House: a skill with its frame, ids, creation, planning, eight episodes.

    python benchmarks/house.py --miniworld-python <interpreter> \
        > benchmarks/results/2026-11-23-house.txt

Numbers are medians of one run. ``CPU ms`` is the CPU time of all threads of the process, ``ms`` the
elapsed time, which depends on other load of the machine; the load is printed. MiniWorld, the most
similar project, is measured in its own interpreter (`peer_miniworld.py`). Its line is omitted
without ``--miniworld-python``.

The eight episodes have different lengths. The last line is the limit with two free cores: the CPU
time of the episodes one after another, divided by half of the CPU time of all workers or by the
longest episode, whichever is longer.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
from typing_extensions import override

import visenv  # noqa: F401 - registers the ids
from visenv.envs.embodied.simulation import HouseSimulation
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.planner import plan
from visenv.envs.embodied.world.tasks import TaskOptions
from visenv.grammar import ParsedTurn, ToolCall
from visenv.grammar.plan import TOOL

EPISODES = 8
_TICK = os.sysconf("SC_CLK_TCK")


class Took(NamedTuple):
    """Holds milliseconds of CPU time and of elapsed time."""

    busy: float
    elapsed: float

    @override
    def __str__(self) -> str:
        return f"{self.busy:7.1f} CPU ms {self.elapsed:7.1f} ms"


def took(run: Callable[[], object]) -> Took:
    """Return how long a function takes."""
    busy, elapsed = time.process_time(), time.perf_counter()
    run()
    return Took(1e3 * (time.process_time() - busy), 1e3 * (time.perf_counter() - elapsed))


def median(run: Callable[[], object], count: int) -> Took:
    """Return the medians of several runs."""
    every = [took(run) for _ in range(count)]
    return Took(*(statistics.median(column) for column in zip(*every, strict=True)))


def show(what: str, value: Took) -> None:
    print(f"{what:44} {value}", flush=True)


def skill(side: int, antialias: bool, with_ids: bool) -> Took:
    """Return the median time of one `go_to` skill with its frame."""
    simulation = HouseSimulation(house_sample(0, TaskOptions()).ground_truth)
    places = [index for index, each in enumerate(simulation.dialect.actions)
              if each.verb == "go_to"]  # fmt: skip
    turn = iter(places * 10)

    def act() -> None:
        simulation.act(next(turn))
        simulation.frame(side, antialias)
        if with_ids:
            simulation.renderer.ids(simulation.state, side)

    act()
    return median(act, 100)


def show_one_house() -> None:
    """Print the times of House in this process."""
    for side, antialias, with_ids in (
        (96, False, False), (224, False, False), (224, True, False), (224, False, True),
        (500, True, False),
    ):  # fmt: skip
        options = f"{', antialiased' * antialias}{', with ids' * with_ids}"
        show(f"skill and frame, {side} px{options}", skill(side, antialias, with_ids))
    seeds = iter(range(100, 1000))

    def create() -> None:
        made = HouseSimulation(house_sample(next(seeds), TaskOptions()).ground_truth)
        made.frame(224, False)

    show("creation, with the first frame", median(create, 20))
    truth = house_sample(0, TaskOptions()).ground_truth
    state = HouseSimulation(truth).state
    show("planning", median(lambda: plan(state, truth.goal), 50))


def show_miniworld(interpreter: str) -> None:
    """Print the times of MiniWorld."""
    script = Path(__file__).with_name("peer_miniworld.py")
    asked = "224 100\n500 50\n"
    answers = subprocess.run(
        [interpreter, str(script)], input=asked, capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in answers.splitlines() if line[0].isdigit()]  # without its log messages
    for side, line in zip((224, 500), lines, strict=True):
        show(f"MiniWorld 2.1.0, a step, {side} px", Took(*map(float, line.split())))


class Script(NamedTuple):
    """Holds eight episodes: their seeds, and the turns of the oracle, one action each."""

    seeds: list[int]
    turns: list[list[str]]


def script(env: gym.Env[Any, Any], first: int) -> Script:
    """Return the episodes of eight seeds."""
    seeds = list(range(first, first + EPISODES))
    return Script(seeds, [turns_of(env, seed) for seed in seeds])


def turns_of(env: gym.Env[Any, Any], seed: int) -> list[str]:
    """Return the turns of the oracle, one action each."""
    env.reset(seed=seed)
    base: Any = env.unwrapped
    names = base.simulation.dialect.names
    calls = [ToolCall(TOOL, {"action_id": index, "action_name": names[index]})
             for index in base.truth.plan]  # fmt: skip
    return [base.grammar.compose(ParsedTurn("", (call,))) for call in calls]


def play(env: gym.Env[Any, Any], seed: int, turns: list[str]) -> None:
    """Play an episode."""
    env.reset(seed=seed)
    for turn in turns:
        env.step(turn)


def play_together(pool: Any, episodes: Script) -> None:
    """Play all episodes; an episode takes its next turn as soon as its result is available."""
    pool.reset(seed=episodes.seeds)
    left = {index: iter(turns) for index, turns in enumerate(episodes.turns)}
    pool.submit({index: next(turns) for index, turns in left.items()})
    while left:
        for index in pool.ready():
            turn = next(left[index], None)
            if turn is None:
                del left[index]
            else:
                pool.submit({index: turn})


def busy_children() -> float:
    """Return the CPU time of the children in milliseconds."""
    total = 0.0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        total += 1e3 * (int(fields[11]) + int(fields[12])) / _TICK
    return total


def show_eight(rounds: int = 3) -> None:
    """Print the speed-up of eight episodes in worker processes over one after another.

    Every round has new houses, because a process caches the houses that it drew last.
    """
    env = gym.make("visenv/House-v0")
    first, *scripts = [script(env, 100 * number) for number in range(rounds + 1)]
    for seed in range(90_000, 90_004):  # evicts the houses of the last script from the cache
        env.reset(seed=seed)
    pool: Any = gym.make_vec("visenv/House-v0", num_envs=EPISODES, workers="process")
    play_together(pool, first)
    bounds, ratios = [], []
    for episodes in scripts:
        pairs = list(zip(episodes.seeds, episodes.turns, strict=True))
        each = [took(partial(play, env, *pair)) for pair in pairs]
        alone = Took(*map(sum, zip(*each, strict=True)))
        before = busy_children()
        together = took(partial(play_together, pool, episodes))
        busy = busy_children() - before + together.busy
        bounds.append(alone.busy / max(busy / 2, *(episode.busy for episode in each)))
        ratios.append(alone.elapsed / together.elapsed)
        lengths = sorted(map(len, episodes.turns))
        print(f"{EPISODES} episodes of {lengths} actions, House-v0, 224 px")
        show("  one after another", alone)
        show("  in eight processes", Took(busy, together.elapsed))
    pool.close()
    env.close()
    print(f"  faster, elapsed time                       {statistics.median(ratios):7.2f} x")
    print(f"  faster, what two free cores allow          {statistics.median(bounds):7.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--miniworld-python", help="an interpreter that has miniworld 2.1.0")
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    show_one_house()
    if arguments.miniworld_python:
        show_miniworld(arguments.miniworld_python)
    show_eight()


if __name__ == "__main__":
    main()
