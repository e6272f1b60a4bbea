"""Loads Video-R1 (Feng et al., 2025): training questions about images and videos.

Folder (``Video-R1/Video-R1-data``): ``Video-R1-260k.json`` and ``Video-R1-COT-165k.json``, lists of
rows with ``problem_id``, ``problem``, ``data_type`` ("image" or "video"), ``problem_type``,
``options`` ("A. red"), ``solution`` (``<answer>…</answer>``), ``path`` and ``data_source``. The
images and videos are in the same folder under their paths.

`ArgosImage` uses the images and `ArgosVideo` the videos: ``"video_r1:<folder>?media=video"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from visenv.data.rows import RowLocation, id_of, text_of
from visenv.data.video_file import open_video
from visenv.errors import DataError
from visenv.presets import check_choice
from visenv.types import Image, Sample

from ..ground_truth import MediaTruth
from ..presets import MAX_FRAMES
from .common import Benchmark, option_at

_ANSWER = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_OPTION = re.compile(r"\s*([A-Z])[.)]\s*(.*)", re.DOTALL)


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
    image_columns = ("path",)
    image_folders = ("",)

    def __init__(
        self,
        folder: str | Path,
        media: Literal["image", "video"] = "image",
        split: str = "260k",
    ) -> None:
        check_choice("media", media, ("image", "video"))
        check_choice("split", split, self.splits)
        self.media = media
        self.patterns = (f"Video-R1-{split}.json",)
        super().__init__(folder)

    @override
    def open_images(self, place: RowLocation, images: Sequence[Path]) -> tuple[Image, ...]:
        if self.media == "video":
            return open_video(images[0], MAX_FRAMES)[0]
        return super().open_images(place, images)

    @override
    def attach_images(self, sample: Sample, files: Any, images: tuple[Image, ...]) -> Sample:
        if self.media == "video":
            times = open_video(files[0], MAX_FRAMES)[1]
            truth = replace(sample.truth_as(MediaTruth), times=times)
            sample = replace(sample, ground_truth=truth)
        return super().attach_images(sample, files, images)

    @override
    def make_sample(self, place: RowLocation, row: Mapping[str, Any]) -> Sample | tuple[()]:
        if text_of(row, "data_type") != self.media:
            return ()
        found = _ANSWER.search(text_of(row, "solution"))
        if found is None or not found[1].strip():
            raise DataError(f"the solution has no <answer>: {row['solution']!r:.80}")
        answer = found[1].strip()
        options = _options(row.get("options"))
        if options:
            answer = option_at(answer[:1], options)
        source = str(row.get("data_source", ""))
        return Sample(
            id=f"video_r1-{id_of(row, 'problem_id')}",
            question=text_of(row, "problem"),
            answers=(answer,),
            kind=text_of(row, "problem_type"),
            ground_truth=MediaTruth(options=options, labels={"source": source}),
        )


def _options(value: Any) -> tuple[str, ...]:
    if not value:
        return ()
    found = [_OPTION.fullmatch(each) if isinstance(each, str) else None for each in value]
    if not all(found):
        raise DataError(f'options must be texts such as "A. red", got {value!r:.80}')
    return tuple(each[2].strip() for each in found if each)
