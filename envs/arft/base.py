"""Defines `ArftEnv`, the base class of both environments, whose last turn has no tools."""

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
    """Implements the parts that `ArftCoding` and `ArftSearch` share.

    Attributes:
        actions: The actions of a turn, without the answer.
        compat: ``"arft"`` to score answers as the public code does, otherwise None.

    Args:
        source: The samples.
        preset: The settings of images and prompt.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.
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
        """Return the grammar that parses turns and writes results."""
        return TagGrammar(self.actions)

    @property
    def is_brief(self) -> bool:
        """Return whether demonstrations are short, for a very small model."""
        return self.preset.prompt == "brief"

    @abstractmethod
    def explain_tools(self) -> str:
        """Return the instructions that explain the steps."""

    def steps(self) -> str:
        """Return the instructions for the steps, or those for an environment without tools."""
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
        """Return the notice that the next turn is the last one and must answer, or nothing."""
        return (prompts.ANSWER_NOW,) if self.turns_left == 1 else ()

    @override
    def reject_call(self, call: ToolCall) -> str:
        """Reject a call in the last turn, because the policy could not see its result."""
        return prompts.NO_STEP_LEFT if self.turns_left == 1 else ""

    @override
    def task_score(self) -> float:
        """Return the F1 of the answer, 0 to 1; an exact match has 1."""
        answer = self.log.answer
        if answer is None:
            return 0.0
        # The public code counts a repeated word once, which gives an exact match a lower F1.
        return max(self._exact_match(), token_f1(answer, self.sample.answers, self.compat))

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy`` (exact match) and ``f1`` of the answer, both 0 without an answer."""
        return {"accuracy": self._exact_match(), "f1": self.episode_score}

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return one of the sample's options, or a number if the sample has none."""
        options = self.sample.truth_as(QuestionTruth).options
        return str(rng.choice(options)) if options else super().random_answer(rng)

    # ------------------------------------------------------------------ for the subclasses

    def view(self, image: Image) -> Image:
        """Return an image scaled to the size at which it is shown."""
        return fit(image, self.preset.image_pixels)

    def done(self, tool: str) -> list[ToolCalled]:
        """Return the calls of a tool that succeeded."""
        return [call for call in self.log.tool_calls if call.ok and call.tool == tool]

    # ------------------------------------------------------------------ private helpers

    def _exact_match(self) -> float:
        answer = self.log.answer
        return 0.0 if answer is None else exact_match(answer, self.sample.answers, self.compat)
