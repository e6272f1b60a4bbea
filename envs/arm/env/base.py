"""Defines the base classes of the ARM environments: of all, and of those that read a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from visenv.data.source import Source
from visenv.env import EpisodeLimits, VisEnv
from visenv.grammar import ParsedTurn, ToolCall, ToolCallGrammar
from visenv.grammar.tool_call import Compat
from visenv.images import fit
from visenv.tools import Tool
from visenv.tools.base import shown
from visenv.types import Image, Message, Part, TurnRequest

from .. import prompts
from ..ground_truth import JudgingTruth, candidate_names
from ..presets import PRESETS, ArmPreset
from ..prompts import ANSWER_NOW, NO_CALL_LEFT, verifying
from ..rewards import right
from ..tools.crop import original_name
from ..verdicts import verdicts, write_rating, write_verdict


class ArmEnv(VisEnv):
    """Implements the parts that all ARM environments share.

    Args:
        source: The samples.
        preset: The settings of images, prompt and limits.
        tools: The tools of the policy; without tools, an episode has one turn.
        compat: ``"arm"`` parses turns as the public code does.
        render_mode: ``"ansi"``, ``"rgb_array"`` or None.
        on_abort: ``"truncate"`` or ``"raise"``, see `VisEnv`.

    Attributes:
        last_turn_notice: The notice before the last turn.
    """

    presets: ClassVar[Mapping[str, object]] = PRESETS
    controls: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
        {"no_tool": {"mode": "no_tool"}}
    )
    last_turn_notice: ClassVar[str] = ANSWER_NOW

    def __init__(
        self,
        *,
        source: Source,
        preset: ArmPreset,
        tools: Sequence[Tool[Any]],
        compat: Compat = None,
        render_mode: str | None = None,
        on_abort: Literal["truncate", "raise"] = "truncate",
    ) -> None:
        self.preset = preset
        self.compat = compat
        self._tool_call = ToolCallGrammar(compat)
        limits = EpisodeLimits(
            turns=preset.turns if tools else 1,
            tool_characters=preset.tool_characters,
            image_pixels=preset.image_pixels,
        )
        super().__init__(
            source=source,
            grammar=self._tool_call,
            tools=tools,
            limits=limits,
            render_mode=render_mode,
            on_abort=on_abort,
        )

    # ------------------------------------------------------------------ hooks of a task

    def pictures(self) -> dict[str, Image]:
        """Return the images shown first, by logical name; by default the sample's own."""
        return {
            original_name(place): self.view(image) for place, image in enumerate(self.sample.images)
        }

    def document(self) -> str:
        """Return the name of the document in the prompt, ``""`` if there is none."""
        return ""

    def oracle_calls(self) -> list[ToolCall]:
        """Return the tool calls that verify the answer, in order."""
        return []

    def oracle_conclusion(self) -> ParsedTurn:
        """Return the oracle's last turn: its observations, and the right answer."""
        raise NotImplementedError

    # ------------------------------------------------------------------ hooks of VisEnv

    @override
    def turn_request(self) -> TurnRequest:
        return TurnRequest(stop=self.grammar.stop)

    @override
    def turn_notice(self) -> tuple[Part, ...]:
        """Return the notice that the next turn is the last one and must answer, or nothing."""
        return (self.last_turn_notice,) if self.turns_left == 1 else ()

    @override
    def check_turn(self, turn: ParsedTurn) -> str:
        """Reject a call of a tool that does not exist, like any other malformed turn.

        With ``compat="arm"`` it is a failed call instead, as in the public code.
        """
        unknown = [call.name for call in turn.calls if call.name not in self.tools]
        if self.compat == "arm" or not unknown:
            return ""
        there = ", ".join(self.tools) or "none"
        return f"There is no tool called {shown(unknown[0])}. Tools: {there}."

    @override
    def reject_call(self, call: ToolCall) -> str:
        """Reject a call in the last turn, which has no tools."""
        return NO_CALL_LEFT if self.turns_left == 1 else ""

    @override
    def metrics(self) -> dict[str, float]:
        """Return ``accuracy``, 0 without an answer."""
        return {"accuracy": self.episode_score}

    @override
    def oracle_turn(self) -> ParsedTurn:
        """Call the tools that verify the answer, then give the right answer."""
        calls = self.oracle_calls() if self.tools else []
        made = len(self.log.tool_calls)
        if made < len(calls) and self.turns_left > 1:
            return ParsedTurn(verifying(self.preset.prompt), calls=(calls[made],))
        return self.oracle_conclusion()

    def view(self, image: Image) -> Image:
        """Return an image scaled to the size at which it is shown."""
        return fit(image, self.preset.image_pixels, self.preset.view_side)


class JudgingEnv(ArmEnv):
    """Implements the parts that the judging environments share.

    The source must contain samples made by `judging_sample`. A subclass defines the shown images
    and the tool calls of the oracle.
    """

    ground_truths: ClassVar[tuple[type, ...]] = (JudgingTruth,)

    @override
    def initial_messages(self) -> list[Message]:
        """Store responses and images under their names, and return the messages with the task."""
        sample = self.sample
        names = candidate_names(sample)
        self.store.texts.update(zip(names, self.truth.candidates, strict=True))
        pictures = self.pictures()
        self.store.images.update(pictures)
        tools = list(self.tools.values())
        style, grammar = self.preset.prompt, self._tool_call
        turns = self.limits.turns
        return prompts.opening(style, sample, pictures, self.document(), grammar, tools, turns)

    @override
    def task_score(self) -> float:
        """Return 1 for the right verdict."""
        return float(right(self.log, self.sample, self.compat))

    @override
    def oracle_conclusion(self) -> ParsedTurn:
        """Return the oracle's observations, and the right verdict."""
        return self.conclude(self.sample.answers[0], self.truth.answer)

    def conclude(self, verdict: str, fact: str = "") -> ParsedTurn:
        """Return a turn that gives a verdict.

        Args:
            verdict: The verdict, one of `visenv.envs.arm.verdicts.verdicts`.
            fact: The fact that the thought names as its reason; ``""`` names none.
        """
        answer = answer_with(verdict, self.truth.rating)
        return ParsedTurn(self._reason(verdict, fact), answer=answer)

    def _reason(self, verdict: str, fact: str) -> str:
        """Return the last thought: the observations, and the response they support."""
        if self.preset.prompt == "brief":
            # The responses come one by one: a small model learns to compare two words long before
            # it learns to look a word up.
            right = verdict.replace("True", "1")
            compared = [
                f"{response} {'yes' if str(number) == right else 'no'}"
                for number, response in enumerate(self.names_in_thoughts(), start=1)
            ]
            return f" {', '.join([fact, *compared] if fact else compared)} "
        seen = f"It is {fact}; so" if fact else "So"
        return f" I have seen enough to judge. {seen} the judgment is {verdict}. "

    def names_in_thoughts(self) -> Sequence[str]:
        """Return the names of the responses in the thoughts of the oracle: their texts."""
        return self.truth.candidates

    @override
    def random_answer(self, rng: np.random.Generator) -> str:
        """Return a random verdict or rating."""
        if self.truth.rating is not None:
            low, high = self.truth.rating
            return write_rating(int(rng.integers(low, high + 1)))
        return write_verdict(str(rng.choice(verdicts(len(self.truth.candidates)))))

    @property
    def truth(self) -> JudgingTruth:
        """Return the ground truth of the sample."""
        return self.sample.truth_as(JudgingTruth)


def answer_with(verdict: str, rating: Sequence[int] | None) -> str:
    """Return an answer in the requested form.

    Args:
        verdict: The verdict; for a rating, ``"True"`` is the high end of the scale.
        rating: The scale of a rating; None for another verdict.
    """
    if rating is not None:
        low, high = rating
        return write_rating(high if verdict == "True" else low)
    return write_verdict(verdict)


def wrong_verdict(env: JudgingEnv, rng: np.random.Generator, fact: str = "") -> ParsedTurn:
    """Return a turn with a random wrong verdict; `fact` is that of `JudgingEnv.conclude`."""
    possible = verdicts(len(env.truth.candidates))
    wrong = [verdict for verdict in possible if verdict not in env.sample.answers]
    return env.conclude(str(rng.choice(wrong)), fact)
