"""Samples rollouts of a teacher that sees overlays and cites their points (appendix C.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from visenv.curation.journal import RowOutcome, dropped, kept
from visenv.curation.lines import Row
from visenv.curation.step import CurationStep, seed_of
from visenv.errors import DataError
from visenv.policy import Policy
from visenv.types import Part, Sampling

from . import prompts
from .rows import MakeEnv, SampleEnv, images_of, question_of, timeline, times_of_row
from .teacher import TeacherModel, shown_parts

SAMPLING = Sampling(temperature=0.6, max_tokens=6144)
"""Sampling parameters of rollouts, 8 of each sample (appendix C.2)."""


@dataclass(eq=False)
class Traces(CurationStep):
    """Adds a ``trace`` to each row, a rollout of the teacher.

    For an image, the teacher sees original and overlay, and is told to rely on the original; for
    a video it sees only the overlay.

    Raises:
        ConfigurationError: If this is not an Argos environment, or it has relative coordinates.
    """

    name: ClassVar[str] = "argos-traces"
    default_tries: ClassVar[int] = 8

    make_env: MakeEnv
    policy: Policy[Any]
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
        seed = seed_of("trace", row["id"])
        text = await self._teacher.write(trace_prompt(row), seed, self._samples, row)
        if not text.strip():
            return dropped("an empty trace")
        # The chat template of some reasoning models opens the thought in the prompt.
        begun = "</think>" in text and "<think>" not in text
        return kept({**row, "trace": f"<think>{text}" if begun else text.strip()})

    @override
    def close(self) -> None:
        self._samples.close()


def trace_prompt(row: Row) -> list[Part]:
    """Return the teacher's prompt for a row with overlays.

    Raises:
        DataError: If the row has no overlays.
    """
    images, times, question = images_of(row), times_of_row(row), question_of(row)
    if times:
        text = prompts.TRACE_VIDEO.format(
            frames=len(times), timeline=timeline(times), question=question
        )
        return [*shown_parts(images, times), text]
    count, odd = divmod(len(images), 2)
    if odd:
        raise DataError(f"expected originals and as many overlays, got {len(images)} images")
    several = count > 1
    text = prompts.TRACE_IMAGE.format(
        originals=f"{count} images" if several else "an image",
        copies="a copy of each, in the same order, each" if several else "a copy of it",
        question=question,
    )
    return [*images, text]
