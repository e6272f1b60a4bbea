"""Defines EB-Habitat's published episodes as a data set and a PDDL task of habitat-lab."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attr
import numpy as np
import yaml
from habitat.core.dataset import Dataset
from habitat.core.registry import registry
from habitat.datasets.rearrange.rearrange_dataset import RearrangeEpisode
from typing_extensions import override

from .problem import ROBOT
from .problem_task import ProblemTask
from .skills import VERBS

DOMAIN = Path(__file__).parent / "configs/replica_cad_domain.yaml"

DOORS = ("cab_push_point_7", "cab_push_point_6", "cab_push_point_5", "cab_push_point_4",
         "fridge_push_point")  # fmt: skip
"""ReplicaCAD's markers of openable parts, in the order of the skills."""

CODES = {
    "nav": (),
    "pick": ("not_here", "shut_in", "hand_full"),
    "place": ("hand_empty", "no_receptacle"),
    "open_cab": ("not_near", "already_open"),
    "open_fridge": ("not_near", "already_open"),
    "close_cab": ("not_near", "already_closed"),
    "close_fridge": ("not_near", "already_closed"),
}
"""The codes for the parts of each precondition, in their order."""


@attr.s(auto_attribs=True, kw_only=True)
class ReplicaEpisode(RearrangeEpisode):
    """Represents a published episode.

    Attributes:
        receptacles: The receptacles of the skills, in their order.
        goal: EmbodiedBench's logical expression.
        stages: Lists of predicates: the subgoals.
        categories: The category of each object.
        words: The categories in the order of the skills.
    """

    receptacles: list[str] = attr.ib(factory=list)
    goal: dict[str, Any] = attr.ib(factory=dict)
    stages: list[list[str]] = attr.ib(factory=list)
    categories: dict[str, str] = attr.ib(factory=dict)
    words: list[str] = attr.ib(factory=list)


def read_dataset(file: str) -> tuple[list[str], dict[str, str], list[str]]:
    """Return receptacles, the categories of objects, and all categories from EmbodiedBench's file.

    Raises:
        ValueError: If the file has another form.
    """
    try:
        found = yaml.safe_load(Path(file).read_text(encoding="utf-8"))
        receptacles = found["receptacle_sets"][0]["included_receptacle_substrings"]
        words = found["category_groups"]["all_cats"]["included"]
        categories = {name: each["name"] for each in found["object_sets"]
                      if each["name"] in words for name in each["included_substrings"]}  # fmt: skip
    except (OSError, yaml.YAMLError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{file} is not a dataset.yaml of EB-Habitat: {error!r:.200}") from error
    return receptacles, categories, words


def skills_of(receptacles: list[str], words: list[str]) -> list[list[Any]]:
    """Return the skills in their order, as rows of verb, object and whether it is a category."""
    *cabinets, fridge = DOORS
    return [
        *(["go_to", name, False] for name in (*DOORS, *receptacles)),
        *(["pick", word, True] for word in words),
        *(["put", name, False] for name in receptacles),
        *([verb, fridge, False] for verb in ("open_up", "close_up")),
        *(["open_up", name, False] for name in cabinets),
        *(["close_up", name, False] for name in cabinets),
    ]


def read_episode(
    written: Mapping[str, Any],
    receptacles: list[str],
    categories: dict[str, str],
    words: list[str],
) -> ReplicaEpisode:
    """Return the episode that the loader has read from a pickle."""
    names = ("scene_id", "scene_dataset_config", "additional_obj_config_paths", "start_position",
             "start_rotation", "markers", "name_to_receptacle")  # fmt: skip
    given: dict[str, Any] = {name: written[name] for name in names}
    joints = {name: {int(link): value for link, value in states.items()}
              for name, states in written["ao_states"].items()}  # fmt: skip
    given["rigid_objs"] = [(name, np.asarray(pose)) for name, pose in written["rigid_objs"]]
    given |= {"episode_id": str(written.get("episode_id", "0")), "ao_states": joints, "targets": {}}
    return ReplicaEpisode(
        **given,
        receptacles=receptacles,
        goal=written["goal_preds"],
        stages=written["subgoals"] or [],
        categories=categories,
        words=words,
    )


@registry.register_dataset(name="VisenvReplicaCAD-v0")
class ReplicaDataset(Dataset[ReplicaEpisode]):
    """Represents a data set of the episode that visenv sends, one at a time."""

    def __init__(self, config: Any, episodes: list[ReplicaEpisode]) -> None:
        self.config = config
        self.episodes = episodes


@registry.register_task(name="VisenvReplicaCADPddl-v0")
class ReplicaPddlTask(ProblemTask):
    """Implements habitat-lab's PDDL task with the planning problem of a published episode."""

    codes = CODES

    @override
    def write_first(self, episode: ReplicaEpisode) -> tuple[Path, Path]:
        """Write the domain without objects, which are known only when the scene is loaded."""
        return write_problem(self.folder, episode, {}, ())

    def reset(self, episode: ReplicaEpisode) -> Any:
        """Read the planning problem for the objects of the scene; return the first observations."""
        self._categories = {name: category
                            for name in self._sim.handle_to_object_id
                            for category in [_category(name, episode.categories)]
                            if category}  # fmt: skip
        receptacles = self._sim.receptacles
        self.read_problem(*write_problem(self.folder, episode, self._categories, receptacles))
        places = [_receptacle(name, receptacles) or name for name in episode.receptacles]
        self.skills = skills_of(places, episode.words)
        return super().reset(episode)

    def pddl_action(self, verb: str, name: str) -> str:
        """Return the action of the planning domain for a verb of House."""
        action = VERBS[verb]
        if action not in ("open", "close"):
            return action
        return f"{action}_{'fridge' if 'fridge' in name else 'cab'}"

    def candidates(self, category: str) -> list[str]:
        """Return the objects of a category, the nearest first."""
        robot = np.array(self._sim.get_agent_data(0).articulated_agent.base_pos)
        problem = self.pddl_problem
        names = [name for name, each in self._categories.items() if each == category]

        def distance(name: str) -> float:
            place = problem.sim_info.get_entity_pos(problem.get_entity(name))
            return float(np.linalg.norm(np.array(place) - robot))

        return sorted(names, key=distance)

    def category_of(self, name: str) -> str:
        """Return the category of an object."""
        return self._categories.get(name, "")


def write_problem(
    folder: Path,
    episode: ReplicaEpisode,
    categories: Mapping[str, str],
    receptacles: Iterable[str],
) -> tuple[Path, Path]:
    """Write the domain with the categories, and the problem; return their paths.

    Args:
        folder: The folder of the files.
        episode: The episode; without objects there is no goal.
        categories: The categories of the objects in the scene.
        receptacles: The receptacles of the scene.
    """
    domain = yaml.safe_load(DOMAIN.read_text(encoding="utf-8"))
    domain["types"]["movable_entity_type"] = sorted(episode.words)
    places = [*receptacles]
    objects = [{"name": ROBOT, "expr_type": "robot_entity_type"}]
    objects += [{"name": name, "expr_type": "static_receptacle_entity_type"} for name in places]
    objects += [{"name": name, "expr_type": category} for name, category in categories.items()]
    if categories:
        objects += [{"name": name, "expr_type": "fridge_type" if "fridge" in name else "cab_type"}
                    for name in DOORS]  # fmt: skip
    goal = _renamed(episode.goal, places) if categories else {"expr_type": "AND", "sub_exprs": []}
    stages = episode.stages if categories else []
    problem = {
        "objects": objects,
        "goal": goal,
        "stage_goals": {
            f"condition_{number}": {"expr_type": "AND", "sub_exprs": _renamed(stage, places)}
            for number, stage in enumerate(stages)
        },
    }
    domain_file, problem_file = folder / "domain.yaml", folder / "problem.yaml"
    domain_file.write_text(json.dumps(domain), encoding="utf-8")
    problem_file.write_text(json.dumps(problem), encoding="utf-8")
    return domain_file, problem_file


def _renamed(value: Any, receptacles: list[str]) -> Any:
    """Return an expression with the scene's names of the receptacles."""
    if isinstance(value, dict):
        return {key: _renamed(each, receptacles) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, receptacles) for each in value]
    if not isinstance(value, str) or "(" not in value:
        return value
    name, _, rest = value.partition("(")
    arguments = [each.strip() for each in rest.rstrip(")").split(",") if each.strip()]
    return f"{name}({', '.join(_receptacle(each, receptacles) or each for each in arguments)})"


def _receptacle(name: str, receptacles: Iterable[str]) -> str:
    """Return the receptacle with this name after the name of its object; ``""`` if none."""
    return next((each for each in receptacles if each.rpartition("|")[2] == name), "")


def _category(name: str, categories: Mapping[str, str]) -> str:
    """Return the category of an object, whose name ends with the number of the instance."""
    return categories.get(name.rpartition("_")[0], "")
