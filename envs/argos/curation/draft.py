"""Drafts one answer to each sample, from which entities are extracted (section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep, seed_of
from visenv.episodes import save_images
from visenv.policy import Policy
from visenv.types import GroundTruth, Sample, Sampling

from ..env.base import options_shown
from . import prompts
from .rows import MakeEnv, SampleEnv, question_of, timeline
from .teacher import TeacherModel, shown_parts

SAMPLING = Sampling(max_tokens=1024)


@dataclass(eq=False)
class DraftAnswers(CurationStep):
    """Writes one draft answer to each sample, with its question and images.

    Samples without an image or without a right answer are dropped.

    Raises:
        ConfigurationError: If this is not an Argos environment, or it has relative coordinates.
    """

    name: ClassVar[str] = "argos-draft"

    make_env: MakeEnv
    policy: Policy[Any]
    folder: Path
    sampling: Sampling = SAMPLING
    label: str = ""

    def __post_init__(self) -> None:
        self._samples = SampleEnv(self.make_env)
        self._teacher = TeacherModel(self.policy, self.sampling)

    @override
    def settings(self) -> dict[str, Any]:
        return {"players": self.label, **self._teacher.settings()}

    @override
    async def decide(self, row: Row) -> RowOutcome:
        env = self._samples.at(row)
        sample, times = env.sample, list(env.times())
        images = [env.store.images[f"image_{n + 1}"] for n in range(len(sample.images))]
        response = _right_response(sample)
        if not images:
            return dropped("no image")
        if not response:
            return dropped("no right answer")
        drafted: Row = {
            **row,
            "question": sample.question,
            "options": list(options_shown(sample)),
            "images": [str(path) for path in save_images(self.folder / "images", images)],
            "times": times,
            "response": response,
            "kind": sample.kind,
            "sample": sample.id,
        }
        when = prompts.DRAFT_WHEN.format(timeline=timeline(times)) if times else ""
        prompt = prompts.DRAFT.format(question=question_of(drafted), when=when)
        parts = [*shown_parts(images, times), prompt]
        seed = seed_of("draft", row["id"])
        drafted["draft"] = await self._teacher.write(parts, seed, self._samples, row)
        return kept(drafted) if drafted["draft"].strip() else dropped("an empty draft")

    @override
    def close(self) -> None:
        self._samples.close()


def _right_response(sample: Sample) -> str:
    truth = sample.ground_truth
    truth = truth if isinstance(truth, GroundTruth) else GroundTruth()
    return truth.right_response(sample.answers)
