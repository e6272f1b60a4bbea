"""Loads ARMBench-VL (ARM-Thinker, arXiv 2512.05111, §4): judgments of one or several responses.

Each track is one JSON Lines file, as on the hub (``ChrisDing1105/ARMBench-VL``), in the folder or,
if it is not there, in a subfolder::

    fine_grained_perception.jsonl             550 rows
    multimodal_long_document.jsonl            460 rows
    multimodal_instruction_following.jsonl    489 rows
    images/…        documents/<name>.pdf  or  documents/<name>_<page>.jpg

A row has ``idx`` (or ``id``, whose mixed types break the hub's own reader), ``rm_tag``,
``question``, ``preds``, ``gt`` (``"True"``/``"False"``, or the number of the best response from 1),
``images`` (paths, searched in the folder, in ``images/`` and in ``images/<track>/``), and, if they
apply, ``doc_id`` (``"report.pdf"``) and ``constraints`` (``[{"value": …}, …]``). The image of a row
about a document is the overview of its pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from visenv.data.json_rows import json_lines, json_object
from visenv.data.rows import (
    RowLocation,
    RowSource,
    existing_folder,
    first_files,
    image_file,
    text_of,
)
from visenv.errors import DataError, UnknownNameError
from visenv.types import Image, Sample

from ..ground_truth import ConstraintCheck, JudgingTruth, judging_sample
from .document_rows import document_of, library_of
from .mm_ifeval import checks_of

TRACKS = (
    "fine_grained_perception",
    "multimodal_long_document",
    "multimodal_instruction_following",
)
RESPONSES: Mapping[str, int] = {
    "single_rm": 1,
    "pair_rm": 2,
    "2-way-pair_rm": 2,
    "4-way-pair_rm": 4,
}
"""Number of responses of a row of each ``rm_tag``."""

_IMAGE_TOKEN = re.compile(r"<image>\n?")
_TRUTH = {"true": True, "false": False}


class ARMBench(RowSource):
    """Loads ARMBench-VL from a local folder.

    `Sample.kind` is the ``rm_tag``. Results are reported by ``track`` and ``rm_tag``. A row is
    skipped, and listed in `problems`, if its image is missing or if `library` does not contain its
    document. A row about a document needs no image: the environment then creates the overview, and
    results are also reported by ``overview`` (``"published"``, ``"made"``). `JudgingTruth.check` of
    an instruction-following row is the rule function that decides its constraint, if there is
    exactly one.

    Args:
        folder: The folder with the files.
        track: One of `TRACKS`, or ``"all"`` for all tracks in the folder.
        documents: The folder of the documents; by default ``documents`` in `folder`.
        follow_links: Whether to follow links in the folder of the documents that lead out of it.

    Attributes:
        library: The documents, or None if there is no folder of documents.

    Raises:
        UnknownNameError: If there is no such track.
        DataError: If the folder has no file of that track, or no row can be used.
    """

    ground_truth = JudgingTruth

    def __init__(
        self,
        folder: str | Path,
        track: str = "all",
        documents: str | Path | None = None,
        follow_links: bool | str = False,
    ) -> None:
        super().__init__()
        if track not in (*TRACKS, "all"):
            raise UnknownNameError("track of ARMBench-VL", track, [*TRACKS, "all"])
        self.folder = existing_folder(folder)
        self.library = library_of(self.folder, documents, follow_links)
        wanted = TRACKS if track == "all" else (track,)
        patterns = [f"{where}{name}.jsonl" for name in wanted for where in ("", "**/")]
        first_files(self.folder, patterns)  # raises an error if there is no file
        for name in wanted:
            found = self.folder.glob(f"**/{name}.jsonl")
            for file in sorted(found, key=lambda path: (len(path.parts), path))[:1]:
                self._load(file, name)
        self.require_rows(self.folder)

    def _load(self, file: Path, track: str) -> None:
        images = self.folder / "images"
        folders = [self.folder, images, images / track, file.parent, file.parent / "images"]
        for place, line in json_lines(file):
            with self.listing_problems(place):
                row = json_object(line)
                files = _image_files(row, folders)
                self.add_row(place, self._sample(row, track, bool(files)), files)

    def _sample(self, row: Mapping[str, Any], track: str, has_image: bool) -> Sample:
        tag = text_of(row, "rm_tag")
        candidates = _candidates(row, tag)
        about_document = _is_about_document(row)
        constrained = row.get("constraints") or track == TRACKS[2]
        constraint, check = _constraint(row.get("constraints")) if constrained else ("", None)
        labels = {"track": track, "rm_tag": tag}
        if about_document:
            labels["overview"] = "published" if has_image else "made"
        return judging_sample(
            id=f"armbench-{track}-{_identity(row)}",
            instruction=_IMAGE_TOKEN.sub("", text_of(row, "question")),
            truth=JudgingTruth(
                candidates=tuple(candidates),
                labels=labels,
                document=document_of(row, self.library) if about_document else "",
                constraint=constraint,
                check=check,
            ),
            verdict=_verdict(row.get("gt"), len(candidates)),
            kind=tag,
        )

    @override
    def open_images(self, place: RowLocation, images: list[Path]) -> tuple[Image, ...]:
        return tuple([Image.from_file(path) for path in images])


def _is_about_document(row: Mapping[str, Any]) -> bool:
    return row.get("doc_id") is not None


def _image_files(row: Mapping[str, Any], folders: Sequence[Path]) -> list[Path]:
    """Return the paths of a row's images; empty for a row about a document without image."""
    names = row.get("images") or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise DataError(f"images must be a list of names, got {names!r:.200}")
    if not names and not _is_about_document(row):
        raise DataError("images must contain at least one name, unless the row has a document")
    try:
        return [image_file(folders, name) for name in names]
    except DataError:
        if _is_about_document(row):
            return []
        raise


def _candidates(row: Mapping[str, Any], tag: str) -> list[str]:
    if tag not in RESPONSES:
        raise DataError(str(UnknownNameError("rm_tag", tag, RESPONSES)))
    given = row.get("preds")
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise DataError(f"preds must be a list of texts, got {given!r:.200}")
    if len(given) != RESPONSES[tag]:
        raise DataError(f"{len(given)} preds, but {tag} has {RESPONSES[tag]}")
    return given


def _verdict(given: Any, responses: int) -> bool | int:
    """Return ``"True"``/``"False"`` or a number; both may also have the other JSON type."""
    if responses == 1:
        verdict = given if isinstance(given, bool) else _TRUTH.get(str(given).strip().lower())
        if verdict is None:
            raise DataError(f"gt of one response must be True or False, got {given!r:.80}")
        return verdict
    text = str(given).strip()
    if isinstance(given, bool) or not text.isdecimal() or len(text) > 2:
        raise DataError(f"gt must be a number from 1 to {responses}, got {given!r:.80}")
    return int(text)  # `judging_sample` rejects numbers out of range


def _identity(row: Mapping[str, Any]) -> str:
    for key in ("idx", "id"):
        given = row.get(key)
        if isinstance(given, int | float | str) and not isinstance(given, bool) and given != "":
            return str(given)
    raise DataError(
        f"the row has neither idx nor id: {row.get('idx')!r:.80}, {row.get('id')!r:.80}"
    )


def _constraint(constraints: Any) -> tuple[str, ConstraintCheck | None]:
    """Return the first constraint, the one to judge, and its check."""
    if not isinstance(constraints, list) or not constraints:
        raise DataError(f"no constraints: {constraints!r:.200}")
    text = text_of(constraints[0], "value")
    try:
        checks = checks_of(constraints[0])
    except DataError:
        checks = []  # the verdict does not need the check
    return text, checks[0] if len(checks) == 1 else None
