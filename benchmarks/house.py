"""The speed of House on one core: a skill with its frame, ids, creation, planning.

    LP_NUM_THREADS=1 python benchmarks/house.py > benchmarks/results/2026-11-23-house.txt

Medians of the CPU time of one run, all threads together. MiniWorld, the nearest peer, is not
measured here.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("LP_NUM_THREADS", "1")  # threads of OSMesa's renderer

from visenv.envs.embodied.simulation import HouseSimulation
from visenv.envs.embodied.source import house_sample
from visenv.envs.embodied.world.planner import plan
from visenv.envs.embodied.world.tasks import TaskOptions, make_task


def median_ms(run: Callable[[], object], count: int) -> float:
    """Return the median CPU time of a function in milliseconds."""
    times = []
    for _ in range(count):
        start = time.process_time()
        run()
        times.append(1e3 * (time.process_time() - start))
    return statistics.median(times)


def skills(simulation: HouseSimulation, side: int, antialias: bool, with_ids: bool) -> float:
    """Return the median time of going somewhere and seeing it, in milliseconds."""
    places = [index for index, each in enumerate(simulation.dialect.actions)
              if each.verb == "go_to"]  # fmt: skip
    turn = iter(places * 10)

    def act() -> None:
        simulation.act(next(turn))
        simulation.frame(side, antialias)
        if with_ids:
            simulation.renderer.ids(simulation.state, side)

    act()
    return median_ms(act, 100)


def main() -> None:
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    simulation = HouseSimulation(house_sample(0, TaskOptions()).ground_truth)
    for side, antialias, with_ids in (
        (96, False, False), (224, False, False), (224, False, True), (500, True, False),
    ):  # fmt: skip
        what = f"{side} px{', antialiased' * antialias}{', with ids' * with_ids}"
        took = skills(simulation, side, antialias, with_ids)
        print(f"skill and frame, {what:22} {took:6.1f} CPU ms")
    seeds = iter(range(100, 1000))
    took = median_ms(lambda: make_task(next(seeds), TaskOptions()), 30)
    print(f"task and house                          {took:6.1f} CPU ms")

    def create() -> None:
        made = HouseSimulation(house_sample(next(seeds), TaskOptions()).ground_truth)
        made.frame(224, False)

    print(f"creation, with the first frame          {median_ms(create, 20):6.1f} CPU ms")
    truth = simulation.truth
    fresh = HouseSimulation(truth).state
    print(f"planning                                "
          f"{median_ms(lambda: plan(fresh, truth.goal), 50):6.1f} CPU ms")  # fmt: skip


if __name__ == "__main__":
    main()
