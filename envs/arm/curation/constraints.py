"""Creates judging items from responses to instructions, with the text checks (section 4.2).

The instruction-following track of ARMBench-VL needs no writer of wrong responses: an ordinary model
answers and satisfies some constraints, and the checks decide which.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from typing_extensions import override

from visenv.checks import Dialect, check
from visenv.curation.journal import RowOutcome, dropped, failed, kept
from visenv.curation.lines import Row
from visenv.curation.places import sample_at
from visenv.curation.step import CurationStep, seed_of
from visenv.curation.writer import is_refusal
from visenv.data.source import IndexedSource, check_declared_truth
from visenv.episodes import save_images
from visenv.errors import ConfigurationError, DataError
from visenv.images import ARM_PIXELS, fit
from visenv.policy import Policy
from visenv.types import Message, Reply, Sample, Sampling, TurnRequest

from ..ground_truth import Constraint, InstructionTruth
from .judging import judging_row

SAMPLING = Sampling(max_tokens=2048)


@dataclass(eq=False)
class ConstraintItems(CurationStep):
    """Samples a response to each instruction, and creates an item for each constraint with a check.

    The output file must be ``<folder>/multimodal_instruction_following.jsonl``. An item is a
    ``single_rm`` in the layout of ARMBench-VL, with the constraint and its check in
    ``constraints``.
    """

    name: ClassVar[str] = "constraints"
    hidden: ClassVar[tuple[str, ...]] = ("image_pixels",)
    concurrency: ClassVar[int] = 64

    source: IndexedSource
    policy: Policy[Any]
    folder: Path
    sampling: Sampling = SAMPLING
    dialect: Dialect = "strict"
    """The variant of the checks."""
    image_pixels: int = ARM_PIXELS
    """Maximum number of pixels of an image; larger ones are shrunk."""
    label: str = ""
    seed: int = 0
    """Seed of the sampling."""

    def __post_init__(self) -> None:
        check_declared_truth(self.source, (InstructionTruth,), type(self).__name__)

    @override
    def settings(self) -> dict[str, Any]:
        return {
            "players": self.label,
            "temperature": self.sampling.temperature,
            "max_tokens": self.sampling.max_tokens,
            "dialect": self.dialect,
            "image_pixels": self.image_pixels,
            "seed": self.seed,
        }

    @override
    async def decide(self, row: Row) -> RowOutcome:
        sample = sample_at(self.source, row)
        constraints = sample.truth_as(InstructionTruth).constraints
        checked = [each for each in constraints if each.checks]
        if not checked:
            return dropped("no constraint that a check decides")
        reply = await self._answer(sample, row["id"])
        if reply.finish_reason == "length":
            return failed("reply cut off", "The reply was too long.")
        response = reply.text.rpartition("</think>")[2].strip()
        if not response:
            return failed("empty reply", "The reply was empty.")
        if is_refusal(response):
            return failed("refusal", response[:300])
        images = [str(path) for path in save_images(self.folder / "images", sample.images)]
        plain = {"question": sample.question, "images": images, "sample": sample.id}
        return kept(
            *(
                self._item({**plain, "id": f"{row['id']}/{number}"}, response, constraint)
                for number, constraint in enumerate(checked)
            )
        )

    def _item(self, row: Row, response: str, constraint: Constraint) -> Row:
        try:
            keeps = all(
                check(each.name, response, each.arguments, self.dialect)
                for each in constraint.checks
            )
        except ConfigurationError as error:
            raise DataError(f"the check of {constraint.text!r:.80}: {error}") from error
        functions = [{"func": each.name, "params": each.arguments} for each in constraint.checks]
        entry = {
            "key": constraint.key,
            "value": constraint.text,
            "judge": {"method": "rule_based", "verify_funcs": functions},
        }
        item = {**row, "constraints": [entry]}
        return judging_row(item, "single_rm", [response], str(keeps), self.folder)

    async def _answer(self, sample: Sample, name: str) -> Reply:
        seed = seed_of("constraints", self.seed, name)
        session = self.policy.open(seed)
        session.observe([_instruction(sample, self.image_pixels)])
        return await self.policy.respond(session, TurnRequest(), self.sampling._replace(seed=seed))


def _instruction(sample: Sample, image_pixels: int) -> Message:
    """Return the instruction, followed by a list of the constraints that it does not contain."""
    texts = [each.text for each in sample.truth_as(InstructionTruth).constraints]
    missing = [text for text in texts if text not in sample.question]
    listed = "".join(f"\n- {text}" for text in missing)
    asked = sample.question + (f"\n\nKeep to the following:{listed}" if missing else "")
    return Message("user", (*(fit(image, image_pixels) for image in sample.images), asked))
