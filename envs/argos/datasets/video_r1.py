"""Loads Video-R1 (Feng et al., 2025): training questions about images and videos.

Folder (``Video-R1/Video-R1-data``): ``Video-R1-260k.json`` and ``Video-R1-COT-165k.json``, lists of
rows with ``problem_id``, ``problem``, ``data_type`` ("image" or "video"), ``problem_type``,
``options`` ("A. red"), ``solution`` (``<answer>…</answer>``), ``path`` and ``data_source``. The
images and videos are in the same folder under their paths.

`ArgosImage` uses the images and `ArgosVideo` the videos: ``"video_r1:<folder>?media=video"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from visenv.data.json_rows import json_list
from visenv.data.rows import RowLocation, existing_folder, first_files, id_of, image_by_end, text_of
from visenv.data.video_file import open_video
from visenv.errors import DataError
from visenv.presets import check_choice
from visenv.types import Image, Sample

from ..ground_truth import MediaTruth
from ..presets import MAX_FRAMES
from .common import Benchmark, option_at

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_OPTION = re.compile(r"\s*([A-Z])[.)]\s*(.*)", re.DOTALL)


class _File(NamedTuple):
    path: Path
    is_video: bool


class VideoR1(Benchmark):
    """Loads Video-R1 from a local folder. `Sample.kind` is the type of the problem.

    A video is opened, and the times of its frames are read, when its sample is accessed.

    Args:
        folder: The folder with the json files and the media.
        media: ``"image"`` or ``"video"``.
        split: ``"260k"`` (for RL) or ``"COT-165k"``.

    Raises:
        UnknownNameError: If there is no such kind of media or split.
        DataError: If the folder has no such file, or no row can be used.
    """

    splits = ("260k", "COT-165k")

    def __init__(
        self,
        folder: str | Path,
        media: Literal["image", "video"] = "image",
        split: str = "260k",
    ) -> None:
        check_choice("media", media, ("image", "video"))
        check_choice("split", split, self.splits)
        super().__init__()
        path = existing_folder(folder)
        file = first_files(path, (f"Video-R1-{split}.json",))[0]
        for number, row in enumerate(json_list(file), start=1):
            place = RowLocation(str(file), number)
            with self._listing(place):
                if text_of(row, "data_type") == media:
                    self._keep(place, *_read(path, row, media == "video"))
        self._require_rows(path)

    @override
    def _open_images(self, place: RowLocation, images: _File) -> tuple[Image, ...]:
        if images.is_video:
            return open_video(images.path, MAX_FRAMES)[0]
        return (Image.from_file(images.path),)

    @override
    def _opened(self, sample: Sample, files: _File, images: tuple[Image, ...]) -> Sample:
        if files.is_video:
            times = open_video(files.path, MAX_FRAMES)[1]
            truth = replace(sample.truth_as(MediaTruth), times=times)
            sample = replace(sample, ground_truth=truth)
        return super()._opened(sample, files, images)


def _read(folder: Path, row: Mapping[str, Any], is_video: bool) -> tuple[Sample, _File]:
    file = image_by_end([folder], text_of(row, "path"))
    found = _ANSWER.search(text_of(row, "solution"))
    if found is None or not found[1].strip():
        raise DataError(f"the solution has no <answer>: {row['solution']!r:.80}")
    answer = found[1].strip()
    options = _options(row.get("options"))
    if options:
        answer = option_at(answer[:1], options)
    truth = MediaTruth(
        options=options,
        labels={"source": str(row.get("data_source", ""))},
    )
    sample = Sample(
        id=f"video_r1-{id_of(row, 'problem_id')}",
        question=text_of(row, "problem"),
        answers=(answer,),
        kind=text_of(row, "problem_type"),
        ground_truth=truth,
    )
    return sample, _File(file, is_video)


def _options(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    found = [_OPTION.fullmatch(each) if isinstance(each, str) else None for each in value]
    if not all(found):
        raise DataError(f'options must be texts such as "A. red", got {value!r:.80}')
    return tuple(each[2].strip() for each in found if each)
