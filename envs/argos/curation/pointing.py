"""Creates points for the entities of each image or frame with a pointing model (appendix C.1)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep
from visenv.errors import DataError
from visenv.scorers import Scorer
from visenv.types import Sample
from visenv.verifier.models import ModelPointing
from visenv.verifier.oracle import OraclePointingModel
from visenv.verifier.teachers import FrameReference, PointingModel

from ..prompts import POINTING, Coordinates
from .entities import entities_of
from .rows import DrawnPoint, MakeEnv, SampleEnv


@dataclass(eq=False)
class PointToEntities(CurationStep):
    """Adds ``points`` to each row: for each entity in each image or frame, in whole pixels.

    Raises:
        ConfigurationError: If there is no such scorer, or this is not an Argos environment.
    """

    name: ClassVar[str] = "argos-point"

    make_env: MakeEnv
    pointing_model: str
    """The pointing model: oracle, for procedural samples, or a scorer, for example
    openai:allenai/Molmo-7B-D-0924?base_url=http://localhost:8000/v1. In the paper it is Molmo-7B.
    """
    label: str = ""
    pointing_coordinates: Coordinates = "pixels"
    """Unit of the points that the model writes as JSON: pixels (Qwen2.5-VL), or from 0 to 1000
    (Qwen3-VL). Molmo's points are always from 0 to 100.
    """

    def __post_init__(self) -> None:
        self._model, self._name = _pointing_model(self.pointing_model, self.pointing_coordinates)
        self._samples = SampleEnv(self.make_env)

    @override
    def settings(self) -> dict[str, Any]:
        return {"env": self.label, "pointing_model": self._name}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        labels = entities_of(row)
        env = self._samples.at(row)
        sample = env.sample
        sizes = [env.store.images[f"image_{n + 1}"].size for n in range(len(sample.images))]
        if sample.id != row.get("sample"):
            raise DataError(
                f"the place contains {sample.id!r}, but the row {row.get('sample')!r:.80}"
            )
        found = await asyncio.gather(
            *(
                self._points(sample, number, label, size)
                for number, size in enumerate(sizes)
                for label in labels
            )
        )
        points = dict.fromkeys(point for each in found for point in each)
        return kept({**row, "points": [point._asdict() for point in points]})

    async def _points(
        self, sample: Sample, number: int, label: str, size: tuple[int, int]
    ) -> list[DrawnPoint]:
        """Return the points of a label in one image, in pixels of the image as shown."""
        width, height = sample.images[number].size
        return [
            DrawnPoint(number + 1, int(x * size[0] / width), int(y * size[1] / height), label)
            for x, y in await self._model.places(FrameReference(sample, number), label)
        ]

    @override
    def close(self) -> None:
        self._samples.close()


def _pointing_model(line: str, coordinates: Coordinates) -> tuple[PointingModel, str]:
    """Return the pointing model of a scorer line, and its name for the journal."""
    if line == "oracle":
        return OraclePointingModel(), line
    scorer = Scorer.parse(line)
    unit = "" if coordinates == "pixels" else f", {coordinates}"
    return ModelPointing(scorer, POINTING, coordinates=coordinates), f"{scorer.name}{unit}"
