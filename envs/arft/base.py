"""Holds what coding and searching share: turns of tags, a last turn that answers, and scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from visenv.data.source import Source
from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import ToolCall
from visenv.grammar.tags import TagGrammar
from visenv.images import fit
from visenv.tools import Tool
from visenv.types import Image, Part, QuestionTruth, ToolCalled, TurnRequest

from . import prompts
from .presets import PRESETS, ArftPreset
from .rewards.qa import Compat, exact_match, token_f1


class ArftEnv(VisEnv):
    """Base class of the two environments.

    Attributes:
        actions: What a turn may do, beside answering.
        compat: How answers are counted.

    Args:
        source: The samples.
        preset: The preset.
        render_mode: See `VisEnv`.
        on_abort: See `VisEnv`.
    """

    actions: ClassVar[tuple[str, ...]]
    presets: ClassVar[Mapping[str, object]] = PRESETS
    compat: Compat = None

    def __init__(
        self,
        *,
        source: Source,
        preset: ArftPreset,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.tags = self.make_grammar()
        super().__init__(
            source=source,
            grammar=self.tags,
            tools=self.make_tools(),
            limits=EpisodeLimits(
                turns=preset.turns,
                tool_characters=preset.tool_characters,
                image_pixels=preset.image_pixels,
            ),
            render_mode=render_mode,
            on_abort=on_abort,
        )

    def make_grammar(self) -> TagGrammar:
        """Return the grammar, which reads turns and writes results."""
        return TagGrammar(self.actions)

    @abstractmethod
    def explain_tools(self) -> str:
        """Return the instructions for the steps."""

    def steps(self) -> str:
        """Return the instructions: the steps, or those of an environment without tools."""
        return self.explain_tools() if self.tools else prompts.WITHOUT_TOOLS

    @abstractmethod
    def make_tools(self) -> Sequence[Tool[Any]]:
        """Return a tool for each action."""

    # ------------------------------------------------------------------ hooks of VisEnv

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest(stop=self.grammar.stop)

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Say before the last turn that it must answer."""
        return (prompts.ANSWER_NOW,) if self.turns_left == 1 else ()

    @override
    def reject_call(self, call: ToolCall) -> str:
        """Reject a call in the last turn: its result could not be seen any more."""
        return prompts.NO_STEP_LEFT if self.turns_left == 1 else ""

    @override
    def task_score(self) -> float:
        """Return the F1 of the answer, 0 to 1."""
        return self.metrics()["f1"]

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy`` (exact match) and ``f1`` of the answer, 0 without one."""
        answer, references = self.log.answer, self.sample.answers
        exact = 0.0 if answer is None else exact_match(answer, references, self.compat)
        partly = 0.0 if answer is None else token_f1(answer, references, self.compat)
        # The public count of words gives less for a repeated one.
        return {"accuracy": exact, "f1": max(exact, partly)}

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return one of the sample's options, or a number."""
        options = self.sample.truth_as(QuestionTruth).options
        return str(rng.choice(options)) if options else super().random_answer(rng)

    # ------------------------------------------------------------------ for the two

    def view(self, image: Image) -> Image:
        """Return an image as it is shown."""
        return fit(image, self.preset.image_pixels)

    def done(self, tool: str) -> list[ToolCalled]:
        """Return the calls of a tool that were carried out."""
        return [call for call in self.log.tool_calls if call.ok and call.tool == tool]
