"""Loads EB-Habitat's episodes: one pickle for each subset, read without running its code.

A pickle can run any code when it is loaded. The reader here creates only plain containers and the
classes below, as records of their attributes; a pickle that names anything else raises an error.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from visenv.data.rows import RowLocation, existing_folder, first_files
from visenv.decoding.files import check_opcodes
from visenv.errors import DataError
from visenv.types import Sample

from .published import PublishedTasks, PublishedTruth, read_bytes

FILES: Mapping[str, str] = {"spatial": "spatial_relationship"}
"""File names of subsets whose file has another name."""

_ARRAYS = frozenset({
    ("numpy", "dtype"), ("numpy", "ndarray"), ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
})  # fmt: skip
_CONTAINERS = frozenset({("collections", "OrderedDict"), ("builtins", "set"),
                         ("builtins", "frozenset")})  # fmt: skip
_PACKAGES = ("habitat.", "llarp.", "embodiedbench.")
_KEPT = ("scene_id", "task", "task_type", "instruction", "sampled_entities", "target_receptacles",
         "goal_receptacles", "targets", "name_to_receptacle", "episode_id", "instruct_id",
         "scene_dataset_config", "additional_obj_config_paths", "start_position", "start_rotation",
         "rigid_objs", "ao_states", "markers", "start_preds", "goal_preds", "subgoals")  # fmt: skip


class UnloadedObject:
    """Represents an object of a class that is not loaded, by its attributes."""

    class_name: ClassVar[str] = ""

    def __setstate__(self, state: Any) -> None:
        parts = state if isinstance(state, tuple) else (state,)
        for part in parts:
            if isinstance(part, dict):
                self.__dict__.update({str(key): value for key, value in part.items()})


class _Reader(pickle.Unpickler):
    """Loads containers, arrays and `UnloadedObject` objects."""

    @override
    def find_class(self, module: str, name: str) -> Any:
        """Return a class by name."""
        if (module, name) in _ARRAYS | _CONTAINERS:
            return super().find_class(module.replace("numpy.core", "numpy._core"), name)
        if module.startswith(_PACKAGES) and name.isidentifier():
            return type(name, (UnloadedObject,), {"class_name": name})
        raise DataError(f"the pickle names {module}.{name}, which is not loaded")


class EBHabitatTasks(PublishedTasks):
    """Loads the published episodes of EB-Habitat.

    Args:
        folder: The folder with ``base.pickle`` and the others.
        subset: One of the six subsets, or ``"all"``.
        down_sample_ratio: See `PublishedTasks`.

    Raises:
        UnknownNameError: If there is no such subset.
        DataError: If a file is missing, is a pointer of Git LFS, or contains code.
    """

    def __init__(
        self, folder: str | Path, subset: str = "all", down_sample_ratio: float | str = 1.0
    ) -> None:
        super().__init__(subset, down_sample_ratio)
        self.folder = existing_folder(folder)
        for name in self.subsets:
            (file,) = first_files(self.folder, [f"{FILES.get(name, name)}.pickle"])
            for index, episode in self.down_sampled(read_episodes(file)):
                place = RowLocation(file.name, index + 1)
                with self.listing_problems(place):
                    self.add_row(place, _sample(name, index, episode))
        self.require_rows(self.folder)


def read_episodes(file: Path) -> list[Mapping[str, Any]]:
    """Return the episodes of a pickle as mappings of attributes.

    Raises:
        DataError: If the file cannot be read, is a pointer of Git LFS, or contains code.
    """
    content = read_bytes(file)
    try:
        check_opcodes(content)
        value = _Reader(io.BytesIO(content)).load()
    except DataError as error:
        raise DataError(f"{file}: {error}") from error
    except Exception as error:  # a damaged pickle can raise any error
        raise DataError(f"{file} is not a readable pickle: {error!r:.200}") from error
    fields = _fields(value)
    episodes = fields.get("episodes", fields.get("all_eps")) if fields else value
    if not isinstance(episodes, list):
        raise DataError(f"{file} must contain a list of episodes.")
    names, poses = fields.get("idx_to_name"), fields.get("all_transforms")
    if not isinstance(names, dict) or poses is None:
        return [_fields(episode) for episode in episodes]
    return [_spelled(_fields(episode), names, poses) for episode in episodes]


def _spelled(episode: Mapping[str, Any], names: Mapping[Any, str], poses: Any) -> Mapping[str, Any]:
    """Return an episode with names and poses instead of their indices in the tables of the file.

    An episode that does not match the tables is returned unchanged.
    """
    try:
        return {
            **episode,
            "rigid_objs": [[names[int(name)], poses[int(pose)]]
                           for name, pose in episode["rigid_objs"]],
            "ao_states": {names[name]: states for name, states in episode["ao_states"].items()},
            "name_to_receptacle": {names[int(one)]: names[int(other)]
                                   for one, other in episode["name_to_receptacle"]},
            "markers": [
                {"name": names[name], "type": names[kind],
                 "params": {"offset": offset, "link": names[link], "object": names[thing]}}
                for name, kind, offset, link, thing in episode["markers"]
            ],
        }  # fmt: skip
    except (KeyError, IndexError, TypeError, ValueError):
        return episode


def _fields(value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    return vars(value) if isinstance(value, UnloadedObject) else {}


def _sample(subset: str, index: int, episode: Mapping[str, Any]) -> Sample:
    instruction = episode.get("instruction")
    if not isinstance(instruction, str) or not instruction:
        raise DataError(f"no instruction: {instruction!r:.80}")
    kept = {key: _plain(episode[key]) for key in _KEPT if key in episode}
    scene = episode.get("scene_id", "")
    truth = PublishedTruth(
        benchmark="eb_habitat",
        subset=subset,
        scene=scene if isinstance(scene, str) else "",
        task=str(episode.get("task_type", "")),
        content=json.dumps(kept, sort_keys=True),
        labels={"subset": subset},
    )
    return Sample(f"eb_habitat/{subset}/{index}", instruction, kind=subset, ground_truth=truth)


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; a value without a JSON form becomes its type's name."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if depth < 8 and isinstance(value, dict):
        return {str(key): _plain(each, depth + 1) for key, each in value.items()}
    if depth < 8 and isinstance(value, Sequence):
        return [_plain(each, depth + 1) for each in value]
    return type(value).__name__
