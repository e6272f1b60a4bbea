"""Counts flaws in 1,000 houses of House, and checks 2,000 oracle episodes twice.

    python benchmarks/house_counts.py > benchmarks/results/2026-11-23-house_counts.txt

The tests check a part of both. The second check of the goals is
`benchmarks.house_checker`, which shares no code with the planner and the goals.
"""

from __future__ import annotations

import time
from collections import Counter

from benchmarks.house_checker import reaches
from visenv.envs.embodied.dialects import DIALECTS
from visenv.envs.embodied.world.goals import is_reached
from visenv.envs.embodied.world.house import flaws
from visenv.envs.embodied.world.state import HouseState
from visenv.envs.embodied.world.tasks import SUBSETS, TaskOptions, make_task

HOUSES = 1_000
EPISODES = 2_000


def main() -> None:
    start = time.perf_counter()
    found = Counter[str]()
    rooms, fixtures, items = Counter[int](), [], []
    for seed in range(HOUSES):
        house = make_task(seed, TaskOptions()).house
        found.update(flaws(house))
        rooms[len(house.rooms)] += 1
        fixtures.append(len({each.kind for each in house.fixtures.values()}))
        items.append(len({each.kind for each in house.items.values()}))
    print(f"{HOUSES} houses: {found.total()} flaws; rooms {dict(sorted(rooms.items()))};")
    print(f"at least {min(fixtures)} types of receptacles and appliances, {min(items)} of objects")

    wrong = disagreed = 0
    lengths: dict[str, list[int]] = {subset: [] for subset in SUBSETS}
    for number in range(EPISODES):
        dialect = ("alfred", "habitat")[number % 2]
        task = make_task(10**6 + number, TaskOptions(dialect))
        actions = DIALECTS[dialect](task.house)
        state = HouseState(task.house)
        ok = all(actions.perform(state, index).ok for index in task.plan)
        reached = ok and is_reached(state, task.goal)
        names = [actions.names[index] for index in task.plan]
        wrong += not reached
        disagreed += reaches(task.house, task.goal, names) != reached
        lengths[task.subset].append(len(task.plan))
    print(
        f"{EPISODES} oracle episodes: {wrong} failed, {disagreed} judged otherwise by the checker"
    )
    for subset, each in lengths.items():
        print(f"  {subset:20} {len(each):4} tasks, plans of {min(each):2} to {max(each):2} actions")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
