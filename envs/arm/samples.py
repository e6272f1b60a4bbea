"""Samples about judging: candidate responses to an instruction, and which verdict is right.

Every world and data set that the judging environments read makes its samples here, so that the
layout of ``meta`` is written down once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from visenv.errors import DataError
from visenv.types import Image, Sample


class Check(NamedTuple):
    """A text check that decides a constraint: its tool's name and arguments but the response."""

    name: str
    arguments: Mapping[str, Any]


def judging_sample(
    *,
    id: str,  # noqa: A002 - the field of `Sample` has this name
    instruction: str,
    candidates: Sequence[str],
    verdict: bool | int,
    images: Sequence[Image] = (),
    kind: str = "",
    **truth: Any,
) -> Sample:
    """A sample for a judge.

    Args:
        id: Unique within its source, stable across runs.
        instruction: What the candidates respond to.
        candidates: One response (is it right?), or two or more (which is the best?).
        verdict: Whether the one response is right; or the number of the best one, from 1.
        images: What the instruction is about.
        kind: A label to report by, for example ``"pair_rm"``.
        **truth: Further entries of ``meta``, JSON-like, where they are known:
            ``document`` (name in the source's ``library``), ``evidence_pages`` (numbers from 1),
            ``gold_query`` (finds them), ``target_box`` ``[left, top, right, bottom]`` in native
            pixels, or ``target_boxes``, ``constraint`` (what a response has to fulfil, as text) and
            ``check`` (``[name, arguments]`` of the `Check` that decides it), ``rating`` (the scale,
            ``[lowest, highest]``, to rate one response on), ``answer`` (the fact that decides),
            and ``labels`` (grouping -> group, to report by in place of `kind`).

    Returns:
        The sample; ``answers`` is ``("True",)``, ``("False",)`` or the number as text, and
        ``meta["candidates"]`` the list of responses.

    Raises:
        DataError: If the verdict does not fit the candidates.
    """
    single = len(candidates) == 1
    fits = isinstance(verdict, bool) if single else type(verdict) is int
    if not fits or not (single or 1 <= verdict <= len(candidates)):
        wanted = "True or False" if single else f"a number from 1 to {len(candidates)}"
        raise DataError(f"the verdict must be {wanted}, got {verdict!r}")
    meta = {"candidates": list(candidates), **truth}
    return Sample(id, instruction, tuple(images), (str(verdict),), kind, meta)


def candidate_names(sample: Sample) -> list[str]:
    """What prompts and tools call the candidates (the paper's memory map).

    ``text_0`` for a response that is checked against a constraint, ``resp_0`` for another single
    one, ``resp_1``, ``resp_2``… for several.
    """
    count = len(sample.meta["candidates"])
    if count == 1:
        return ["text_0" if sample.meta.get("constraint") else "resp_0"]
    return [f"resp_{number}" for number in range(1, count + 1)]
