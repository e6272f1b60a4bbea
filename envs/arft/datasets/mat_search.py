"""Loads MAT-Search (Visual-ARFT, arXiv 2505.14246): multi-hop questions about images.

Hub: ``laolao77/MAT``. Supported layouts:

- the benchmark: ``MAT-Search.json``, a list of ``{id, question, answer, image_path}``, with its
  images in ``MAT-Search-image``;
- its training set: ``rft_agent_search_20.json``, a list of single steps ``{image_path, problem,
  solution}``: the problem is the question with all facts found so far, the solution is a
  ``<search>`` or an ``<answer>``.
"""

from __future__ import annotations

import re
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
from visenv.types import Sample

from ..search.ground_truth import SearchTruth
from .mat import ANSWER, MatSource, answers_of

_FILES = (
    "MAT-Search.json",
    "MAT-Benchmark/MAT-Search.json",
    "rft_agent_search_20.json",
    "MAT-Training/rft_agent_search_20.json",
)
_IMAGES = ("MAT-Search-image", "rft_agent_search_20_images", "images", ".")
_SIMPLE = 75
"""Number of simple rows, which come first in the benchmark; the other 75 are hard."""
_QUESTION = re.compile(r"<query>(.*?)</query>", re.DOTALL)
_CONTEXT = re.compile(r"<(?:think|search|information|answer)>")
_SEARCH = re.compile(r"<search>(.*?)</search>", re.DOTALL)


class MatSearch(MatSource):
    """Loads MAT-Search from a local folder.

    `Sample.kind` is ``"search"``. The `SearchTruth` contains the gold sub-queries of the training
    set and ``split``: ``"train"``, or ``"simple"`` or ``"hard"`` for the benchmark, whose results
    are grouped by split. The articles are not published.

    Args:
        folder: A folder with one of the layouts.

    Raises:
        DataError: If the folder has no such file, or no row can be used.
    """

    ground_truth = SearchTruth

    def __init__(self, folder: str | Path) -> None:
        super().__init__()
        self.folder = existing_folder(folder)
        (path,) = first_files(self.folder, _FILES)
        folders = [path.parent / name for name in _IMAGES]
        steps = path.name.startswith("rft_")
        for place, content in _joined(path) if steps else read_rows(path):
            with self.listing_problems(place):
                row = json_object(content)
                sample = _sample(row, "train" if steps else _split(row, place.row))
                self.add_row(place, sample, image_by_end(folders, text_of(row, "image_path")))
        self.require_rows(self.folder)


def _joined(path: Path) -> Iterator[tuple[RowLocation, Any]]:
    """Join the steps of one question about one image to a row of the benchmark."""
    joined: dict[tuple[str, str], tuple[RowLocation, dict[str, Any]]] = {}
    for place, content in read_rows(path):
        if not isinstance(content, dict):
            yield place, content
            continue
        problem, solution = (str(content.get(name) or "") for name in ("problem", "solution"))
        begun = {**_begun(problem), "image_path": content.get("image_path"), "id": len(joined) + 1}
        key = (str(begun["image_path"]), begun["question"])
        _, row = joined.setdefault(key, (place, begun))
        row["queries"] += [query.strip() for query in _SEARCH.findall(solution)]
        row["answer"] += [answer.strip() for answer in ANSWER.findall(solution)]
    yield from joined.values()


def _begun(problem: str) -> dict[str, Any]:
    """Return the row of a question, without the thoughts and results that follow in `problem`."""
    written = _QUESTION.search(problem)
    question = (written[1] if written else _CONTEXT.split(problem)[0]).strip()
    return {"question": question, "answer": [], "queries": []}


def _sample(row: Mapping[str, Any], split: str) -> Sample:
    truth = SearchTruth(
        queries=row.get("queries", ()),
        split=split,
        labels={} if split == "train" else {"split": split},
    )
    name = f"mat-search-{'train-' * (split == 'train')}{id_of(row)}"
    answers = answers_of(row.get("answer"))
    return Sample(name, text_of(row, "question"), (), answers, "search", truth)


def _split(row: Mapping[str, Any], number: int) -> str:
    """Return the row's own split, or else the split that its index has in the public evaluation."""
    given = row.get("split")
    if given in ("simple", "hard"):
        return str(given)
    return "simple" if number <= _SIMPLE else "hard"
