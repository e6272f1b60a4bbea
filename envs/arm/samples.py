"""Creates samples for judging: candidate responses to an instruction, and the right verdict."""

from __future__ import annotations

from collections.abc import Sequence

from visenv.errors import DataError
from visenv.types import Image, Sample

from .ground_truth import JudgingTruth


def judging_sample(
    *,
    id: str,  # noqa: A002 - the field of `Sample` has this name
    instruction: str,
    truth: JudgingTruth,
    verdict: bool | int,
    images: Sequence[Image] = (),
    kind: str = "",
) -> Sample:
    """Return a sample for a judge.

    All worlds and data sets of the judging environments create their samples with this function.

    Args:
        id: Unique within its source, stable across runs.
        instruction: The instruction that the candidates respond to.
        truth: The candidates, one (is it right?) or more (which is the best?), and known facts
            about them.
        verdict: Whether the single response is right, or the number of the best one, from 1.
        images: The images of the instruction.
        kind: A label for reports, for example ``"pair_rm"``.

    Returns:
        The sample; ``answers`` is ``("True",)``, ``("False",)`` or the number as text.

    Raises:
        DataError: If the verdict does not match the candidates.
    """
    count = len(truth.candidates)
    single = count == 1
    fits = isinstance(verdict, bool) if single else type(verdict) is int
    if not fits or not (single or 1 <= verdict <= count):
        wanted = "True or False" if single else f"a number from 1 to {count}"
        raise DataError(f"the verdict must be {wanted}, got {verdict!r}")
    return Sample(id, instruction, tuple(images), (str(verdict),), kind, truth)


def candidate_names(sample: Sample) -> list[str]:
    """Return the names of the candidates in prompts and tools (the paper's memory map).

    The name is ``text_0`` for a response that is checked against a constraint and ``resp_0`` for
    another single one; several have the names ``resp_1``, ``resp_2``….
    """
    truth = sample.truth_as(JudgingTruth)
    count = len(truth.candidates)
    if count == 1:
        return ["text_0" if truth.constraint else "resp_0"]
    return [f"resp_{number}" for number in range(1, count + 1)]
