"""Defines a writer without a model, so that pipelines run and are tested offline."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
from typing_extensions import override

from visenv.errors import PolicyError
from visenv.policy import Policy, Session
from visenv.types import Reply, Sampling, TurnRequest

_GIVEN = re.compile(
    r"<question>\n(.*)\n</question>\n<answer>\n(.*)\n</answer>\n\nReply with one", re.DOTALL
)
_KIND = re.compile(r"^\d+\. ", re.MULTILINE)
_DOTS = re.compile(r"…")
_FAMILIES: Sequence[Sequence[str]] = (
    ("red", "blue", "green", "yellow", "orange", "purple", "magenta", "cyan", "black", "white"),
    ("left", "right", "top", "bottom"),
    ("circle", "triangle", "square", "diamond", "star", "cross"),
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    ("a bicycle", "a lantern", "a suitcase", "an umbrella", "a teapot", "a ladder", "a violin"),
)
_LONG = (
    "To answer this, one looks for the part of the image that matters and reads it off. "
    "Seen up close it is plain enough: {}. So the answer is {}."
)
_DESCRIPTION = (
    "The part in question stands out from what is around it, with clean edges and even light. "
    "Looked at closely it shows {}, and nothing covers it."
)


class ScriptedGenerator(Policy[Session]):
    """Replies to the prompts of this package, using only the text of the prompt and the seed.

    A wrong answer is another word of the same kind (colors, sides, shapes, numbers) if the kind is
    known, otherwise a random object. It cannot write hard negatives, and is meant for tests of
    pipelines:

        visenv data negatives … --policy visenv.envs.arm.curation:ScriptedGenerator
    """

    @override
    def open(self, seed: int) -> Session:
        """Return an empty conversation; the seed is part of each turn's sampling parameters."""
        return Session()

    @override
    async def respond(self, session: Session, request: TurnRequest, sampling: Sampling) -> Reply:
        """Return the JSON object that a prompt of this package requests.

        Raises:
            PolicyError: If the conversation contains no such prompt.
        """
        texts = [part for one in session.messages for part in one.parts if isinstance(part, str)]
        written = next(
            (_written(text, sampling.seed) for text in texts if _GIVEN.search(text)), None
        )
        if written is None:
            raise PolicyError("The scripted generator replies only to prompts of visenv data.")
        reply = Reply.of_text(json.dumps(written, ensure_ascii=False))
        session.said(reply)
        return reply


def _written(prompt: str, seed: int) -> dict[str, str | list[str]]:
    question, answer = _GIVEN.findall(prompt)[0]
    shape = prompt.rpartition("\n")[2]
    rng = np.random.default_rng(seed)
    if '"responses"' in shape:
        count = len(_KIND.findall(prompt.partition("<question>")[0]))
        return {"responses": _others(answer, count, rng)}
    if '"question"' in shape:
        (wrong,) = _others(answer, 1, rng)
        subject = question.rstrip("?.! ")
        return {
            "question": f"Describe in detail the part of the image that decides this: {subject}.",
            "right": _DESCRIPTION.format(answer),
            "wrong": _DESCRIPTION.format(wrong),
        }
    wrongs = _others(answer, len(_DOTS.findall(shape)) - 1, rng)
    return {
        "right": _LONG.format(answer, answer),
        "wrong": [_LONG.format(wrong, wrong) for wrong in wrongs],
    }


def _others(answer: str, count: int, rng: np.random.Generator) -> list[str]:
    """Return `count` different texts that contradict `answer`."""
    if re.fullmatch(r"\d{1,9}", answer):
        steps = rng.permutation(np.arange(1, 20))[:count]
        return [str(int(answer) + int(step)) for step in steps]
    family, place = _find(answer)
    said = answer.casefold()
    candidates = [word for word in family if word not in said]
    chosen = [candidates[one] for one in rng.permutation(len(candidates))[:count]]
    if place is None:
        return chosen
    start, end = place
    return [answer[:start] + word + answer[end:] for word in chosen]


def _find(answer: str) -> tuple[Sequence[str], tuple[int, int] | None]:
    """Return the kind and position of the first word of `answer` whose kind is known."""
    for match in re.finditer(r"\w+", answer):
        for family in _FAMILIES[:-1]:
            if match.group().casefold() in family:
                return family, match.span()
    return _FAMILIES[-1], None
