"""Tests that every loader passes on all images of a row, or refuses the row with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

import visenv  # noqa: F401 - registers the environments
from tests.environments import NEEDED
from tests.envs.published_sets import SETS, WITHOUT_IMAGES
from visenv.data import cells, table_source
from visenv.data.open import open_data
from visenv.data.table_source import TableSource
from visenv.errors import ConfigurationError, DataError
from visenv.registration import DATA, load
from visenv.types import all_images

pytestmark = pytest.mark.component("pyarrow", "opencv")


def written(name: str, folder: Path) -> str:
    """Write a data set, and return its name for `open_data`."""
    folder.mkdir(parents=True, exist_ok=True)
    SETS[name].write(folder)
    file = folder / "my.jsonl" if name == "rows" else folder
    return f"{name}:{file}{SETS[name].options}"


def images_of(source: Any) -> dict[str, int]:
    """Return the numbers of images of the samples that can be read, by id."""
    counts: dict[str, int] = {}
    for index in range(len(source)):
        try:
            counts[source[index].id] = len(source[index].images)
        except DataError as error:
            assert "SHA-256" in str(error)  # noqa: PT017 - a row that the tests of the loader have
    return counts


def test_data_sets_with_images_are_all_tested() -> None:
    assert SETS.keys() | WITHOUT_IMAGES == DATA.keys()
    assert not SETS.keys() & WITHOUT_IMAGES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.component(*needed)) if needed else name
        for name, published in SETS.items()
        for needed in [NEEDED.get(f"visenv/{published.env_id}", ())]
    ],
)
def test_second_image_of_a_cell_is_passed_on_or_the_row_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = open_data(written(name, tmp_path / "alone" / name))
    counts = images_of(alone)
    assert sum(counts.values()) > 0
    if not isinstance(alone, TableSource):
        return  # see the next test

    def twice(value: Any) -> list[cells.ImageCell]:
        return 2 * cells.image_cells(value)

    monkeypatch.setattr(table_source, "image_cells", twice)
    data = written(name, tmp_path / "twice" / name)  # the first source stays in the cache
    try:
        source: Any = open_data(data)
    except DataError as error:
        assert "image" in str(error)  # noqa: PT017 - both are right
        return
    found = images_of(source)
    for identity, count in found.items():
        is_video = count > 2 * counts[identity]
        assert is_video or count == 2 * counts[identity], identity
    refused = [problem for problem in source.problems if "image" in problem.problem]
    assert len(found) + len(refused) >= len(counts)
    if SETS[name].env_id and any(found.values()):
        env = gym.make(f"visenv/{SETS[name].env_id}", data=data, disable_env_checker=True)
        base: Any = env.unwrapped
        index = next(index for index in range(len(source)) if found.get(source[index].id))
        try:
            _, info = env.reset(seed=0, options={"index": index})
        except (DataError, ConfigurationError) as error:
            assert "image" in str(error)  # noqa: PT017 - both are right
        else:
            assert len(all_images(info["step"].messages)) >= len(base.sample.images) > 1
        env.close()


SINGLE = {  # loaders of one image, by the column of its name
    "mat_coding": ("MAT-Coding.json", "processed_image_path"),
    "mat_search": ("MAT-Search.json", "image_path"),
}


@pytest.mark.parametrize("name", SINGLE)
def test_list_of_images_is_refused_by_a_loader_of_one(name: str, tmp_path: Path) -> None:
    data = written(name, tmp_path)
    file, column = SINGLE[name]
    (row,) = json.loads((tmp_path / file).read_text())
    several = {**row, "id": 9, column: [row[column], row[column]]}
    (tmp_path / file).write_text(json.dumps([row, several]))
    source = open_data(data)
    assert len(source) == 1
    assert column in source.problems[0].problem


def test_loaders_that_are_no_tables_are_known() -> None:
    """Each has a test of its own: ARMBench in its tests, V*Bench has one image for each file."""
    others = {
        name
        for name in DATA
        if name in SETS and not issubclass(load("data set", name), TableSource)
    }
    assert others == {"armbench", "vstar", *SINGLE}
