"""Loads MAT-Coding (Visual-ARFT, arXiv 2505.14246): questions about distorted images.

Hub: ``laolao77/MAT``. Supported layouts:

- the benchmark: ``MAT-Coding.json``, a list of ``{id, question, answers, ori_image_path,
  processed_image_path, type, split}``, with its images in ``MAT-Coding-image``;
- its training set: ``rft_agent_code_1_2k.json``, a list of single steps ``{type, image_path,
  problem, solution, …}`` of ``type`` ``pre_problem``, ``pre_code`` and ``pre_answer``;
- the output of ``visenv data distort``: JSONL with the fields of the benchmark, and also
  ``distortions`` and ``box``.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from visenv.data.json_rows import json_object, read_rows
from visenv.data.rows import (
    RowLocation,
    existing_folder,
    first_files,
    id_of,
    image_by_end,
    text_of,
)
from visenv.errors import ConfigurationError, DataError
from visenv.types import Sample

from ..coding.ground_truth import CodingTruth, Distortion, Region
from ..coding.world.kinds import KINDS
from ..coding.world.plans import CROP, Problems, named, read_problems
from ..coding.world.sources import coding_truth
from .mat import ANSWER, MatSource, answers_of

_FILES = (
    "MAT-Coding.json",
    "MAT-Benchmark/MAT-Coding.json",
    "rft_agent_code_1_2k.json",
    "MAT-Training/rft_agent_code_1_2k.json",
    "*.jsonl",
)
_IMAGES = ("MAT-Coding-image", "images", ".")
_BOX = re.compile(r"\[\s*(\d{1,4})\s*,\s*(\d{1,4})\s*,\s*(\d{1,4})\s*,\s*(\d{1,4})\s*\]")
_QUERY = re.compile(r"</?query>")
_KNOWN: Mapping[str, Mapping[str, Any]] = {
    "rotation90": {"clockwise": False},
    "dark": {"gain": 0.2},
}
"""Parameters that are visible in published images: rotated counter-clockwise, although the paper
says clockwise; white is at level 51 of 255."""
_LABELS = re.compile(r"<problem>\s*\{([^}]*)\}")


class MatCoding(MatSource):
    """Loads MAT-Coding from a local folder.

    `Sample.ground_truth` is a `CodingTruth`. For published sets, only the names of the distortions
    are known, and the box of a crop is in its question. A crop has the original image, as in the
    public evaluation.

    Args:
        folder: A folder with one of the layouts.
        file: The name of the file in it, if there are several.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
        ConfigurationError: If there are several files, and `file` is missing.
    """

    ground_truth = CodingTruth

    def __init__(self, folder: str | Path, file: str = "") -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        files = first_files(self.folder, (file,) if file else _FILES)
        found = [path for path in files if not path.name.endswith(".journal.jsonl")]
        if len(found) != 1:
            names = ", ".join(path.name for path in found)
            raise ConfigurationError(
                f"Select one file by mat_coding:<folder>?file=…, one of: {names}."
            )
        (path,) = found
        self._load(path)
        self.require_rows(self.folder)

    def _load(self, path: Path) -> None:
        rows = read_rows(path)
        if path.name.startswith("rft_"):
            rows = _joined(rows)
        folders = [path.parent / name for name in _IMAGES]
        for place, content in rows:
            with self.listing_problems(place):
                row = json_object(content)
                sample = _sample(row)
                key = "ori_image_path" if sample.kind == named(CROP) else "processed_image_path"
                self.add_row(place, sample, image_by_end(folders, text_of(row, key)))


def _joined(rows: Iterator[tuple[RowLocation, Any]]) -> Iterator[tuple[RowLocation, Any]]:
    """Convert the training set to the layout of the benchmark.

    Each sample becomes one row, which is made from the first step of the sample.

    The answer of a row is in the step ``pre_answer`` with the same question. If several samples
    have the same question, both kinds of steps are in the same order.
    """
    listed = [(place, row) for place, row in rows if isinstance(row, dict)]
    answers: defaultdict[str, deque[str]] = defaultdict(deque)
    for _, row in listed:
        if row.get("type") == "pre_answer":
            answers[str(row.get("problem"))].append(str(row.get("solution")))
    for number, (place, row) in enumerate(listed, start=1):
        if row.get("type") != "pre_problem":
            continue
        question = str(row.get("problem"))
        solution = answers[question].popleft() if answers[question] else ""
        yield place, _first_step(number, row, ANSWER.findall(solution))


def _first_step(number: int, row: Mapping[str, Any], answers: list[str]) -> dict[str, Any]:
    found = _LABELS.search(str(row.get("solution")))
    return {
        "id": f"train-{number}",
        "question": _QUERY.sub("", str(row.get("problem"))).strip(),
        "answers": [answer.strip() for answer in answers],
        "type": re.findall(r"'([^']+)'", found[1]) if found else [],
        "ori_image_path": row.get("image_path"),
        "processed_image_path": row.get("image_path"),
    }


def _sample(row: Mapping[str, Any]) -> Sample:
    problems = _problems(row.get("type"))
    question = text_of(row, "question")
    truth = coding_truth(
        problems,
        _distortions(row.get("distortions"), problems),
        split=row["split"] if row.get("split") in ("simple", "hard") else "",
        box=(row.get("box") or _box(question)) if problems == CROP else None,
        options=row["options"] if isinstance(row.get("options"), list) else (),
    )
    return Sample(f"mat-coding-{id_of(row)}", question, (), _answers(row), named(problems), truth)


def _distortions(given: Any, problems: Problems) -> list[Distortion]:
    """Return the distortions of a row; published rows use the known parameters."""
    if not given:
        known = [name for name in problems if name in KINDS]
        return [Distortion(name=name, **_KNOWN.get(name, {})) for name in known]
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise DataError(f"distortions must be a list of objects, got {given!r:.200}")
    return [Distortion(**each) for each in given]


def _problems(given: Any) -> Problems:
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise DataError(f"type is not a list of problems: {given!r:.200}")
    try:
        return read_problems("+".join(given))
    except ConfigurationError as error:
        raise DataError(str(error)) from error


def _box(question: str) -> Region:
    found = _BOX.search(question)
    if found is None:
        raise DataError(f"the question of a crop must contain a box, got {question!r:.200}")
    left, top, right, bottom = map(int, found.groups())
    return left, top, right, bottom


def _answers(row: Mapping[str, Any]) -> tuple[str, ...]:
    r"""Return every accepted answer; one with line feeds written as ``\\n`` also with blanks.

    The public scorer deletes the backslash, so that a policy that reads such a sign would score 0.
    """
    listed = answers_of(row.get("answers"))
    readable = (answer.replace("\\n", " ") for answer in listed)
    return tuple(dict.fromkeys([*listed, *readable]))
