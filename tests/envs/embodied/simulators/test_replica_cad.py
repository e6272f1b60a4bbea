"""Tests EB-Habitat's published tasks: files, errors without habitat-sim, the planning problem.

habitat-sim is not on PyPI, so that no episode is played here.
"""

from __future__ import annotations

import json
import pickle
import subprocess
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from visenv.child_process.host import bare_packages
from visenv.envs.embodied.datasets.eb_habitat import EBHabitatTasks
from visenv.envs.embodied.datasets.published import PublishedTruth
from visenv.envs.embodied.dialects import SkillsDialect
from visenv.envs.embodied.dialects.habitat import OBJECTS
from visenv.envs.embodied.simulators.habitat.published import scene_house
from visenv.errors import ConfigurationError, DataError

NAMES = {0: "013_apple", 1: "fridge", 2: "receptacle_sofa", 3: "cab_push_point_5",
         4: "articulated_object", 5: "drawer3"}  # fmt: skip
EPISODE: dict[str, Any] = {
    "instruction": "Move an apple to the sofa.",
    "scene_id": "v3_sc0_staging_00",
    "scene_dataset_config": "data/replica_cad/replicaCAD.scene_dataset_config.json",
    "additional_obj_config_paths": ["data/objects/ycb/configs"],
    "start_position": [0, 0, 0],
    "start_rotation": [0, 0, 0, 1],
    "rigid_objs": np.array([[0, 0]]),
    "ao_states": {1: {4: 0.5}},
    "name_to_receptacle": np.array([[0, 2]]),
    "markers": [[3, 4, np.array([0.3, 0.0, 0.0]), 5, 1]],
    "targets": {},
    "goal_preds": {
        "expr_type": "AND",
        "quantifier": "EXISTS",
        "inputs": [{"name": "X", "expr_type": "apple"}],
        "sub_exprs": ["on_top(X, receptacle_sofa)", "not_holding()"],
    },
    "subgoals": [["holding(013_apple_:0000)"], ["on_top(013_apple_:0000,receptacle_sofa)"]],
}
DATASET = {
    "category_groups": {"all_cats": {"included": [*OBJECTS]}},
    "object_sets": [{"name": "CLUTTER", "included_substrings": ["013_apple"]},
                    {"name": "apple", "included_substrings": ["013_apple"]}],
    "receptacle_sets": [{"included_receptacle_substrings":
                         [*(f"receptacle_{number}" for number in range(10)), "receptacle_sofa"]}],
}  # fmt: skip
MODULE = "visenv.envs.embodied.simulators.habitat.replica_task"
CODE = """
import json, logging, sys, types, warnings
from pathlib import Path
warnings.simplefilter("ignore")
packages, episode, dataset, folder = json.loads(sys.argv[1])
for name, place in packages:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [place]
from visenv.envs.embodied.simulators.habitat import placeholders
with placeholders.importing():
    import habitat
from habitat.tasks.rearrange.multi_task.pddl_domain import PddlProblem
from visenv.envs.embodied.simulators.habitat import replica_task as task
read = task.read_episode(episode, *task.read_dataset(dataset))
there = {"013_apple_:0000": "apple", "013_apple_:0001": "apple"}
scene = ["frl_sofa_:0000|receptacle_sofa", "table_:0000|receptacle_table"]
assert task._category("013_apple_:0001", read.categories) == "apple"
domain, problem = task.write_problem(Path(folder), read, there, scene)
read_problem = PddlProblem(str(domain), str(problem))
print(json.dumps({
    "goal": read_problem.goal.compact_str,
    "stages": {name: each.compact_str for name, each in read_problem.stage_goals.items()},
    "actions": sorted(read_problem.actions),
    "skills": task.skills_of(read.receptacles, read.words),
    "joints": read.ao_states,
}))
"""


def published(folder: Path) -> str:
    """Write the files of a data set with one episode; return its name."""
    tables = {"all_eps": [EPISODE], "idx_to_name": NAMES, "all_transforms": np.eye(4)[None]}
    (folder / "base.pickle").write_bytes(pickle.dumps(tables))
    (folder / "dataset.yaml").write_text(json.dumps(DATASET))
    return f"eb_habitat:{folder}?subset=base"


def test_numbers_in_a_pickle_become_names_and_poses(tmp_path: Path) -> None:
    published(tmp_path)
    content = json.loads(EBHabitatTasks(tmp_path, "base")[0].truth_as(PublishedTruth).content)
    assert content["rigid_objs"] == [["013_apple", np.eye(4).tolist()]]
    assert content["ao_states"] == {"fridge": {"4": 0.5}}
    assert content["name_to_receptacle"] == {"013_apple": "receptacle_sofa"}
    assert content["markers"] == [
        {"name": "cab_push_point_5", "type": "articulated_object",
         "params": {"offset": [0.3, 0.0, 0.0], "link": "drawer3", "object": "fridge"}}
    ]  # fmt: skip
    assert content["goal_preds"] == EPISODE["goal_preds"]


def test_published_tasks_need_habitat_as_their_simulator(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="need habitat-sim with the scenes of ReplicaCAD"):
        gym.make("visenv/EBHabitat-v0", data=published(tmp_path))


@pytest.mark.component("habitat-lab")
def test_first_reset_without_habitat_sim_names_the_packages_to_install(tmp_path: Path) -> None:
    env = gym.make("visenv/EBHabitat-v0", data=published(tmp_path), simulator="habitat")
    with pytest.raises(ConfigurationError, match=r"lacks habitat_sim and magnum.*aihabitat"):
        env.reset(seed=0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"boxes": True}, "boxes"),
        ({"n_shots": 2}, "examples"),
        ({"subset": "base"}, "subset"),
        ({"skills": "house"}, "EmbodiedBench's skills"),
        ({"host_limits": {"speed": 1}}, "host_limits"),
    ],
)
def test_options_that_published_tasks_lack_are_refused(
    options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        gym.make("visenv/EBHabitat-v0", data=published(tmp_path), simulator="habitat", **options)


def test_missing_list_of_categories_is_named(tmp_path: Path) -> None:
    data = published(tmp_path)
    (tmp_path / "dataset.yaml").unlink()
    with pytest.raises(DataError, match=r"dataset\.yaml"):
        gym.make("visenv/EBHabitat-v0", data=data, simulator="habitat")


@pytest.mark.component("habitat-lab")
def test_habitat_lab_reads_the_planning_problem(tmp_path: Path, simulator_interpreter: str) -> None:
    published(tmp_path)
    content = EBHabitatTasks(tmp_path, "base")[0].truth_as(PublishedTruth).content
    given = [bare_packages(MODULE), json.loads(content), str(tmp_path / "dataset.yaml"),
             str(tmp_path)]  # fmt: skip
    command = [simulator_interpreter, "-c", CODE, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    sofa = "frl_sofa_:0000|receptacle_sofa"
    assert found["goal"] == (
        f"or(and(on_top(013_apple_:0000,{sofa}),not_holding()),"
        f"and(on_top(013_apple_:0001,{sofa}),not_holding()))"
    )
    assert found["stages"] == {
        "condition_0": "and(holding(013_apple_:0000))",
        "condition_1": f"and(on_top(013_apple_:0000,{sofa}))",
    }
    assert found["actions"] == ["close_cab", "close_fridge", "nav", "open_cab", "open_fridge",
                                "pick", "place"]  # fmt: skip
    assert found["joints"] == {"fridge": {"4": 0.5}}
    skills = SkillsDialect(scene_house()).actions
    assert [row[0] for row in found["skills"]] == [each.verb for each in skills]
    assert found["skills"][60] == ["open_up", "fridge_push_point", False]
    assert found["skills"][15] == ["go_to", "receptacle_sofa", False]
