"""Defines the teachers of the judging environments, which give verdicts without the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import LapsingTeacher

from .tools.pages import PageByIndex
from .verdicts import verdicts

if TYPE_CHECKING:
    import numpy as np

    from .env.doc import ArmDoc
    from .env.judge import JudgingEnv


def wrong_verdict(env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
    """Return a turn with a random wrong verdict, which names no fact as its reason."""
    possible = verdicts(len(env.truth.candidates))
    wrong = [verdict for verdict in possible if verdict not in env.sample.answers]
    return env.conclude(str(rng.choice(wrong)))


@dataclass(frozen=True)
class JudgesUnseen(LapsingTeacher["JudgingEnv"]):
    """Judges without a look at the image, and believes a wrong response."""

    summary: ClassVar[str] = (
        "Gives a wrong verdict without a look at the image, in 60 % of the episodes."
    )

    @override
    def mistaken_turn(self, env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
        return wrong_verdict(env, rng)


@dataclass(frozen=True)
class MisreadsResult(LapsingTeacher["JudgingEnv"]):
    """Calls the tool that decides, and takes its result for the opposite."""

    summary: ClassVar[str] = (
        "Calls the check that decides and misreads its result, in 60 % of the episodes."
    )

    @override
    def mistaken_turn(self, env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        return turn if turn.answer is None else wrong_verdict(env, rng)


@dataclass(frozen=True)
class WrongPage(LapsingTeacher["ArmDoc"]):
    """Looks at the page after the evidence, and believes a wrong response."""

    summary: ClassVar[str] = (
        "Looks at the page after that with the evidence and gives a wrong verdict, in 60 % of the "
        "episodes."
    )

    @override
    def mistaken_turn(self, env: ArmDoc, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        page = _page_beside(env)
        if turn.answer is not None or env.log.tool_calls or page is None:
            return wrong_verdict(env, rng)
        call = ToolCall(PageByIndex.name, {"filename": env.document(), "image_idx": page})
        return turn._replace(calls=(call,))


def _page_beside(env: ArmDoc) -> int | None:
    """Return the first page after the evidence that has none, else the first one; None if none."""
    evidence = env.truth.evidence_pages
    pages = len(env.opened())
    last = max(evidence, default=0)
    candidates = [*range(last + 1, pages + 1), *range(1, last)]
    return next((page for page in candidates if page not in evidence), None)
