"""Reads LIBERO's demonstrations with stored frames, in the layouts of LeRobot and openpi.

The published data sets differ in the names of their columns and in where frames are stored:

- ``lerobot/libero`` (version 3.0): two cameras as MP4 files with many episodes each;
- ``HuggingFaceVLA/libero`` (version 3.0): two cameras as PNG in parquet files with many episodes;
- ``physical-intelligence/libero`` (version 2.0, openpi's): PNG in one parquet file per episode;
- other data sets of version 2: the same with LeRobot's names, or with one MP4 file per episode.

All of them store robosuite's observations rotated by 180°. Such frames are mirrored left to right,
compared with the frames of an environment with ``frames="upright"``. The reader therefore mirrors
them for such a preset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from visenv.data.parquet import ParquetRow, ParquetShards
from visenv.decoding.files import read_lines, read_regular
from visenv.decoding.json_text import read_json, read_json_file
from visenv.errors import DataError, VisenvError
from visenv.types import Episode, Image, Message, Turn

from .. import prompts
from ..actions import MOST_ROWS
from ..presets import PRESETS, LiberoPreset, step_limit
from .tasks import language, task_names
from .turns import chunks, moving_rows


class DemonstrationColumns(NamedTuple):
    """Names the columns of a layout."""

    agentview: str
    wrist: str
    action: str


LAYOUTS = (
    DemonstrationColumns("observation.images.image", "observation.images.image2", "action"),
    DemonstrationColumns("observation.images.image", "observation.images.wrist_image", "action"),
    DemonstrationColumns("image", "wrist_image", "actions"),
)
"""The columns of version 3.0, of version 2 and of openpi's data set."""

_EPISODES_PER_CHUNK = 1000


def read_lerobot(
    folder: str | Path, suite: str, preset: str | LiberoPreset = "default"
) -> Iterator[Episode]:
    """Read the demonstrations of a suite as episodes, as an environment would have shown them.

    The data sets contain only successful demonstrations. Demonstrations of other suites are left
    out. Frames have the size and orientation of the preset, and a turn shows the frames before its
    first action.

    Args:
        folder: The data set, with ``meta/`` and ``data/**/*.parquet``.
        suite: The suite of its tasks.
        preset: The preset of the environment that is trained, or its name.

    Raises:
        DataError: If a file cannot be read, which the message names, or no demonstration is of the
            suite.
    """
    chosen = PRESETS[preset] if isinstance(preset, str) else preset
    return _Reader(Path(folder), suite, chosen).episodes()


class _Frames(NamedTuple):
    """Locates the frames of one camera in one episode: a column, or frames of a video file."""

    column: str = ""
    file: Path | None = None
    start_s: float = 0.0


class _Reader:
    """Reads one data set."""

    def __init__(self, folder: Path, suite: str, preset: LiberoPreset) -> None:
        self.folder = folder
        self.suite = suite
        self.preset = preset
        self.known = {language(name): number for number, name in enumerate(task_names(suite))}

    def episodes(self) -> Iterator[Episode]:
        """Yield the episodes of the suite."""
        tasks, found = self._tasks(), False
        for file in sorted(self.folder.glob("data/**/*.parquet")):
            try:
                for episode in self._episodes_of(file, tasks):
                    found = True
                    yield episode
            except (VisenvError, KeyError, IndexError, ValueError, TypeError) as error:
                raise DataError(
                    f"{file} contains no episode: {type(error).__name__}: {error}"
                ) from error
        if not found:
            raise DataError(
                f"{self.folder} contains no demonstration of {self.suite}; its tasks are: "
                f"{'; '.join(sorted(tasks.values())[:5])}."
            )

    def _episodes_of(self, file: Path, tasks: Mapping[int, str]) -> Iterator[Episode]:
        columns = ParquetShards([file]).columns
        layout = self._layout({*columns, *self._features})
        shards = ParquetShards([file], [layout.agentview, layout.wrist])
        rows = groupby(shards.rows(), lambda row: int(row.read()["episode_index"]))
        for number, group in rows:
            demonstration = list(group)
            task = tasks[int(demonstration[0].fields["task_index"])]
            if task not in self.known:
                continue
            cameras = {
                "agentview": self._place(layout.agentview, number, columns),
                "wrist": self._place(layout.wrist, number, columns),
            }
            actions = [row.fields[layout.action] for row in demonstration]
            yield self._episode(number, task, actions, demonstration, (shards, cameras))

    def _episode(
        self,
        number: int,
        task: str,
        actions: Sequence[Sequence[float]],
        rows: Sequence[ParquetRow],
        stored: tuple[ParquetShards, Mapping[str, _Frames]],
    ) -> Episode:
        shards, cameras = stored
        moving = moving_rows(actions)
        limit = step_limit(self.preset, self.suite)
        turns: list[Turn] = []
        for begin in range(0, len(moving), MOST_ROWS):
            places = moving[begin : begin + MOST_ROWS]
            frames = {
                camera: self._frame(shards, cameras[camera], rows[places[0]])
                for camera in prompts.CAMERAS
            }
            if turns:
                parts = (prompts.progress(begin, limit), *prompts.shown_frames(frames))
                messages = [Message("user", parts)]
            else:
                messages = prompts.opening(task, frames, self.preset.prompt == "brief")
            (text,) = chunks([actions[place] for place in places])
            turns.append(Turn(tuple(messages), text, 0.0, (), "stop"))
        turns[-1] = replace(turns[-1], reward=1.0)
        return Episode(
            "visenv/Libero-v0",
            f"{self.suite}/{self.known[task]}/lerobot_{number}",
            self.suite,
            0,
            number,
            0,
            tuple(turns),
            status="terminated",
            question=task,
        )

    def _frame(self, shards: ParquetShards, place: _Frames, row: ParquetRow) -> Image:
        """Return the stored frame of a row, in the size and orientation of the preset."""
        from visenv.opencv import cv2

        if place.file is None:
            encoded = shards.cell(row.number, place.column)["bytes"]
            if not encoded:
                raise DataError(f"the column {place.column!r} has no picture in it")
            image = Image.from_bytes(encoded, f"{row.place}, {place.column}")
        else:
            time = place.start_s + float(row.fields["timestamp"])
            image = Image.from_frame(place.file, round(time * float(self._info["fps"])))
        pixels = image.pixels if self.preset.frames == "rotated" else image.pixels[:, ::-1]
        side = self.preset.frame_side
        if pixels.shape[:2] != (side, side):
            size = (side, side)
            return Image.from_pixels(
                np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
            )
        return Image.from_pixels(pixels.copy())

    # ------------------------------------------------------------------ the files of meta/

    def _layout(self, names: set[str]) -> DemonstrationColumns:
        for layout in LAYOUTS:
            if {layout.agentview, layout.wrist, layout.action} <= names:
                return layout
        expected = " or ".join(", ".join(layout) for layout in LAYOUTS)
        raise DataError(f"expected the columns {expected}; found {', '.join(sorted(names))}")

    def _place(self, column: str, number: int, columns: Mapping[str, str]) -> _Frames:
        """Return the place of a camera's frames of an episode."""
        if column in columns:
            return _Frames(column)
        if str(self._info.get("codebase_version", "")).startswith("v2"):
            chunk = number // int(self._info.get("chunks_size", _EPISODES_PER_CHUNK))
            name = f"videos/chunk-{chunk:03d}/{column}/episode_{number:06d}.mp4"
            return _Frames(file=self.folder / name)
        episode, key = self._videos[number], f"videos/{column}"
        chunk, file = int(episode[f"{key}/chunk_index"]), int(episode[f"{key}/file_index"])
        path = self.folder / f"{key}/chunk-{chunk:03d}/file-{file:03d}.mp4"
        return _Frames(file=path, start_s=float(episode[f"{key}/from_timestamp"]))

    @cached_property
    def _info(self) -> Mapping[str, Any]:
        """Return ``meta/info.json``; empty if it is missing."""
        path = self.folder / "meta/info.json"
        if not path.is_file():
            return {}
        found: dict[str, Any] = read_json_file(read_regular(path))
        return found

    @property
    def _features(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._info.get("features", {})
        return found

    @cached_property
    def _videos(self) -> Mapping[int, Mapping[str, Any]]:
        """Return the rows of ``meta/episodes`` by the number of the episode."""
        files = sorted(self.folder.glob("meta/episodes/**/*.parquet"))
        rows = [row.read() for row in ParquetShards(files).rows()]
        return {int(row["episode_index"]): row for row in rows}

    def _tasks(self) -> Mapping[int, str]:
        """Return the tasks by their index: of ``tasks.parquet``, before that of ``tasks.jsonl``.

        The texts of ``tasks.parquet`` are the index of a table of pandas, which may have no name.
        """
        path = self.folder / "meta/tasks.parquet"
        try:
            if path.is_file():
                rows = [row.read() for row in ParquetShards([path]).rows()]
            else:
                path = self.folder / "meta/tasks.jsonl"
                rows = [read_json(line) for line in read_lines(path)]
            return {
                int(row["task_index"]): str(row.get("task", row.get("__index_level_0__")))
                for row in rows
            }
        except (OSError, DataError, KeyError, ValueError, TypeError) as error:
            raise DataError(f"{path} cannot be read: {error}") from error
