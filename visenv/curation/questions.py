"""Writes samples of an environment as rows with their right response, and images as files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.places import place_of
from visenv.curation.step import CurationStep
from visenv.documents import Library
from visenv.documents.library import write_pages
from visenv.episodes import save_images
from visenv.types import GroundTruth, Sample


@dataclass(eq=False)
class Questions(CurationStep):
    """Writes an environment's samples as rows: question, images, right response, kind.

    The response is the most common accepted answer, or for a sample about judging the better
    candidate. A sample about a document has its name in ``doc_id``. The keys of the place are
    copied, so that the same sample can be played again. With `documents`, the pages of the document
    are written to that folder as images, so that another folder of items can contain it, and
    ``evidence`` lists the files of the pages with the answer, for the writer of responses.
    """

    name: ClassVar[str] = "questions"

    make_env: Callable[[], gym.Env[Any, str]]
    folder: Path
    label: str = ""
    documents: Path | None = None
    """Folder to write the samples' documents to, as page images; use <folder>/documents for items
    that are played as armbench:<folder>.
    """

    def __post_init__(self) -> None:
        self._env = self.make_env()
        self._images = self.folder / "images"

    @override
    def settings(self) -> dict[str, Any]:
        settings = {"env": self.label}
        return settings if self.documents is None else {**settings, "documents": True}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        place = place_of(row)
        options = None if place.index is None else {"index": place.index}
        self._env.reset(seed=place.seed, options=options)
        base: Any = self._env.unwrapped
        sample: Sample = base.sample
        truth = _truth_of(sample)
        response = truth.right_response(sample.answers)
        if not response:
            return dropped("no right answer")
        return kept(
            {
                **row,
                "question": sample.question,
                "images": [str(path) for path in save_images(self._images, sample.images)],
                "response": response,
                "kind": sample.kind,
                "sample": sample.id,
                **({"doc_id": truth.document} if truth.document else {}),
                **self._evidence(base.source, truth),
            }
        )

    def _evidence(self, source: Any, truth: GroundTruth) -> dict[str, Any]:
        """Write the document, and return the files of the pages that contain the answer."""
        library = getattr(source, "library", None)
        if self.documents is None or not truth.document or not isinstance(library, Library):
            return {}
        files = write_pages(library.document(truth.document), self.documents)
        pages = getattr(truth, "evidence_pages", ())
        return {"evidence": [str(files[page - 1]) for page in pages if page <= len(files)]}

    @override
    def close(self) -> None:
        self._env.close()


def _truth_of(sample: Sample) -> GroundTruth:
    """Return the ground truth, or an empty one for other types, which have no responses."""
    truth = sample.ground_truth
    return truth if isinstance(truth, GroundTruth) else GroundTruth()
