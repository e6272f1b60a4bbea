"""Defines the teachers of the judging environments, which miss or misread the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from visenv.errors import ConfigurationError
from visenv.grammar import ParsedTurn, ToolCall
from visenv.teacher import AimingTeacher, LapsingTeacher

from .evidence import useful
from .tools.crop import SCALE
from .tools.pages import PageByQuery
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
class CropsBeside(AimingTeacher["JudgingEnv"]):
    """Enlarges a part beside the evidence, and believes a wrong response if it misses the evidence.

    The error of a box is in sides of the box. A rewarded episode is one whose error was small by
    chance. A sample that needs no look is judged as by the oracle.
    """

    summary: ClassVar[str] = (
        "Enlarges a part beside the evidence, by a constant offset and by noise, and gives a wrong "
        "verdict unless the part shows the evidence."
    )
    offset: tuple[float, float] = (0.25, -0.2)
    noise: float = 0.2

    @override
    def turn(self, env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
        turn = env.oracle_turn()
        if turn.answer is None:
            return turn._replace(calls=tuple(self._moved(call, rng) for call in turn.calls))
        seen = not env.log.tool_calls or useful(env.log, env.sample, "evidence")
        return turn if seen else wrong_verdict(env, rng)

    def _moved(self, call: ToolCall, rng: np.random.Generator) -> ToolCall:
        """Return a call for a part beside that of the given call, inside of the image."""
        box = call.arguments["bbox_2d"]
        steps: list[int] = []
        for axis, by in enumerate(self.error(rng)):
            low, high = box[axis], box[axis + 2]
            steps.append(min(max(round(by * (high - low)), -low), SCALE - high))
        moved = [edge + steps[place % 2] for place, edge in enumerate(box)]
        return ToolCall(call.name, {**call.arguments, "bbox_2d": moved})


@dataclass(frozen=True)
class MisreadsResult(LapsingTeacher["JudgingEnv"]):
    """Calls the check that decides, and takes its result for the opposite if it checks a range.

    The teacher takes "true" for "outside of the range". No rewarded episode is about a range.
    """

    summary: ClassVar[str] = (
        "Calls the check that decides, and takes its result for the opposite if it checks whether "
        "a number is in a range."
    )
    rate: float = 1.0

    @override
    def mistaken_turn(self, env: JudgingEnv, rng: np.random.Generator) -> ParsedTurn:
        turn, check = env.oracle_turn(), env.truth.check
        if turn.answer is None or check is None or "in_range" not in check.name:
            return turn
        return wrong_verdict(env, rng)


@dataclass(frozen=True)
class WrongPage(LapsingTeacher["ArmDoc"]):
    """Finds evidence only on the first pages; otherwise it asks for a page near the evidence.

    It then believes a wrong response. No rewarded episode is about a later page, so a filter of
    the episodes does not show how to find one.

    Attributes:
        known: The number of pages on which the teacher finds evidence.

    Raises:
        ConfigurationError: If `known` is negative.
    """

    summary: ClassVar[str] = (
        "Finds evidence only on the first three pages; for a later page it asks for another one "
        "near it and gives a wrong verdict."
    )
    rate: float = 1.0
    known: int = 3

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.known < 0:
            raise ConfigurationError(f"known must be 0 or more, got {self.known!r}.")

    @override
    def mistaken_turn(self, env: ArmDoc, rng: np.random.Generator) -> ParsedTurn:
        turn, last = env.oracle_turn(), max(env.truth.evidence_pages, default=0)
        if last <= self.known:
            return turn
        if turn.answer is not None or env.log.tool_calls:
            return wrong_verdict(env, rng)
        near = _pages_near(env, last)
        if not near:
            return wrong_verdict(env, rng)
        arguments = {"filename": env.document(), "query": f"page {rng.choice(near)}"}
        return turn._replace(calls=(ToolCall(PageByQuery.name, arguments),))


def _pages_near(env: ArmDoc, page: int) -> list[int]:
    """Return the pages without evidence that are one or two pages before or after a page."""
    pages = range(max(page - 2, 1), min(page + 2, len(env.opened())) + 1)
    return [near for near in pages if near not in env.truth.evidence_pages]
